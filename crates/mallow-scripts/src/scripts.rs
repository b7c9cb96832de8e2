//! The scripts of a process: its runtimes, and what the pieces of their code are.

use crate::code_lines;
use crate::code_log::{Code, CodeLog, Logged};
use crate::java_code;
use mallow_base::{Frame, Language};
use mallow_wire::script::{
    READ, RUNTIME_CPYTHON, RUNTIME_HOTSPOT, RUNTIME_RUBY, UNREAD_FREE_THREADED, UNREAD_LATE, UNREAD_LAYOUT,
    UNREAD_SYMBOLS, script_frame, script_key,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a process's log of code says, as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    offset: usize,
    /// Records before `offset` that threads have not finished.
    unfinished: Vec<usize>,
    /// The code of the functions that interpret.
    interpreters: Vec<[u64; 2]>,
    /// What its frames are written in.
    language: Language,
    /// Runtimes whose frames are not read: which, its version, and why.
    unread: Vec<(u16, u32, u32)>,
    codes: FxHashMap<u32, Arc<Code>>,
    /// The number of each method of Java that was logged first, as the same one may be logged again.
    methods: FxHashMap<Arc<Code>, u32>,
    /// Numbers of methods that have an earlier one.
    earlier: FxHashMap<u32, u32>,
    /// Frames within each other, innermost first.
    chains: FxHashMap<u32, Arc<[[u32; 2]]>>,
    /// Bytes of tables of lines that were gone through.
    lines_bytes: Arc<AtomicU64>,
}

/// A line of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// The number of the code in the process's log.
    code: u32,
    /// None where the code was not read, or has no line there.
    line: Option<u32>,
}

/// Runtimes of one process. Who logs more is not one of them.
const RUNTIMES_MAX: usize = 16;
/// Threads that may be within a record at once. Who leaves more unfinished has what follows read when they are finished.
const UNFINISHED_MAX: usize = 4096;
/// Methods that a compiler puts into one another.
const CHAIN_FRAMES_MAX: usize = 4096;
/// How many bytes of tables of lines are gone through to name the frames of a process: each table for each of its places.
const LINES_BYTES_MAX: u64 = 1 << 30;

impl Scripts {
    /// About how many bytes of memory this takes.
    pub fn held_bytes(&self) -> u64 {
        // Texts are kept as UTF-8, which may take more than in the log, and Java's methods once more.
        (self.offset * 4) as u64
    }

    /// Reads what is new. A thread that is stopped within a record holds up none of those behind it: a stack names code as soon as it is
    /// published, and is expanded once.
    pub fn read(&mut self, log: &impl CodeLog) {
        for offset in std::mem::take(&mut self.unfinished) {
            match log.code(offset) {
                Some((logged, _)) => self.add(logged),
                None => self.unfinished.push(offset),
            }
        }
        loop {
            if let Some((logged, next)) = log.code(self.offset) {
                self.add(logged);
                self.offset = next;
            } else if let Some(behind) = log.behind_unfilled(self.offset)
                && self.unfinished.len() < UNFINISHED_MAX
            {
                self.unfinished.push(self.offset);
                self.offset = behind;
            } else if log.code(self.offset).is_none() {
                // It was not finished between the two looks either.
                return;
            }
        }
    }

    fn add(&mut self, logged: Logged) {
        match logged {
            Logged::Runtime { runtime, unread: READ, interpreter, .. } => {
                if self.interpreters.len() < RUNTIMES_MAX {
                    self.interpreters.extend(interpreter);
                }
                self.language = language(runtime);
            }
            Logged::Runtime { runtime, version, unread, .. } => {
                if self.unread.len() < RUNTIMES_MAX {
                    self.unread.push((runtime, version, unread));
                }
            }
            Logged::Code { number, code } if code.runtime == RUNTIME_HOTSPOT => {
                self.add_method(number, java_code::method(code));
            }
            Logged::Code { number, code } => _ = self.codes.insert(number, Arc::new(code)),
            Logged::Chain { number, frames } if frames.len() <= CHAIN_FRAMES_MAX => {
                _ = self.chains.insert(number, frames.into());
            }
            Logged::Chain { .. } | Logged::Other => {}
        }
    }

    fn add_method(&mut self, number: u32, method: Code) {
        let method = Arc::new(method);
        let first = *self.methods.entry(Arc::clone(&method)).or_insert(number);
        if first == number {
            self.codes.insert(number, method);
        } else {
            self.earlier.insert(number, first);
        }
    }

    /// The keys of the frames that stand at a place of a native stack: itself, but for code that a JVM made. Innermost first.
    pub fn expanded(&self, key: u64) -> Vec<u64> {
        let Some(at) = script_frame(key) else { return vec![key] };
        let one = [[at.code, at.place]];
        let frames = self.chains.get(&at.code).map_or(&one[..], |frames| frames);
        let shown = frames.iter().filter(|[code, _]| *code != 0);
        let first = |code: u32| self.earlier.get(&code).copied().unwrap_or(code);
        shown.map(|[code, place]| script_key(first(*code), *place, false)).collect()
    }

    /// The code of the functions that interpret.
    pub fn interpreters(&self) -> &[[u64; 2]] {
        &self.interpreters
    }

    /// Returns whether an address lies in a function that interprets.
    pub fn interprets(&self, pc: u64) -> bool {
        self.interpreters.iter().any(|[start, end]| (*start..*end).contains(&pc))
    }

    /// The frame of a script's node; none for another one.
    pub fn frame(&self, key: u64) -> Option<Frame> {
        self.line(key).map(|line| self.frame_of(line))
    }

    /// The line of a script's node, of which there are several in most lines; none for another node.
    pub fn line(&self, key: u64) -> Option<ScriptLine> {
        let at = script_frame(key)?;
        let Some(code) = self.codes.get(&at.code) else {
            return Some(ScriptLine { code: at.code, line: None });
        };
        let gone_through = self.lines_bytes.fetch_add(code.lines.len() as u64, Ordering::Relaxed);
        let line = match code.runtime {
            _ if gone_through > LINES_BYTES_MAX => None,
            RUNTIME_RUBY => code_lines::ruby_line(code.version, &code.lines, at.place),
            RUNTIME_HOTSPOT => java_code::line(&code.lines, at.place),
            _ => code_lines::line(code.version, &code.lines, code.first_line, at.place),
        };
        let line = Some(line.unwrap_or(code.first_line)).filter(|line| *line > 0);
        Some(ScriptLine { code: at.code, line })
    }

    /// The frame of a line.
    pub fn frame_of(&self, ScriptLine { code: number, line }: ScriptLine) -> Frame {
        let Some(code) = self.codes.get(&number) else {
            let function = format!("[code {number} of a script, which was not read]");
            return Frame { function, language: self.language, ..Frame::default() };
        };
        Frame {
            function: code.name.clone(),
            file: Some(code.file.clone()).filter(|file| !file.is_empty() || code.runtime != RUNTIME_HOTSPOT),
            line,
            language: language(code.runtime),
            ..Frame::default()
        }
    }

    /// Why the scripts' frames of a process are not on its stacks, if they are not.
    pub fn sentences(&self, pid: u32, log: &impl CodeLog) -> Vec<String> {
        use std::sync::atomic::Ordering::Relaxed;
        let scripts = log.counted();
        let mut sentences: Vec<String> = self
            .unread
            .iter()
            .map(|(runtime, version, why)| unread_sentence(pid, *runtime, *version, *why))
            .collect();
        let (deep, codes) = (scripts.events_too_deep.load(Relaxed), scripts.codes_unread.load(Relaxed));
        if deep > 0 {
            sentences.push(format!(
                "process {pid}: its script was deeper than 16,384 calls, where stacks have no lines of it (events: {deep})"
            ));
        }
        if codes > 0 {
            sentences.push(format!(
                "process {pid}: code of its script could not be read, so frames of it are missing (times: {codes})"
            ));
        }
        sentences
    }
}

fn language(runtime: u16) -> Language {
    match runtime {
        RUNTIME_HOTSPOT => Language::Java,
        RUNTIME_RUBY => Language::Ruby,
        _ => Language::Python,
    }
}

/// Why a runtime's frames in a process are not read, by the numbers that a record of one has.
pub fn unread_sentence(pid: u32, runtime: u16, version: u32, why: u32) -> String {
    let name = match runtime {
        RUNTIME_CPYTHON => "Python",
        RUNTIME_RUBY => "Ruby",
        RUNTIME_HOTSPOT => "the JVM",
        _ => "its runtime",
    };
    let version = match version {
        0 if runtime == RUNTIME_HOTSPOT => String::new(),
        version if runtime == RUNTIME_HOTSPOT => format!(" {}", version >> 8),
        0 => String::from(" (older than 3.8)"),
        version => format!(" {}.{}", version >> 8, version & 0xff),
    };
    let why = match why {
        UNREAD_FREE_THREADED => "builds without the lock are not read yet",
        UNREAD_SYMBOLS => "its build hides what has to be asked",
        UNREAD_LATE => "it was loaded when the program ran",
        UNREAD_LAYOUT => "its build keeps its frames elsewhere than releases do",
        _ => "where this version keeps its frames is not known",
    };
    let whose = if runtime == RUNTIME_HOTSPOT { "Java" } else { "the script" };
    format!("process {pid}: {name}{version}: stacks have no lines of {whose}, because {why}")
}

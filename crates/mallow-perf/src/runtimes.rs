//! Node and the JVM are asked to write down what code they make: Node by words in its environment, `java` by words in front of its own.
//!
//! Only a command that is such a runtime itself, or a script whose `#!` line names Node, and only a version that knows these words: others end with
//! an error at them. The doubt: what Node starts gets the same environment, unlike under the recorder, which is in the process and can take the words away.

use crate::sampler::told;
use mallow_cpu::CpuProfile;
use mallow_jit::{is_trusted, map_path};
use mallow_launch::{SpawnOptions, find_program};
use object::{Object, ObjectSymbol, ReadCache};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const VARIABLE: &str = "NODE_OPTIONS";
/// A map of all code, and a piece of code of its own for each interpreted function.
const WORDS: &str = "--perf-basic-prof --interpreted-frames-native-stack";
/// With any of these somebody else wants such a list, or has asked already.
const OTHERS: [&[u8]; 3] = [b"--perf-basic-prof", b"--perf_basic_prof", b"--perf-prof"];
/// Since this is there (12.22, 14.17), Node takes the words from its environment.
const SINCE: &[u8] = b"napi_object_freeze";
/// The first version of Debian's library of Node, by its number, that is as new: Node 16.
const LIBRARY_SINCE: u32 = 93;

/// Frame pointers in compiled code, and a map of it when the program ends.
const JAVA_WORDS: [&str; 3] =
    ["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
/// The first version that writes a map.
const JAVA_SINCE: u32 = 17;

/// How it is asked.
#[derive(Debug)]
enum Asked {
    Variable(OsString),
    Words,
}

/// A runtime that is asked when it starts.
#[derive(Debug)]
pub struct AskedRuntime {
    asked: Asked,
    /// The command as somebody wrote it.
    command: Vec<String>,
    since: SystemTime,
}

impl AskedRuntime {
    /// Has a command ask its runtime; none for a command that is no such runtime, or that somebody else has asked.
    pub fn ask(words: &mut Vec<OsString>, spawn: &mut SpawnOptions) -> Option<AskedRuntime> {
        let program = interpreter(find_program(words.first()?).ok()?)?;
        let asked = match program.file_name()?.to_str()? {
            "node" | "nodejs" => Asked::Variable(node(&program, words)?),
            "java" if is_new_java(&program) && !words.iter().any(|word| word == JAVA_WORDS[2]) => {
                Asked::Words
            }
            _ => return None,
        };
        let command = told(words);
        match &asked {
            Asked::Variable(value) => spawn.environment.push((VARIABLE.into(), value.clone())),
            Asked::Words => drop(words.splice(1..1, JAVA_WORDS.map(OsString::from))),
        }
        Some(AskedRuntime { asked, command, since: SystemTime::now() })
    }

    /// The profile is that of the command as it was, and what its processes wrote is removed, as nobody but us has asked for it.
    pub fn finish(self, profile: &mut CpuProfile) {
        if matches!(self.asked, Asked::Words) {
            profile.recording.command = self.command;
        }
        let mut written: Vec<PathBuf> =
            profile.processes.iter().map(|process| map_path(process.pid)).collect();
        if matches!(self.asked, Asked::Variable(_)) {
            written.extend(logs_of_v8(Path::new("."), |pid| {
                profile.processes.iter().any(|process| process.pid == pid)
            }));
        }
        for path in written {
            let since = fs::symlink_metadata(&path).and_then(|found| found.modified());
            if is_trusted(&path) && since.is_ok_and(|since| since >= self.since) {
                // Whoever else has removed it did what we want.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The logs that V8 begins beside each map, in the folder where it works: `isolate-0x55d0-4711-v8.log`.
fn logs_of_v8(folder: &Path, is_ours: impl Fn(u32) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_log = |name: &OsString| {
        let rest = name.to_str().and_then(|name| name.strip_prefix("isolate-0x")?.strip_suffix("-v8.log"));
        let pid = rest.and_then(|rest| rest.split_once('-')?.1.parse().ok());
        pid.is_some_and(&is_ours)
    };
    files.filter(|file| is_log(&file.file_name())).map(|file| file.path()).collect()
}

/// What Node is to have in its environment; none when somebody else has asked, or it is too old.
fn node(program: &Path, words: &[OsString]) -> Option<OsString> {
    let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
    let is_asked = |text: &OsStr| {
        OTHERS.iter().any(|other| text.as_bytes().windows(other.len()).any(|part| part == *other))
    };
    if is_asked(&value) || words.iter().any(|word| is_asked(word)) || !is_new(program) {
        return None;
    }
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(WORDS);
    Some(value)
}

/// Whether the runtime's own notes, two folders above its program, say that it knows our words.
fn is_new_java(program: &Path) -> bool {
    let home = fs::canonicalize(program).ok();
    let notes =
        home.as_deref().and_then(|path| fs::read_to_string(path.ancestors().nth(2)?.join("release")).ok());
    java_version(&notes.unwrap_or_default()) >= JAVA_SINCE
}

/// The main version in a `release` file; 0 when it is not there.
fn java_version(release: &str) -> u32 {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
    let main = version.and_then(|version| version.split(|char: char| !char.is_ascii_digit()).next());
    main.and_then(|main| main.parse().ok()).unwrap_or(0)
}

/// The program that runs a script, or the program itself.
fn interpreter(path: PathBuf) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(&path).ok()?.take(256).read_to_end(&mut start).ok()?;
    let Some(line) = start.strip_prefix(b"#!") else { return Some(path) };
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    match first.file_name() {
        // `/usr/bin/env -S node --flag`
        Some(name) if name == "env" => {
            let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
            find_program(OsStr::from_bytes(named)).ok()
        }
        _ => Some(first.to_owned()),
    }
}

/// Whether it is a version that takes the words.
fn is_new(program: &Path) -> bool {
    let Ok(file) = File::open(program) else { return false };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return false };
    let is_since = |name: &[u8]| name == SINCE;
    file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name_bytes().is_ok_and(is_since))
        || needed(&cache).is_some_and(|number| number >= LIBRARY_SINCE)
}

/// The number of the library that Node is in, where it is in one: `libnode.so.108`.
fn needed(cache: &ReadCache<File>) -> Option<u32> {
    use object::read::elf::{Dyn, ElfFile64, FileHeader};
    let file = ElfFile64::<object::LittleEndian, _>::parse(cache).ok()?;
    let (header, endian) = (file.elf_header(), file.endian());
    let sections = header.sections(endian, cache).ok()?;
    let (entries, strings) = sections.dynamic(endian, cache).ok()??;
    let strings = sections.strings(endian, cache, strings).ok()?;
    entries.iter().find_map(|entry| {
        let is_needed = entry.tag(endian) == object::elf::DT_NEEDED;
        let name = strings.get(u32::try_from(entry.val(endian)).ok()?).ok().filter(|_| is_needed)?;
        std::str::from_utf8(name.strip_prefix(b"libnode.so.")?).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_script_is_run_by_whom_its_first_line_names() {
        let folder = tempfile::tempdir().unwrap();
        let script = |line: &str| {
            let path = folder.path().join("script");
            fs::write(&path, format!("{line}\nexit\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            interpreter(path)
        };
        let shell = find_program(OsStr::new("sh")).unwrap();
        assert_eq!(script("#! /bin/sh -e"), Some("/bin/sh".into()));
        assert_eq!(script("#!/usr/bin/env sh"), Some(shell.clone()));
        assert_eq!(script("#!/usr/bin/env -S A=b sh -e"), Some(shell));
        assert_eq!(script("#!/usr/bin/env no-such-program"), None);
        assert_eq!(script("echo"), Some(folder.path().join("script")));
    }

    #[test]
    fn a_releases_notes_tell_its_version() {
        let version =
            |version: &str| java_version(&format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n"));
        assert_eq!([version("17.0.15"), version("1.8.0_402"), version("25"), version("")], [17, 1, 25, 0]);
        assert_eq!(java_version(""), 0);
    }

    #[test]
    fn logs_of_other_processes_are_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("isolate-0x1f-42-v8.log");
        for name in ["isolate-0x1f-42-v8.log", "isolate-0x1f-43-v8.log", "isolate-42-v8.log", "v8.log", "42"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(logs_of_v8(folder.path(), |pid| pid == 42), [ours]);
    }

    #[test]
    fn what_is_no_runtime_is_not_asked() {
        for words in [&["true"][..], &["no-such-program"], &["node", "--perf-basic-prof", "a.js"], &[]] {
            let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let mut spawn = SpawnOptions::default();
            assert!(AskedRuntime::ask(&mut words, &mut spawn).is_none(), "{words:?}");
            assert!(spawn.environment.is_empty());
        }
        assert!(!is_new(Path::new("/bin/sh")) && !is_new(Path::new("/etc/hostname")));
    }
}

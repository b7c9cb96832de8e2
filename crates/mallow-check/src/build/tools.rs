//! Compilers and interpreters: which ones the environment names, where they are, which versions they have.

use super::{BuildError, command};
use std::collections::HashMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

/// The tools that build and run tests. Each tool's version is queried once.
#[derive(Debug)]
pub struct Tools {
    /// Variables, looked up here and never in the environment: tests set their own.
    variables: HashMap<&'static str, OsString>,
    jobs: usize,
    answers: Mutex<HashMap<Vec<OsString>, Result<String, String>>>,
}

/// A kind of tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// As in `the C compiler`.
    pub(super) what: &'static str,
    /// The variable that can name another.
    pub(super) variable: &'static str,
    /// The default command.
    pub(super) usual: &'static str,
}

pub(super) const CC: Kind = Kind { what: "C compiler", variable: "CC", usual: "cc" };
pub(super) const CXX: Kind = Kind { what: "C++ compiler", variable: "CXX", usual: "c++" };
pub(super) const RUSTC: Kind = Kind { what: "Rust compiler", variable: "RUSTC", usual: "rustc" };
pub(super) const SWIFTC: Kind = Kind { what: "Swift compiler", variable: "SWIFTC", usual: "swiftc" };
pub(super) const SWIFT: Kind = Kind { what: "Swift package manager", variable: "SWIFT", usual: "swift" };
pub(super) const PYTHON: Kind = Kind { what: "Python interpreter", variable: "PYTHON", usual: "python3" };
pub(super) const RUBY: Kind = Kind { what: "Ruby interpreter", variable: "RUBY", usual: "ruby" };
pub(super) const NODE: Kind = Kind { what: "Node interpreter", variable: "NODE", usual: "node" };

/// A tool that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// The program and the arguments in its variable.
    pub(super) words: Vec<OsString>,
    /// The whole output of its version query.
    pub(super) version: String,
}

impl Tools {
    /// Those that `CC`, `CXX`, `RUSTC`, `SWIFTC`, `SWIFT`, `PYTHON`, `RUBY` and `NODE` name, or the usual ones in `PATH`.
    pub fn of_environment() -> Tools {
        let kinds = [CC, CXX, RUSTC, SWIFTC, SWIFT, PYTHON, RUBY, NODE].map(|kind| kind.variable);
        let variables = kinds.into_iter().chain(["PATH"]);
        Tools {
            variables: variables.filter_map(|name| Some((name, env::var_os(name)?))).collect(),
            jobs: thread::available_parallelism().map_or(1, usize::from),
            answers: Mutex::default(),
        }
    }

    /// The same, with at most `jobs` compilers at the same time instead of one for each processor.
    pub fn with_jobs(self, jobs: usize) -> Tools {
        Tools { jobs: jobs.max(1), ..self }
    }

    /// The same, with a variable set or replaced.
    #[cfg(test)]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Tools {
        self.variables.insert(name, value.into());
        self
    }

    /// Returns how many compilers may run in parallel.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// A compiler for `test`.
    pub(super) fn compiler(&self, kind: Kind, test: &str) -> Result<Tool, BuildError> {
        // rustc's long answer has the commit and the host, too.
        let question = if kind == RUSTC { "-vV" } else { "--version" };
        self.tool(kind, test, &[question])
    }

    /// Returns an interpreter for `test`, identified by a query of its own.
    pub(super) fn tool(&self, kind: Kind, test: &str, question: &[&str]) -> Result<Tool, BuildError> {
        let words = self.words(kind);
        let name = words.first().cloned().unwrap_or_default();
        let Some(program) = self.find(&name, Path::new(".")) else {
            return Err(BuildError::new(format!(
                "the test {test:?} needs the {} {:?}, which is not there: install it, or name another with {}",
                kind.what,
                name.to_string_lossy(),
                kind.variable
            )));
        };
        let mut words = words;
        if let Some(first) = words.first_mut() {
            *first = program.into_os_string();
        }
        match self.ask(&words, question) {
            Ok(version) => Ok(Tool { words, version }),
            Err(reason) => Err(BuildError::new(format!(
                "the test {test:?} needs the {} {:?}, which does not say its version: {reason}",
                kind.what,
                name.to_string_lossy()
            ))),
        }
    }

    fn words(&self, kind: Kind) -> Vec<OsString> {
        let named = self.variables.get(kind.variable);
        let words: Vec<OsString> = match named.map(|named| (named, named.to_str())) {
            // As make does it: `CC="ccache gcc -m32"`.
            Some((_, Some(text))) => text.split_whitespace().map(OsString::from).collect(),
            Some((named, None)) => vec![named.clone()],
            None => Vec::new(),
        };
        if words.is_empty() { vec![kind.usual.into()] } else { words }
    }

    fn ask(&self, words: &[OsString], question: &[&str]) -> Result<String, String> {
        let command: Vec<OsString> =
            words.iter().cloned().chain(question.iter().copied().map(OsString::from)).collect();
        if let Ok(answers) = self.answers.lock()
            && let Some(answer) = answers.get(&command)
        {
            return answer.clone();
        }
        let answer = answer(&command);
        if let Ok(mut answers) = self.answers.lock() {
            answers.insert(command, answer.clone());
        }
        answer
    }

    /// Returns the path of a program: in `PATH`, or, with a slash in its name, in `directory`.
    pub(super) fn find(&self, name: &OsStr, directory: &Path) -> Option<PathBuf> {
        if name.as_encoded_bytes().contains(&b'/') {
            let path = directory.join(name);
            return is_program(&path).then(|| std::path::absolute(path).ok())?;
        }
        let path = self
            .variables
            .get("PATH")
            .map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), OsString::as_os_str);
        env::split_paths(path).map(|folder| folder.join(name)).find(|path| is_program(path))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| there.is_file() && there.permissions().mode() & 0o111 != 0)
}

fn answer(command: &[OsString]) -> Result<String, String> {
    let (program, arguments) = command.split_first().ok_or_else(|| "it has no name".to_owned())?;
    // Translated answers would make other keys.
    let mut process = Command::new(program);
    process.args(arguments).env("LC_ALL", "C");
    match command::run_with_output(&mut process) {
        Ok((status, output)) if status.success() => Ok(output),
        Ok((status, _)) => Err(format!("it ended with {status}")),
        Err(error) => Err(error.to_string()),
    }
}

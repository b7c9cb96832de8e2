//! One call of a compiler, done only when its output would differ.

use super::contents::Contents;
use super::dependencies::{self, Dependencies};
use super::{BuildError, Done, command};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Variables that compilers heed without telling.
const HEEDED: [&str; 6] =
    ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"];

/// The flag with which a linker lists what it read.
const DEPENDENCY_FILE: &str = "--dependency-file";

/// One call of a compiler.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its purpose, as in `cannot …`.
    pub(super) purpose: String,
    /// The compiler and its arguments.
    pub(super) command: Vec<OsString>,
    /// Its working folder.
    pub(super) directory: PathBuf,
    /// Its output.
    pub(super) output: PathBuf,
    /// Inputs that it certainly reads.
    pub(super) inputs: Vec<PathBuf>,
    /// Where it lists its dependencies.
    pub(super) rules: Rules,
    /// The compiler's version.
    pub(super) version: String,
}

/// Where a compiler lists its dependencies.
#[derive(Clone, Debug)]
pub(super) enum Rules {
    /// Nowhere: it reads only its inputs.
    None,
    /// Nowhere: it knows itself what it read, and is always asked.
    Own,
    /// In a file that the command names.
    Compiler(PathBuf),
    /// In a file, with GNU ld, lld and mold; other linkers do not support it.
    Linker(PathBuf),
}

/// The dependencies of an output. Stored beside it.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Stamp {
    key: u64,
    files: BTreeMap<PathBuf, u64>,
    variables: BTreeMap<String, Option<String>>,
}

impl Step {
    /// Executes it if needed, and returns whether it was.
    pub(super) fn run(&self, contents: &Contents) -> Done {
        if self.is_fresh(contents) {
            return Ok(false);
        }
        if let Rules::Own = self.rules {
            return self.call().map(|_| true);
        }
        // Without its stamp a partial output is never used as a complete one.
        for old in [&self.stamp_path(), &self.output] {
            let _ = fs::remove_file(old);
        }
        contents.forget(&self.output);
        if let Some(folder) = self.output.parent() {
            // If the folder cannot be created, the compiler reports it.
            let _ = fs::create_dir_all(folder);
        }
        let begin = SystemTime::now();
        let rules = self.call()?;
        contents.forget(&self.output);
        self.leave_stamp(contents, begin, rules.as_deref());
        Ok(true)
    }

    /// Runs the command, and returns where the rules are.
    fn call(&self) -> Result<Option<PathBuf>, BuildError> {
        let run = |command: &[OsString]| command::run(&self.purpose, command, &self.directory);
        match &self.rules {
            Rules::None | Rules::Own => run(&self.command).map(|()| None),
            Rules::Compiler(path) => run(&self.command).map(|()| Some(path.clone())),
            Rules::Linker(path) => {
                let mut command = self.command.clone();
                let mut flag = OsString::from(format!("-Wl,{DEPENDENCY_FILE}="));
                flag.push(path);
                command.push(flag);
                match run(&command) {
                    Err(error) if error.output.contains(DEPENDENCY_FILE) => run(&self.command).map(|()| None),
                    result => result.map(|()| Some(path.clone())),
                }
            }
        }
    }

    /// A number for everything but the contents of files.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.command, &self.directory, &self.version).hash(&mut hasher);
        for name in HEEDED {
            env::var_os(name).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn is_fresh(&self, contents: &Contents) -> bool {
        if let Rules::Own = self.rules {
            return false;
        }
        let stamp = fs::read(self.stamp_path()).ok();
        let Some(stamp) = stamp.and_then(|text| serde_json::from_slice::<Stamp>(&text).ok()) else {
            return false;
        };
        self.output.exists()
            && stamp.key == self.key()
            && self.inputs.iter().all(|input| stamp.files.contains_key(input))
            && stamp.files.iter().all(|(path, number)| contents.of(path) == Some(*number))
            && stamp.variables.iter().all(|(name, value)| variable(name) == *value)
    }

    /// Leaves none, so that the step is done again, when it cannot be known what the compiler read.
    fn leave_stamp(&self, contents: &Contents, begin: SystemTime, rules: Option<&Path>) {
        let mut listed = Dependencies::default();
        if let Some(rules) = rules {
            let Ok(text) = fs::read(rules) else {
                return;
            };
            listed = dependencies::parse(&String::from_utf8_lossy(&text));
        }
        let listed_files = listed.files.iter().map(|file| self.directory.join(file));
        let mut files = BTreeMap::new();
        for path in self.inputs.iter().cloned().chain(listed_files) {
            // Linkers list what they made themselves and threw away.
            if matches!(self.rules, Rules::Linker(_)) && !path.exists() {
                continue;
            }
            let (Some(number), false) = (contents.of(&path), is_newer(&path, begin)) else {
                return;
            };
            files.insert(path, number);
        }
        let variables = listed.variables.into_iter().collect();
        if let Ok(text) = serde_json::to_vec(&Stamp { key: self.key(), files, variables }) {
            let _ = mallow_files::replace(&self.stamp_path(), &text);
        }
    }

    fn stamp_path(&self) -> PathBuf {
        with_ending(&self.output, ".stamp")
    }
}

/// Returns whether a file was written while the compiler ran: then it is unknown which contents the compiler read.
fn is_newer(path: &Path, begin: SystemTime) -> bool {
    fs::metadata(path).and_then(|there| there.modified()).is_ok_and(|modified| modified > begin)
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns `path` with an ending appended.
pub(super) fn with_ending(path: &Path, ending: impl AsRef<OsStr>) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(ending);
    whole.into()
}

/// A number for a command, to name its output by.
pub(super) fn number_of(command: &[OsString], version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (command, version).hash(&mut hasher);
    hasher.finish()
}

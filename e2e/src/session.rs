//! `mallow record`, `mallow report --json` and `mallow stat --json` over one command.

use crate::run::{self, Finished};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to observe: command, arguments and environment.
///
/// The environment is given to `mallow` itself, as a person at a shell would, and reaches the program through it.
#[derive(Clone, Debug)]
pub struct Session {
    words: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<PathBuf>,
    folder: PathBuf,
}

impl Session {
    /// Observes `words` from inside `folder`, where traces are put as well.
    #[must_use]
    pub fn new(folder: &Path, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { words, env: Vec::new(), stdin: None, folder: folder.to_owned() }
    }

    /// With one more variable in the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a file as standard input.
    #[must_use]
    pub fn stdin(mut self, file: &Path) -> Self {
        self.stdin = Some(file.to_owned());
        self
    }

    /// The command's words.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Where [`Session::record`] puts the trace.
    #[must_use]
    pub fn trace(&self) -> PathBuf {
        self.folder.join("trace.mallow")
    }

    /// The command without mallow.
    #[must_use]
    #[track_caller]
    pub fn bare(&self) -> Finished {
        self.under(run::command("env"), &[] as &[&str])
    }

    /// The command below another: `observer`, its own `arguments`, then the command.
    ///
    /// # Panics
    /// When it cannot be started or does not end.
    #[track_caller]
    pub fn under(&self, mut observer: Command, arguments: &[impl AsRef<OsStr>]) -> Finished {
        observer.args(arguments).args(&self.words).current_dir(&self.folder);
        observer.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(file) = &self.stdin {
            observer.stdin(std::fs::File::open(file).expect("the input of the command exists"));
        }
        run::finish(&mut observer)
    }

    /// `mallow record`.
    #[must_use]
    #[track_caller]
    pub fn record(&self) -> Finished {
        self.record_with(&[])
    }

    /// The same with further flags.
    #[must_use]
    #[track_caller]
    pub fn record_with(&self, flags: &[&str]) -> Finished {
        let trace = self.trace();
        let mut arguments = vec![OsStr::new("record"), "-o".as_ref(), trace.as_os_str(), "--force".as_ref()];
        arguments.extend(flags.iter().map(OsStr::new));
        arguments.push("--".as_ref());
        self.under(run::mallow(), &arguments)
    }

    /// `mallow report --json` of the trace.
    #[must_use]
    #[track_caller]
    pub fn report(&self, arguments: &[&str]) -> Value {
        let trace = self.trace();
        json(&report_of(&trace, arguments).well().stdout)
    }

    /// `mallow stat --json`, and the document that it wrote.
    #[must_use]
    #[track_caller]
    pub fn stat(&self) -> (Finished, Value) {
        let file = self.folder.join("stat.json");
        let arguments = [
            OsStr::new("stat"),
            "--json".as_ref(),
            "-o".as_ref(),
            file.as_os_str(),
            "--force".as_ref(),
            "--".as_ref(),
        ];
        let finished = self.under(run::mallow(), &arguments);
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{} was not written: {error}\n{finished}", file.display()));
        (finished, json(&text))
    }
}

/// `mallow report FILE --json` with more arguments.
#[must_use]
#[track_caller]
pub fn report_of(trace: &Path, arguments: &[&str]) -> Finished {
    run::finish(run::mallow().arg("report").arg(trace).arg("--json").args(arguments))
}

/// A JSON document.
///
/// # Panics
/// When the text is none.
#[must_use]
#[track_caller]
pub fn json(text: &str) -> Value {
    // Its own `FromStr` is optimised, and what this crate makes of `serde_json::from_str` is not.
    text.parse().unwrap_or_else(|error: serde_json::Error| panic!("no JSON: {error}\n{text:.300}"))
}

/// A metric of a JSON object, 0 when it is not there.
#[must_use]
pub fn metric(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

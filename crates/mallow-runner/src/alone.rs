//! Timed runs of one program beside any benchmark: for who holds its time or its memory against a limit.

use crate::command_line::Program;
use crate::spawn::{RunEnvironment, Spawner};
use crate::{Output, RunnerError};
use mallow_bench::{Run, RunEnd};
use mallow_launch::{Interrupts, within_processors};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program, and how it is run: without input, its output thrown away.
#[derive(Clone, Debug)]
pub struct Alone<'a> {
    /// Its words, the program first: looked up in `PATH`, or from here.
    pub words: &'a [OsString],
    /// Variables beside ours.
    pub environment: &'a [(OsString, OsString)],
    /// Where it is started.
    pub directory: &'a Path,
    /// How many processors it may use: the first ones that we may.
    pub processors: Option<u32>,
    /// After which it is killed.
    pub timeout: Duration,
}

/// What came of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// The runs. The last one may have ended otherwise than with status 0, and is the last one then.
    pub runs: Vec<Run>,
    /// Somebody wanted an end.
    pub interrupted: bool,
}

impl Alone<'_> {
    /// Runs it so often, one run after the other.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn time(&self, spawner: PathBuf, runs: u32) -> Result<Times, RunnerError> {
        let first = self.words.first().ok_or_else(|| RunnerError::NoWords { line: String::new() })?;
        let path = mallow_launch::find_program(first)?.into_os_string();
        let program = Program { path, words: self.words.to_vec(), in_shell: false };
        let around = RunEnvironment {
            environment: self.environment.to_vec(),
            output: Output::Null,
            directory: Some(self.directory.to_owned()),
            timeout: Some(self.timeout),
            ..RunEnvironment::default()
        };
        let interrupts = Interrupts::watch()?;
        let heard = interrupts.heard();
        let spawner = Spawner::new(spawner, Vec::new());
        let mut times = Times { runs: Vec::new(), interrupted: false };
        within_processors(self.processors, || {
            for _ in 0..runs {
                let ran = spawner.run(&program, &around, &interrupts)?;
                let is_fine = ran.run.end == RunEnd::Status(0);
                times.runs.push(ran.run);
                times.interrupted = interrupts.heard() > heard;
                if !is_fine || times.interrupted {
                    break;
                }
            }
            Ok(times)
        })
    }
}

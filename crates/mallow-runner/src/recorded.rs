//! The runs with the recorder: what the commands allocate. They are never timed, and no timed run is one of them.

use crate::bench::Bench;
use crate::{Output, RunnerError};
use mallow_bench::{Allocations, RunEnd, Session};
use mallow_collect::{CommandLines, StatOptions, StatOutcome};
use mallow_launch::{Content, SpawnOptions};
use mallow_profile::{Exit, Process};
use std::ffi::OsString;
use std::fs::File;

impl Bench<'_> {
    /// Counts the allocations of each command, and notes in the session why that cannot be where it cannot.
    ///
    /// # Errors
    /// When a command beside them fails.
    pub fn recorded(&mut self, session: &mut Session, preload: Content<'static>) -> Result<(), RunnerError> {
        for index in 0..self.plan.commands.len() {
            for _ in 0..self.plan.recorded_runs {
                if self.is_interrupted() {
                    // What was counted of some runs only may be called exact and is not.
                    session.commands[index].allocations.clear();
                    return Ok(());
                }
                match self.beside(index, || self.count(index, preload))? {
                    Ok(counted) => session.commands[index].allocations.push(counted),
                    Err(reason) => {
                        session.commands[index].allocations.clear();
                        session.commands[index].not_recorded = Some(reason);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Does something with a command between what belongs before and after each of its runs.
    ///
    /// # Errors
    /// When one of these fails.
    pub fn beside<T>(&self, index: usize, act: impl FnOnce() -> T) -> Result<T, RunnerError> {
        let planned = &self.plan.commands[index];
        self.step("prepare", planned.prepare.as_deref(), Some(0))?;
        let outcome = act();
        self.step("conclude", planned.conclude.as_deref(), Some(0))?;
        Ok(outcome)
    }

    /// How a command is started beside the timed runs: with its input, its output thrown away.
    ///
    /// # Errors
    /// When its input cannot be read.
    pub fn quiet_start(&self, index: usize) -> Result<(Vec<OsString>, SpawnOptions), RunnerError> {
        let file = |path: &std::path::Path, opened: std::io::Result<File>| {
            opened.map_err(|cause| RunnerError::File { path: path.display().to_string(), cause })
        };
        let null = std::path::Path::new("/dev/null");
        let output = match &self.plan.commands[index].output {
            Output::Inherit => None,
            _ => Some(file(null, File::options().read(true).write(true).open(null))?),
        };
        let input = self.input().map(|path| file(&path, File::open(&path))).transpose()?;
        Ok((self.programs[index].words.clone(), SpawnOptions { output, input, ..SpawnOptions::default() }))
    }

    fn count(&self, index: usize, preload: Content<'static>) -> Result<Allocations, String> {
        let (command, spawn) = self.quiet_start(index).map_err(|error| error.to_string())?;
        let shell = self.programs[index].in_shell.then(|| command.clone());
        let outcome = mallow_collect::stat(&StatOptions {
            command,
            command_lines: CommandLines::Whole,
            spawn,
            preload,
        })
        .map_err(|error| error.to_string())?;
        if let Some(sentence) = outcome.blind.first().or(outcome.warnings.first()) {
            return Err(sentence.clone());
        }
        let end = match outcome.exit {
            Some(Exit::Status(status)) => RunEnd::Status(status),
            Some(Exit::Signal(signal)) => RunEnd::Signal(signal),
            Some(Exit::Exec | Exit::GoesOn) => RunEnd::Status(0),
            None => return Err("the system does not tell how it ended with the recorder".to_owned()),
        };
        if !self.plan.failures.allows(end.code()) {
            return Err(format!("with the recorder it ended with {}", crate::spawn::end_words(end)));
        }
        Ok(sum(&outcome, shell.as_deref()))
    }
}

/// The sums of all processes but the shell that was put before the command: the process with its very words, and what it forks.
fn sum(outcome: &StatOutcome, shell: Option<&[OsString]>) -> Allocations {
    let shell = shell.map(|words| words.join(" ".as_ref()).to_string_lossy().into_owned());
    let is_shell = |process: &Process| shell.as_ref().is_some_and(|line| process.command == *line);
    let mut sum = Allocations::default();
    for process in outcome.processes.iter().filter(|process| !is_shell(process)) {
        sum.allocations += process.totals.allocations;
        sum.bytes += process.totals.bytes;
        sum.peak_bytes += process.totals.peak_bytes;
        sum.leaked_bytes += process.totals.leaked_bytes;
    }
    sum
}

//! How a command is started.

use crate::{inherited, open_files};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How a command is started. The default is to inherit everything and to wait for ever.
#[derive(Debug, Default)]
pub struct SpawnOptions {
    /// Variables that are set on top of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it starts in.
    pub directory: Option<PathBuf>,
    /// Where its stdout and stderr go; its stdin is then empty.
    pub output: Option<File>,
    /// Where its stdin comes from.
    pub input: Option<File>,
    /// How many processors it may use: the first ones that we may.
    pub processors: Option<u32>,
    /// When it is killed, with everything that it started.
    pub timeout: Option<Duration>,
    /// It has a process group of its own, which the terminal's keys do not reach, and it is killed when the thread that
    /// started it ends.
    pub own_group: bool,
}

impl SpawnOptions {
    /// Starts a command.
    pub(crate) fn spawn(&self, mut command: Command) -> std::io::Result<Child> {
        self.apply(&mut command)?;
        let inherits_output = self.output.is_none();
        inherited::pass_on(
            &mut command,
            [inherits_output && self.input.is_none(), inherits_output, inherits_output],
        );
        if self.timeout.is_some() {
            // Whoever outlives its parent becomes a child of ours, by which it is known when the time is up.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        within_processors(self.processors, || open_files::as_inherited(|| command.spawn()))
    }

    /// Applies it to a command that has not been started.
    fn apply(&self, command: &mut Command) -> std::io::Result<()> {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(output) = &self.output {
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        }
        if let Some(input) = &self.input {
            command.stdin(input.try_clone()?);
        }
        if self.own_group {
            let end_with_us = || {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
                    .map_err(Into::into)
            };
            // SAFETY: between fork and exec it makes one system call and touches no memory but its own.
            unsafe { command.pre_exec(end_with_us) };
        }
        if self.timeout.is_some() || self.own_group {
            // So that what it started can be killed with it.
            command.process_group(0);
        }
        Ok(())
    }
}

/// Runs `start` while this thread, and so what it starts, may use only so many processors, the first ones that we may; none for all.
pub fn within_processors<T>(wanted: Option<u32>, start: impl FnOnce() -> T) -> T {
    let ours = wanted.and_then(|wanted| Some((wanted, sched_getaffinity(None).ok()?)));
    let Some((wanted, ours)) = ours else { return start() };
    let _ = sched_setaffinity(None, &first_of(&ours, wanted));
    let outcome = start();
    let _ = sched_setaffinity(None, &ours);
    outcome
}

/// The first processors of a set.
fn first_of(set: &CpuSet, wanted: u32) -> CpuSet {
    let mut first = CpuSet::new();
    (0..CpuSet::MAX_CPU)
        .filter(|processor| set.is_set(*processor))
        .take(wanted.max(1) as usize)
        .for_each(|processor| first.set(processor));
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_the_first_that_are_there() {
        let mut set = CpuSet::new();
        [1, 3, 5].into_iter().for_each(|processor| set.set(processor));
        let first = first_of(&set, 2);
        assert_eq!((0..8).filter(|processor| first.is_set(*processor)).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(first_of(&set, 0).count(), 1);
        assert_eq!(first_of(&set, 9).count(), 3);
    }
}

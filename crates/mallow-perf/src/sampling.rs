//! What can be asked of sampling, and what comes of it.

use crate::Sampled;
use crate::attr::Rate;
use mallow_counters::Event as Counted;
use mallow_launch::{Content, SpawnOptions};
use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

/// Sampling options.
#[derive(Debug)]
pub struct SamplingOptions {
    /// The event that triggers samples; `None` for cycles, or the kernel's timer if they cannot be counted.
    pub event: Option<Counted>,
    /// The sampling rate.
    pub rate: Rate,
    /// Whether off-CPU time is measured, with its stacks.
    pub off_cpu: bool,
    /// The copied bytes of a stack, a multiple of 8 and less than 64 KiB.
    pub stack_bytes: u32,
    /// Single samples are left out; only sums by stack are kept.
    pub summary_only: bool,
    /// When sampling ends, if not before.
    pub duration: Option<Duration>,
    /// Timers of the command's threads make the samples, whether the kernel has perf events or not.
    pub timers_only: bool,
    /// The library that is preloaded into the command.
    pub inside: Content<'static>,
    /// If perf events take the samples, nothing is preloaded and no runtime is configured.
    pub leaves_alone: bool,
}

/// The target of sampling.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A command that is started, and what it starts.
    Command {
        /// Its words.
        words: &'a [OsString],
        /// Its input, its output and its limits.
        spawn: &'a SpawnOptions,
    },
    /// A process that runs, and what it starts from now on.
    Process(u32),
}

/// The results.
#[derive(Debug)]
pub struct Outcome {
    /// The profile, without names of functions in files.
    pub sampled: Sampled,
    /// Its process id.
    pub pid: u32,
    /// How the command ended; `None` for a process that is not ours, or if it was not waited for.
    pub exit: Option<ExitStatus>,
    /// Somebody stopped us.
    pub interrupted: bool,
    /// Sentences about what was missing or odd.
    pub notes: Vec<String>,
    /// The time on processors that the collecting itself took.
    pub collector_cpu: Duration,
}

/// Returns a command as it is written in a profile.
pub(crate) fn command_words(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

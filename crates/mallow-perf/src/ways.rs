//! By which way samples are made: perf events, or timers of threads where these are refused.

use crate::sampler;
use crate::sampling::{Outcome, SamplingOptions, Target};
use crate::{PerfError, timers};
use mallow_launch::Interrupts;

/// Samples until the command or the process ends, the time is over, or it is stopped. If the kernel refuses perf
/// events and CPU time is requested, per-thread timers of a command do it.
///
/// # Errors
/// See [`PerfError`].
pub fn sample(target: Target<'_>, options: &SamplingOptions) -> Result<Outcome, PerfError> {
    let command = match target {
        Target::Command { words, spawn } => Some((words, spawn)),
        Target::Process(_) => None,
    };
    if let Some((words, spawn)) = command.filter(|_| options.timers_only) {
        return timers::sample(words, spawn, options, Interrupts::watch()?);
    }
    match (sampler::by_events(target, options, Interrupts::watch()?), command) {
        (Err(PerfError::Refused(why)), Some((words, spawn))) if timers::are_enough(options) => {
            match timers::sample(words, spawn, options, Interrupts::watch()?) {
                Ok(mut outcome) => {
                    outcome.notes.insert(0, format!("{why}; so timers of its threads made the samples"));
                    Ok(outcome)
                }
                Err(PerfError::Refused(too)) => Err(PerfError::Refused(format!("{why}; {too}"))),
                Err(error) => Err(error),
            }
        }
        (outcome, _) => outcome,
    }
}

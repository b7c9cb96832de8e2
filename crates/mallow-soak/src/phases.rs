//! The phases between the server's start and its end.

use crate::deadline::Deadline;
use crate::error::SoakError;
use crate::growth::KeptHeaps;
use crate::journal::Journal;
use crate::observe::{Observed, Observer};
use crate::options::{SoakOptions, Work};
use crate::runtime::Runtimes;
use crate::server::Running;
use crate::work::{Worker, natural_amount};
use mallow_evidence::{LoadMetrics, Memory, Phase, Progress, Sample, evidence};
use mallow_growth::{Verdict, judge};
use mallow_load::Amount;
use std::time::{Duration, Instant};

/// State that the phases share.
pub(crate) struct Phases<'a> {
    pub(crate) options: &'a SoakOptions,
    pub(crate) server: Running,
    pub(crate) worker: Worker,
    pub(crate) runtimes: Runtimes,
    pub(crate) deadline: Deadline<'a>,
    pub(crate) journal: Option<Journal>,
    /// The samples of this server, in the order of time.
    pub(crate) samples: Vec<Sample>,
    pub(crate) looks: KeptHeaps,
    /// The number of the server, and of the last sample before its first one.
    pub(crate) server_number: u32,
    pub(crate) number: u32,
    /// Seconds for which this server had been observed before.
    pub(crate) seconds_before: f64,
    pub(crate) begun: Instant,
    /// The length of a judged iteration.
    pub(crate) amount: Option<Amount>,
    /// Whether it has answered none of its last requests: it may still be working on them.
    pub(crate) is_at_work: bool,
}

/// The number of observations in the last idle phase.
const IDLE_LOOKS: u32 = 10;
/// A long run has about this number of iterations, ...
const LONG_ITERATIONS: u32 = 240;
/// ... but none shorter than this.
const LONG_ITERATION_MIN: Duration = Duration::from_secs(1);
/// How often the number of iterations may double.
const EXTENSION_MAX: u32 = 4;

impl Phases<'_> {
    /// Runs all phases. Ends early if the server exits, the user cancels, or no request is answered.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), SoakError> {
        self.leave_alone(progress)?;
        let mut amount = self.warm_up(progress)?;
        progress(Progress::Phase(Phase::Measured));
        let mut wanted = self.options.iterations;
        loop {
            while self.measured() < wanted as usize && self.goes_on() {
                self.iteration(Phase::Measured, amount, progress)?;
                amount = amount.or_else(|| self.natural());
                self.amount = amount;
                if self.is_hopeless() {
                    return Ok(());
                }
            }
            match self.extension(wanted) {
                Some(more) if self.goes_on() => {
                    if self.options.long.is_none() {
                        progress(Progress::Extended(more));
                    }
                    wanted += more;
                }
                _ => break,
            }
        }
        self.control(progress)
    }

    /// Returns whether another iteration may start.
    fn goes_on(&self) -> bool {
        let is_long_enough = self.options.long.is_some_and(|long| self.begun.elapsed() >= long);
        !self.deadline.is_over() && !is_long_enough && !self.server.has_ended()
    }

    pub(crate) fn measured(&self) -> usize {
        self.samples.iter().filter(|sample| sample.phase == Phase::Measured).count()
    }

    /// Returns how many more iterations the verdict needs; `None` if it is clear, or will not become clear.
    fn extension(&self, wanted: u32) -> Option<u32> {
        if self.options.long.is_some() {
            return Some(wanted);
        }
        let may = self.options.extend && wanted < EXTENSION_MAX.saturating_mul(self.options.iterations);
        if !may {
            return None;
        }
        let (rules, wanted_rate) = (&self.options.rules, self.options.wanted_rate());
        let evidence = evidence(&self.samples, self.looks.stacks(), wanted_rate, rules, None);
        let conclusion = judge(&evidence, rules);
        (conclusion.verdict == Verdict::Inconclusive).then_some(wanted)
    }

    /// Returns whether most requests of the iterations so far got no response: more iterations would show nothing.
    fn is_hopeless(&self) -> bool {
        let loads = || self.samples.iter().filter_map(|sample| sample.load.as_ref());
        let requests: u64 = loads().map(|load| load.requests).sum();
        let succeeded: u64 = loads().map(|load| load.succeeded).sum();
        requests > 0 && succeeded * 2 < requests
    }

    /// Observes the server before its first request.
    fn leave_alone(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), SoakError> {
        progress(Progress::Phase(Phase::Idle));
        std::thread::sleep(self.options.idle);
        let seen = self.observer().at_rest(Phase::Idle, None);
        self.note(seen, progress)
    }

    /// Runs the burst and the iterations that are not judged; returns the length of the others.
    fn warm_up(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Option<Amount>, SoakError> {
        let long =
            self.options.long.map(|long| Amount::Duration((long / LONG_ITERATIONS).max(LONG_ITERATION_MIN)));
        let given = self.options.amount.or(long);
        if self.options.burst && matches!(self.options.work, Work::Http(_)) && self.goes_on() {
            progress(Progress::Phase(Phase::Burst));
            self.iteration(Phase::Burst, self.options.amount, progress)?;
        }
        if self.options.warm_up > 0 {
            progress(Progress::Phase(Phase::WarmUp));
        }
        for _ in 0..self.options.warm_up {
            if self.goes_on() && !self.is_hopeless() {
                self.iteration(Phase::WarmUp, self.options.amount, progress)?;
            }
        }
        Ok(given.or_else(|| self.natural()))
    }

    /// Returns the length of an iteration according to the last one, if none was given.
    fn natural(&self) -> Option<Amount> {
        let load = self.samples.iter().rev().find_map(|sample| sample.load.as_ref())?;
        natural_amount(&self.options.work, load)
    }

    fn iteration(
        &mut self,
        phase: Phase,
        amount: Option<Amount>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), SoakError> {
        let deadline = self.deadline;
        let load = self.worker.run(amount, phase == Phase::Burst, &|| deadline.is_over());
        if !self.options.keep_connections {
            self.worker.close();
        }
        self.is_at_work = load.requests == 0 && deadline.is_over();
        if self.is_at_work {
            return Ok(());
        }
        let seen = self.observer().at_rest(phase, Some(load));
        self.note(seen, progress)
    }

    /// Observes the server without requests: what grows now grows with time.
    fn control(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), SoakError> {
        let is_at_rest = !self.is_at_work && !self.server.has_ended();
        if self.options.idle.is_zero() || !is_at_rest || self.deadline.is_cancelled() {
            return Ok(());
        }
        self.worker.close();
        progress(Progress::Phase(Phase::IdleControl));
        for look in 0..=IDLE_LOOKS {
            if look > 0 {
                std::thread::sleep(self.options.idle / IDLE_LOOKS);
            }
            let seen = self.observer().in_passing(Phase::IdleControl);
            self.note(seen, progress)?;
        }
        Ok(())
    }

    pub(crate) fn observer(&mut self) -> Observer<'_> {
        let is_restless = self.samples.last().is_some_and(|sample| sample.unsettled);
        Observer { options: self.options, server: &self.server, runtimes: &mut self.runtimes, is_restless }
    }

    /// Completes a sample with what only this struct knows, and stores it.
    fn note(&mut self, seen: Observed, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), SoakError> {
        let Observed { mut sample, look, mappings } = seen;
        self.number += 1;
        sample.number = self.number;
        sample.server = self.server_number;
        sample.seconds += self.seconds_before;
        let last = self.samples.last();
        sample.memory_before = last.map_or(sample.memory, at_its_end);
        sample.requests_total = last.map_or(0, |last| last.requests_total)
            + sample.load.as_ref().map_or(0, |load: &LoadMetrics| load.succeeded);
        if sample.phase == Phase::Measured {
            self.looks.add(self.measured(), look, mappings);
        }
        if let Some(journal) = &mut self.journal {
            journal.add(&sample)?;
        }
        progress(Progress::Sample(&sample));
        self.samples.push(sample);
        Ok(())
    }
}

/// Returns the memory at the end of a sample.
fn at_its_end(sample: &Sample) -> Memory {
    sample.memory_trimmed.unwrap_or(sample.memory)
}

//! What a person should know before trusting a trace's metrics.

use super::gather::{Parts, ProcessParts};
use super::replay::Replay;
use mallow_base::{Count, Micros};

impl Parts {
    /// A sentence each.
    pub(super) fn warnings(&self, replays: &[Replay]) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(offset) = self.damaged {
            let metrics = if replays.is_empty() {
                "the metrics come from intact parts of it"
            } else {
                "sums that had to be computed from events are valid up to there"
            };
            warnings.push(format!("the trace is damaged at byte {offset}; {metrics}"));
        }
        if self.end.is_none() {
            warnings.push(self.early_end(replays));
        }
        warnings.extend(self.unseen.iter().cloned());
        warnings.extend(replays.iter().filter_map(Replay::warning));
        // Of a process that no part of a whole trace tells more of nothing was recorded; why is among what was not seen.
        let is_whole = self.end.is_some() && self.damaged.is_none();
        let cut = |process: &&ProcessParts| !is_whole || process.end.is_none();
        warnings.extend(self.processes.values().filter(cut).filter_map(ProcessParts::warning));
        warnings
    }

    fn early_end(&self, replays: &[Replay]) -> String {
        let missing = match &self.missing()[..] {
            [one] => format!("{one} is missing"),
            [many @ .., last] => format!("{} and {last} are missing", many.join(", ")),
            [] => String::new(),
        };
        let Some(last_us) = replays.iter().map(|replay| replay.last_us).max() else {
            return format!("the trace ends early: {missing}");
        };
        let events: u64 = replays.iter().map(|replay| replay.events).sum();
        let s = if events == 1 { "" } else { "s" };
        let (events, time) = (Count(events), Micros(last_us));
        format!(
            "the trace ends early, after {events} event{s} at {time}: {missing}; metrics are valid up to there"
        )
    }

    /// Returns what an unfinished trace lacks.
    fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.symbols.is_empty() {
            missing.push("symbols");
        }
        if self.processes.is_empty() {
            missing.push("processes");
        }
        if self.processes.values().any(|process| process.end.is_none()) {
            missing.push("the exit status");
        }
        missing.push("the recording's end");
        missing
    }
}

impl ProcessParts {
    fn warning(&self) -> Option<String> {
        let lacks_metrics = self.summary.is_none();
        lacks_metrics.then(|| {
            format!(
                "no metrics of process {} were kept: the trace ends or is damaged before them",
                self.start.pid
            )
        })
    }
}

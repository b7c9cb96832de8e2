//! What speaks against a measurement.

use crate::{Metric, Order, Run, Session};
use mallow_stats::{Disturbance, Summary, disturbances};

/// Something that the reader of a session should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The command, by its place; none where it is about all.
    pub command: Option<usize>,
    /// What it is.
    pub subject: Subject,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A disturbance of the series of times.
    Disturbed(Disturbance),
    /// Other processes took the processor so often per run.
    Busy(f64),
    /// Runs took less than five milliseconds, by their median in nanoseconds.
    Short(f64),
    /// So many runs ended with a status that is not 0, the first of them with this one.
    Failed(usize, i32),
    /// Processes still ran when the command had ended: in so many runs, the first one with this name.
    Left(usize, String),
    /// In so many runs the pattern found no number.
    NothingPrinted(usize),
    /// A counter ran for this part of the time only.
    TookTurns(String, f64),
    /// The commands were not run in turns, so no difference can be told from a drift of the machine.
    NotInTurns,
    /// The time in program and kernel is told by ticks, too coarse for so short runs.
    Ticks,
}

/// A run this short costs about as much to start as it takes.
const SHORT_NS: f64 = 5e6;
/// A tick of the slowest usual kernels, times some.
const TICKS_NS: f64 = 1e8;
/// A quiet machine takes the processor away this often in a second of running, and a few times per run.
const SWITCHES_PER_SECOND: f64 = 60.0;
const SWITCHES_PER_RUN: f64 = 8.0;

/// What speaks against the figures of a session.
pub fn findings(session: &Session) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, command) in session.commands.iter().enumerate() {
        let walls: Vec<f64> =
            command.runs.iter().filter_map(|run| Metric::Wall.of_run(run, &session.events)).collect();
        let mut add = |subject| found.push(Finding { command: Some(index), subject });
        disturbances(&walls).into_iter().for_each(|it| add(Subject::Disturbed(it)));
        of_runs(&command.runs).into_iter().for_each(&mut add);
        if let Some(summary) = Summary::of(&walls) {
            let switches = command.runs.iter().map(|run| run.involuntary_switches as f64).sum::<f64>()
                / command.runs.len() as f64;
            if switches > SWITCHES_PER_RUN + SWITCHES_PER_SECOND * summary.median / 1e9 {
                add(Subject::Busy(switches));
            }
            if summary.median < SHORT_NS {
                add(Subject::Short(summary.median));
            }
        }
    }
    let turns = session.events.iter().enumerate().filter_map(|(at, name)| {
        let runs = session.commands.iter().flat_map(|command| &command.runs);
        let shares = runs.filter_map(|run| run.events.get(at).copied().flatten()).map(|count| count.share);
        let least = shares.fold(1.0, f64::min);
        (least < 0.995).then(|| Subject::TookTurns(name.clone(), least))
    });
    found.extend(turns.map(|subject| Finding { command: None, subject }));
    let medians = session.commands.iter().filter_map(|command| {
        Summary::of(&Vec::from_iter(command.runs.iter().map(|run| run.wall_ns as f64)))
    });
    if medians.into_iter().any(|summary| summary.median < TICKS_NS) {
        found.push(Finding { command: None, subject: Subject::Ticks });
    }
    if session.order == Order::Sequential && session.commands.len() > 1 {
        found.push(Finding { command: None, subject: Subject::NotInTurns });
    }
    found
}

fn of_runs(runs: &[Run]) -> Vec<Subject> {
    let mut found = Vec::new();
    let failed: Vec<i32> = runs.iter().map(|run| run.end.code()).filter(|code| *code != 0).collect();
    if let Some(first) = failed.first() {
        found.push(Subject::Failed(failed.len(), *first));
    }
    let left: Vec<&String> = runs.iter().filter_map(|run| run.left.first()).collect();
    if let Some(first) = left.first() {
        found.push(Subject::Left(left.len(), (*first).clone()));
    }
    let printed = runs.iter().filter(|run| run.printed.is_some()).count();
    if printed > 0 && printed < runs.len() {
        found.push(Subject::NothingPrinted(runs.len() - printed));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BenchCommand, EventCount, RunEnd};

    fn of(runs: Vec<Run>) -> Vec<Subject> {
        let commands = vec![BenchCommand { runs, ..BenchCommand::default() }];
        let session = Session { commands, events: vec!["cycles".to_owned()], ..Session::default() };
        findings(&session).into_iter().map(|finding| finding.subject).collect()
    }

    fn run() -> Run {
        Run { wall_ns: 200_000_000, ..Run::default() }
    }

    #[test]
    fn a_clean_series_has_none() {
        assert_eq!(of(vec![run(); 20]), []);
    }

    #[test]
    fn failures_and_children_are_counted() {
        let failed = Run { end: RunEnd::Signal(9), left: vec!["sleep".to_owned()], ..run() };
        assert_eq!(of(vec![run(), failed]), [Subject::Failed(1, 137), Subject::Left(1, "sleep".to_owned())]);
    }

    #[test]
    fn a_busy_machine_a_short_command_and_a_shared_counter_are_named() {
        let count = Some(EventCount { value: 1.0, share: 0.5 });
        assert_eq!(
            of(vec![Run { events: vec![count], ..run() }; 3]),
            [Subject::TookTurns("cycles".to_owned(), 0.5)]
        );
        assert_eq!(of(vec![Run { involuntary_switches: 90, ..run() }; 3]), [Subject::Busy(90.0)]);
        let short = Run { wall_ns: 1_000_000, ..run() };
        assert_eq!(of(vec![short; 3]), [Subject::Short(1e6), Subject::Ticks]);
    }
}

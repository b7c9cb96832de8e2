//! How a command compares with another, in one metric.

use crate::{BenchCommand, Metric, Order, Session};
use mallow_stats::{Ratio, Verdict};

/// A command against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// How much of the reference's it takes; none without a pair.
    pub ratio: Option<Ratio>,
    /// What follows. Runs that did not take turns have none but unclear.
    pub verdict: Verdict,
}

/// What the recorder's runs counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The same in all runs.
    Exact(u64),
    /// From this to that.
    Varies(u64, u64),
}

impl Counted {
    /// The least and the greatest.
    pub fn ends(self) -> (u64, u64) {
        match self {
            Counted::Exact(value) => (value, value),
            Counted::Varies(min, max) => (min, max),
        }
    }
}

/// What the recorder's runs counted of a metric; none without such a run.
pub fn counted(command: &BenchCommand, metric: Metric) -> Option<Counted> {
    let values = metric.recorded(command);
    let (min, max) = (*values.iter().min()?, *values.iter().max()?);
    Some(if min == max { Counted::Exact(min) } else { Counted::Varies(min, max) })
}

/// Compares a command of a session with its reference.
pub fn compare(session: &Session, index: usize, metric: Metric) -> Comparison {
    let (Some(reference), Some(command)) =
        (session.commands.get(session.reference), session.commands.get(index))
    else {
        return Comparison { ratio: None, verdict: Verdict::Unclear };
    };
    let of = |run: &crate::Run| metric.of_run(run, &session.events);
    let ratio = Ratio::of_pairs(&pairs(reference, command, of), session.error);
    let verdict = match session.order {
        Order::Interleaved => Verdict::of(ratio.as_ref(), session.threshold),
        Order::Sequential => Verdict::Unclear,
    };
    Comparison { ratio, verdict }
}

/// Pairs of figures of runs that were made side by side: the n-th of the one and the n-th of the other.
pub fn pairs(
    reference: &BenchCommand,
    command: &BenchCommand,
    of: impl Fn(&crate::Run) -> Option<f64>,
) -> Vec<(f64, f64)> {
    reference.runs.iter().zip(&command.runs).filter_map(|(one, other)| Some((of(one)?, of(other)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocations, Run};

    fn command(walls: &[u64], allocations: &[u64]) -> BenchCommand {
        let runs = walls.iter().map(|wall| Run { wall_ns: *wall, ..Run::default() }).collect();
        let allocations =
            allocations.iter().map(|count| Allocations { allocations: *count, ..Allocations::default() });
        BenchCommand { runs, allocations: allocations.collect(), ..BenchCommand::default() }
    }

    fn session(order: Order) -> Session {
        let commands = vec![command(&[100; 12], &[5, 5]), command(&[50; 12], &[3, 4])];
        Session { commands, order, error: 0.01, threshold: 0.01, ..Session::default() }
    }

    #[test]
    fn half_the_time_is_faster() {
        let comparison = compare(&session(Order::Interleaved), 1, Metric::Wall);
        assert_eq!(comparison.verdict, Verdict::Faster);
        assert!((comparison.ratio.unwrap().ratio - 0.5).abs() < 1e-12);
    }

    #[test]
    fn one_after_the_other_is_never_called_faster() {
        let comparison = compare(&session(Order::Sequential), 1, Metric::Wall);
        assert_eq!(comparison.verdict, Verdict::Unclear);
    }

    #[test]
    fn what_was_not_counted_has_no_ratio() {
        let session = session(Order::Interleaved);
        assert_eq!(compare(&session, 1, Metric::Cycles).ratio, None);
        assert_eq!(compare(&session, 7, Metric::Wall).ratio, None);
    }

    #[test]
    fn counts_are_exact_or_said_to_vary() {
        let session = session(Order::Interleaved);
        assert_eq!(counted(&session.commands[0], Metric::Allocations), Some(Counted::Exact(5)));
        assert_eq!(counted(&session.commands[1], Metric::Allocations), Some(Counted::Varies(3, 4)));
        assert_eq!(counted(&BenchCommand::default(), Metric::Allocations), None);
    }
}

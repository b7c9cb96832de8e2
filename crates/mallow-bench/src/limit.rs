//! What a metric may be at least and at most, before and after, so that a limit on it is judged by what is sure.

use crate::{BenchCommand, Metric, Session, counted, pairs};
use mallow_stats::{Ratio, Summary};

/// The least and the greatest change that the figures allow, each as (before, after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The smallest growth, or the largest shrinking.
    pub least: (u64, u64),
    /// The greatest growth; none where the figures set no bound.
    pub most: Option<(u64, u64)>,
}

/// The ends of a metric between a command and what it is held against, where that is another one. None where it was not measured.
///
/// A limit is broken when the least change breaks it, and holds when the greatest does not.
pub fn limited(
    session: &Session,
    before: Option<&BenchCommand>,
    after: &BenchCommand,
    metric: Metric,
) -> Option<Ends> {
    if metric.is_recorded() {
        let after = counted(after, metric)?.ends();
        let before = match before {
            Some(before) => counted(before, metric)?.ends(),
            None => (0, 0),
        };
        return Some(Ends { least: (before.1, after.0), most: Some((before.0, after.1)) });
    }
    let of = |run: &crate::Run| metric.of_run(run, &session.events);
    // Without another command the figure stands alone: each run counts as one beside a run of length one, so its interval is a ratio's.
    let pairs: Vec<(f64, f64)> = match before {
        Some(before) => pairs(before, after, of),
        None => after.runs.iter().filter_map(|run| Some((1.0, of(run)?))).collect(),
    };
    let ratio = Ratio::of_pairs(&pairs, session.error)?;
    let base = match before {
        Some(_) => Summary::of(&Vec::from_iter(pairs.iter().map(|pair| pair.0)))?.median,
        None => 1.0,
    };
    let from = if before.is_some() { base.round() as u64 } else { 0 };
    let at = |share: f64| (from, (base * share).round() as u64);
    Some(Ends { least: at(ratio.low), most: ratio.has_interval().then(|| at(ratio.high)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    fn command(walls: &[u64]) -> BenchCommand {
        let runs = walls.iter().map(|wall| Run { wall_ns: *wall, ..Run::default() }).collect();
        BenchCommand { runs, ..BenchCommand::default() }
    }

    #[test]
    fn the_ends_are_those_of_the_interval() {
        let session = Session { error: 0.01, ..Session::default() };
        let (before, after) = (command(&[1000; 12]), command(&[1030; 12]));
        let ends = limited(&session, Some(&before), &after, Metric::Wall).unwrap();
        assert_eq!(ends, Ends { least: (1000, 1030), most: Some((1000, 1030)) });
        let alone = limited(&session, None, &after, Metric::Wall).unwrap();
        assert_eq!(alone, Ends { least: (0, 1030), most: Some((0, 1030)) });
    }

    #[test]
    fn few_runs_bound_nothing() {
        let session = Session { error: 0.01, ..Session::default() };
        let ends = limited(&session, Some(&command(&[1000; 3])), &command(&[9000; 3]), Metric::Wall).unwrap();
        assert_eq!(ends, Ends { least: (1000, 0), most: None });
        assert_eq!(limited(&session, None, &command(&[1]), Metric::Cycles), None);
    }
}

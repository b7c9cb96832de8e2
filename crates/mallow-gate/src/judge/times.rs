//! Where times are, measured by a limit, by the statistic of `mallow bench`: the interval of the signed-rank test, with the chance of an error that it has there.
//!
//! A count that is too large has a reason in the program. A time may have its reason in the machine, so a limit is broken only when the whole
//! interval *and* every single run are above it, and holds when the whole interval is below. What lies between is unclear, and few runs
//! are unclear always: they have no interval.

use crate::measurement::{Metric, Run};
use crate::result::Position;
use mallow_base::Micros;
use mallow_stats::{ERROR, Ratio, signed_rank};

/// The ends of the interval of the runs' times, in nanoseconds; none where there are too few runs for one.
fn interval(runs: &[Run]) -> Option<(u64, u64)> {
    // A run beside one of length one is a ratio, as where bench limits a command alone.
    let walls: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| Some((1.0, run.of(Metric::Wall)? as f64))).collect();
    let ratio = Ratio::of_pairs(&walls, ERROR).filter(Ratio::has_interval)?;
    Some((ratio.low.round() as u64, ratio.high.round() as u64))
}

/// Returns the position of the times relative to the limit; `None` if it is unclear.
pub(super) fn position(runs: &[Run], max_ns: u64) -> Option<Position> {
    let best = runs.iter().filter_map(|run| run.of(Metric::Wall)).min();
    match interval(runs) {
        Some((_, high)) if high <= max_ns => Some(Position::Within),
        Some((low, _)) if low > max_ns && best.is_some_and(|best| best > max_ns) => Some(Position::Above),
        _ => None,
    }
}

/// `1.20 s`.
fn time(ns: u64) -> String {
    Micros(ns / 1000).to_string()
}

/// Returns the sentence about times that are not within the limit.
pub(super) fn sentence(runs: &[Run], max_ns: u64) -> String {
    let walls = || runs.iter().filter_map(|run| run.of(Metric::Wall));
    let (best, worst) = (walls().min().unwrap_or(0), walls().max().unwrap_or(0));
    let limit = time(max_ns);
    let Some((low, high)) = interval(runs) else {
        let least = (1..).find(|runs| signed_rank::end_rank(*runs, ERROR).is_some()).unwrap_or(usize::MAX);
        return format!(
            "wall: {} from {} to {} are too few for a limit of {limit}: it takes {least}.",
            match walls().count() {
                1 => "1 run".to_owned(),
                count => format!("{count} runs"),
            },
            time(best),
            time(worst),
        );
    };
    let (low, high) = (time(low), time(high));
    match position(runs, max_ns) {
        Some(Position::Above) => format!(
            "wall: {low} to {high} for a process without mallow, and {} at best; its limit allows {limit}.",
            time(best)
        ),
        _ => format!(
            "wall: unclear. A process without mallow takes {low} to {high}, and {} at best; its limit of {limit} is not clearly kept or broken: \
             more runs (`runs`), a quieter machine or another limit would decide.",
            time(best)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::ProcessMetrics;

    fn runs(walls_ms: &[u64]) -> Vec<Run> {
        let run = |ms: &u64| Run {
            process: ProcessMetrics { wall_ns: Some(ms * 1_000_000), peak_rss_bytes: None },
            ..Run::default()
        };
        walls_ms.iter().map(run).collect()
    }

    const LIMIT_NS: u64 = 1_000_000_000;

    #[test]
    fn all_below_is_within_and_all_above_is_above() {
        assert_eq!(position(&runs(&[200; 10]), LIMIT_NS), Some(Position::Within));
        assert_eq!(position(&runs(&[1000; 10]), LIMIT_NS), Some(Position::Within));
        assert_eq!(position(&runs(&[1001; 10]), LIMIT_NS), Some(Position::Above));
        // A wild run among ten could be more than chance, and among twenty it moves nothing.
        let with_wild = |others: usize| [vec![9000], vec![200; others]].concat();
        assert_eq!(position(&runs(&with_wild(9)), LIMIT_NS), None);
        assert_eq!(position(&runs(&with_wild(19)), LIMIT_NS), Some(Position::Within));
    }

    #[test]
    fn what_a_busy_machine_may_have_done_is_unclear() {
        let around = [900, 1100, 900, 1100, 900, 1100, 900, 1100, 900, 1100];
        assert_eq!(position(&runs(&around), LIMIT_NS), None);
        // One run kept the limit, so the program can.
        assert_eq!(
            position(&runs(&[3000, 3000, 3000, 3000, 3000, 3000, 3000, 3000, 3000, 990]), LIMIT_NS),
            None
        );
    }

    #[test]
    fn few_runs_are_never_fine() {
        assert_eq!(position(&runs(&[1; 7]), LIMIT_NS), None);
        assert_eq!(position(&runs(&[1; 8]), LIMIT_NS), Some(Position::Within));
        assert_eq!(position(&[], LIMIT_NS), None);
        assert_eq!(
            sentence(&runs(&[1, 2, 3]), LIMIT_NS),
            "wall: 3 runs from 1.00 ms to 3.00 ms are too few for a limit of 1.00 s: it takes 8."
        );
    }

    #[test]
    fn the_sentences_tell_interval_best_run_and_limit() {
        assert_eq!(
            sentence(&runs(&[1500; 10]), LIMIT_NS),
            "wall: 1.50 s to 1.50 s for a process without mallow, and 1.50 s at best; its limit allows 1.00 s."
        );
        let around = [900, 1100, 900, 1100, 900, 1100, 900, 1100, 900, 1100];
        assert!(sentence(&runs(&around), LIMIT_NS).starts_with("wall: unclear. A process without mallow takes 900 ms to 1.10 s, and 900 ms at best; its limit of 1.00 s "));
    }
}

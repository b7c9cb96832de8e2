//! How one metric of the runs stands to its window, and how sure that is.

use super::{times, window};
use crate::baseline::Baseline;
use crate::limit::Limits;
use crate::measurement::{Measurement, Metric, Run};
use crate::result::{Conclusion, Position, Spread, Window};

/// The confidence of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confidence {
    /// Sure.
    Sure,
    /// Certain, but the runs differ in a way that people should see.
    Noted,
    /// The runs differ too much to decide.
    Flaky,
    /// Some runs left blocks that others did not, and there were too few operations to distinguish a leak from a
    /// block that is kept once.
    FewOperations,
}

/// A judged metric.
pub(super) struct Judged {
    pub(super) conclusion: Conclusion,
    pub(super) confidence: Confidence,
}

/// Judges one metric. None without runs.
pub(super) fn judge_metric(
    measurement: &Measurement,
    baseline: Option<&Baseline>,
    limits: &Limits,
    metric: Metric,
) -> Option<Judged> {
    let spread = Spread::of_runs(&measurement.runs, metric)?;
    let window = window::of(metric, limits, baseline, measurement.ops);
    let (position, confidence) = match (metric, window) {
        (Metric::Allocations | Metric::Objects, None) => (Position::Free, unsteady_note(&spread)),
        (_, None) => (Position::Free, Confidence::Sure),
        (Metric::Allocations | Metric::Objects, Some(window)) => {
            of_allocations(&measurement.runs, metric, &spread, window)
        }
        (Metric::Remaining | Metric::Descriptors, Some(window)) => {
            let values: Vec<u64> = measurement.runs.iter().filter_map(|run| run.of(metric)).collect();
            of_left(&values, &spread, window, measurement.ops)
        }
        (Metric::Wall, Some(window)) => match times::position(&measurement.runs, window.max) {
            Some(position) => (position, Confidence::Sure),
            // `Within` if nothing is known, as for allocations.
            None => (Position::Within, Confidence::Flaky),
        },
        (_, Some(window)) => (of_value(spread.min, window), Confidence::Sure),
    };
    let reference = baseline.and_then(|baseline| baseline.spread(metric)).map(|spread| spread.min);
    Some(Judged { conclusion: Conclusion { metric, spread, reference, window, position }, confidence })
}

fn of_value(value: u64, window: Window) -> Position {
    if value > window.max {
        Position::Above
    } else if value < window.min {
        Position::Below
    } else {
        Position::Within
    }
}

fn unsteady_note(spread: &Spread) -> Confidence {
    if spread.is_steady() { Confidence::Sure } else { Confidence::Noted }
}

/// Judges the minimum if it is the floor. If it is not known to be, the verdict is still certain if every run would
/// have the same: all in the window, all below it, or all so far above it that the spread of the runs cannot explain
/// it.
fn of_allocations(runs: &[Run], metric: Metric, spread: &Spread, window: Window) -> (Position, Confidence) {
    let position = of_value(spread.min, window);
    let confidence = unsteady_note(spread);
    let is_sure = confidence == Confidence::Sure
        || spread.has_only_outliers(runs, metric)
        || match position {
            Position::Within => spread.max <= window.max,
            Position::Below => spread.max < window.min,
            Position::Above => spread.min - window.max > spread.range(),
            Position::Free => true,
        };
    // `Within` if nothing is known, so that a doubtful value is no regression and no improvement.
    if is_sure { (position, confidence) } else { (Position::Within, Confidence::Flaky) }
}

/// See the head of [`super`] for the rule and its reasons.
fn of_left(values: &[u64], spread: &Spread, window: Window, ops: Option<u64>) -> (Position, Confidence) {
    if spread.min > window.max {
        return (Position::Above, Confidence::Sure);
    }
    // Improvement needs all runs: if their numbers differ, one run that left less is no improvement.
    let position = of_value(spread.max.min(window.max), window);
    if spread.max <= window.max {
        return (position, Confidence::Sure);
    }
    let Some(ops) = ops.filter(|_| window::runs_per_hundred(ops) > 1) else {
        // A leak would be in every run.
        return (position, Confidence::Noted);
    };
    let half = values.len() / 2;
    let hundreds = ops.saturating_mul(half as u64) / 100;
    if hundreds == 0 {
        return (position, Confidence::FewOperations);
    }
    let (first, second) = values.split_at(half);
    let is_leak = [first, second]
        .iter()
        .all(|half| half.iter().filter(|value| **value > window.max).count() as u64 >= hundreds);
    if is_leak { (Position::Above, Confidence::Noted) } else { (position, Confidence::Noted) }
}

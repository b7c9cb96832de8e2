//! How one metric of the runs stands to its window, and how sure that is.

use super::window;
use crate::baseline::Baseline;
use crate::limit::Limits;
use crate::measurement::{Measurement, Metric, Run};
use crate::result::{Judgement, Spread, Standing, Window};

/// How sure a standing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confidence {
    /// Sure.
    Sure,
    /// Sure, but the runs differ in a way that people should see.
    Noted,
    /// The runs differ too much to tell.
    Flaky,
    /// Some runs left what others did not, and there were too few operations to tell a leak from what is kept once.
    FewOperations,
}

/// A metric, judged.
pub(super) struct Judged {
    pub(super) judgement: Judgement,
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
    let (standing, confidence) = match (metric, window) {
        (Metric::Allocations | Metric::Objects, None) => (Standing::Free, unsteady_note(&spread)),
        (_, None) => (Standing::Free, Confidence::Sure),
        (Metric::Allocations | Metric::Objects, Some(window)) => {
            of_allocations(&measurement.runs, metric, &spread, window)
        }
        (Metric::Remaining | Metric::Descriptors, Some(window)) => {
            let values: Vec<u64> = measurement.runs.iter().filter_map(|run| run.of(metric)).collect();
            of_left(&values, &spread, window, measurement.ops)
        }
        (_, Some(window)) => (of_value(spread.min, window), Confidence::Sure),
    };
    let reference = baseline.and_then(|baseline| baseline.spread(metric)).map(|spread| spread.min);
    Some(Judged { judgement: Judgement { metric, spread, reference, window, standing }, confidence })
}

fn of_value(value: u64, window: Window) -> Standing {
    if value > window.max {
        Standing::Above
    } else if value < window.min {
        Standing::Below
    } else {
        Standing::Within
    }
}

fn unsteady_note(spread: &Spread) -> Confidence {
    if spread.is_steady() { Confidence::Sure } else { Confidence::Noted }
}

/// The least value is judged where it is the floor. Where it is not known to be, the verdict still is sure when every
/// run would have the same: all in the window, all below it, or all so far above it that what the runs differ
/// by cannot have lifted them there.
fn of_allocations(runs: &[Run], metric: Metric, spread: &Spread, window: Window) -> (Standing, Confidence) {
    let standing = of_value(spread.min, window);
    let confidence = unsteady_note(spread);
    let is_sure = confidence == Confidence::Sure
        || spread.has_only_outliers(runs, metric)
        || match standing {
            Standing::Within => spread.max <= window.max,
            Standing::Below => spread.max < window.min,
            Standing::Above => spread.min - window.max > spread.range(),
            Standing::Free => true,
        };
    // Within is said where nothing is known, so that nobody takes a doubtful value for a regression or a win.
    if is_sure { (standing, confidence) } else { (Standing::Within, Confidence::Flaky) }
}

/// See the head of [`super`] for the rule and its reasons.
fn of_left(values: &[u64], spread: &Spread, window: Window, ops: Option<u64>) -> (Standing, Confidence) {
    if spread.min > window.max {
        return (Standing::Above, Confidence::Sure);
    }
    // Whether less is left is asked of all runs: where their numbers differ, one that left less is no improvement.
    let standing = of_value(spread.max.min(window.max), window);
    if spread.max <= window.max {
        return (standing, Confidence::Sure);
    }
    let Some(ops) = ops.filter(|_| window::runs_per_hundred(ops) > 1) else {
        // A leak would be in every run.
        return (standing, Confidence::Noted);
    };
    let half = values.len() / 2;
    let hundreds = ops.saturating_mul(half as u64) / 100;
    if hundreds == 0 {
        return (standing, Confidence::FewOperations);
    }
    let (first, second) = values.split_at(half);
    let is_leak = [first, second]
        .iter()
        .all(|half| half.iter().filter(|value| **value > window.max).count() as u64 >= hundreds);
    if is_leak { (Standing::Above, Confidence::Noted) } else { (standing, Confidence::Noted) }
}

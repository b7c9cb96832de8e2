//! Which values of a metric are fine: from a limit, the baseline and the defaults.

use crate::baseline::Baseline;
use crate::limit::{Limit, Limits};
use crate::measurement::Metric;
use crate::result::{Conclusion, Window};

/// In so many operations one stray allocation is tolerated.
const OPERATIONS_PER_STRAY: u64 = 100;

/// The smallest object of a runtime that counts bytes has four times as many.
const OBJECT_BYTES_PER_OPERATION: u64 = 4;

/// So many bytes a runtime may make for itself in one run and not in the other: feedback, fillers at the ends of pages.
const RUNTIME_BYTES: u64 = 4096;

/// And so many of them may stay.
const RUNTIME_BYTES_LEFT: u64 = 128;

/// However many operations there are, more strays than this are not chance.
const STRAYS_MAX: u64 = 50;

/// Returns the tolerance of allocations relative to the baseline if no limit sets it.
pub(super) fn stray_allocations(ops: Option<u64>) -> u64 {
    (ops.unwrap_or(0) / OPERATIONS_PER_STRAY).min(STRAYS_MAX)
}

/// Returns how many runs have a hundred operations; 1 if the operations of a run are unknown.
pub(super) fn runs_per_hundred(ops: Option<u64>) -> u64 {
    match ops {
        None | Some(0) => 1,
        Some(ops) => OPERATIONS_PER_STRAY.div_ceil(ops),
    }
}

/// Returns the first metric without an upper bound: allocations and objects without a limit or a baseline are not
/// judged. A limit for another metric does not replace it.
pub(super) fn unknown(conclusions: &[Conclusion]) -> Option<Metric> {
    const DECIDING: [Metric; 3] = [Metric::Allocations, Metric::Objects, Metric::ObjectBytes];
    let is_open = |conclusion: &&Conclusion| conclusion.window.is_none_or(|window| window.max == u64::MAX);
    let deciding = conclusions.iter().filter(|conclusion| DECIDING.contains(&conclusion.metric));
    deciding.filter(is_open).map(|conclusion| conclusion.metric).next()
}

/// Returns the first metric with a limit relative to a baseline that does not have the metric: it is not judged
/// either.
pub(super) fn without_reference(conclusions: &[Conclusion], limits: &Limits) -> Option<Metric> {
    let is_open = |conclusion: &&Conclusion| {
        conclusion.reference.is_none() && matches!(limits.of(conclusion.metric), Some(Limit::Relative(_)))
    };
    conclusions.iter().find(is_open).map(|conclusion| conclusion.metric)
}

/// Returns whether a metric's window was set by a limit or a baseline, and is not only the default.
pub(super) fn is_set(metric: Metric, limits: &Limits, baseline: Option<&Baseline>) -> bool {
    baseline.is_some() || matches!(limits.of(metric), Some(Limit::Absolute { .. }))
}

/// The window of a metric; none when it is free.
pub(super) fn of(
    metric: Metric,
    limits: &Limits,
    baseline: Option<&Baseline>,
    ops: Option<u64>,
) -> Option<Window> {
    let spread = baseline.and_then(|baseline| baseline.spread(metric));
    match (limits.of(metric), spread) {
        (Some(Limit::Absolute { min, max }), _) => {
            Some(Window { min: min.unwrap_or(0), max: max.unwrap_or(u64::MAX) })
        }
        (Some(Limit::Relative(tolerance)), Some(spread)) => {
            Some(around(spread.min, spread.min, tolerance.of(spread.min)))
        }
        // Nothing to be relative to.
        (Some(Limit::Relative(_)), None) | (Some(Limit::None), _) => None,
        (None, spread) => match metric {
            Metric::Allocations | Metric::Objects => {
                spread.map(|s| around(s.min, s.min, stray_allocations(ops)))
            }
            Metric::ObjectBytes => {
                let slack = ops.unwrap_or(0).saturating_mul(OBJECT_BYTES_PER_OPERATION);
                spread.map(|s| around(s.min, s.min, slack.saturating_add(RUNTIME_BYTES)))
            }
            Metric::RemainingObjects => spread.map_or(Some(exactly(0)), |s| Some(exactly(s.min))),
            Metric::RemainingObjectBytes => {
                let accepted = spread.map_or(0, |s| s.min);
                Some(around(accepted, accepted, RUNTIME_BYTES_LEFT))
            }
            Metric::Remaining | Metric::Descriptors => {
                let accepted = spread.map_or((0, 0), |s| (s.min, s.max));
                // What only some runs leave was accepted with the baseline as a whole.
                let max = if runs_per_hundred(ops) > 1 { accepted.1 } else { accepted.0 };
                Some(Window { min: accepted.0, max })
            }
            Metric::Bytes
            | Metric::Peak
            | Metric::RemainingBytes
            | Metric::Temporary
            | Metric::PeakRss
            | Metric::Wall => None,
        },
    }
}

fn exactly(value: u64) -> Window {
    Window { min: value, max: value }
}

fn around(low: u64, high: u64, slack: u64) -> Window {
    Window { min: low.saturating_sub(slack), max: high.saturating_add(slack) }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;

//! Formats a check's metrics: in full for a run, in thousandths for an operation.

use crate::{diff, grouped};
use mallow_gate::measurement::Metric;
use mallow_gate::result::{Conclusion, TestResult};
use mallow_view::Measure;
use std::num::NonZeroU64;

/// Returns the number of operations in a run of the test; `None` if it is not known.
pub(crate) fn operations(test: &TestResult) -> Option<NonZeroU64> {
    NonZeroU64::new(test.measurement.as_ref()?.ops?)
}

/// Formats `+1.000/op`, or `+1,000/run` if the number of operations is not known.
pub(crate) fn change(metric: Metric, difference: i128, ops: Option<NonZeroU64>) -> String {
    let per = ops.unwrap_or(NonZeroU64::MIN);
    let size = difference.unsigned_abs();
    let text = if size > 0 && size * 1000 < u128::from(per.get()) {
        let unit = if is_bytes(metric) { " B" } else { "" };
        format!("{}<0.001{unit}", if difference > 0 { '+' } else { '-' })
    } else {
        diff::signed(measure(metric), difference, per)
    };
    format!("{text}/{}", each(ops))
}

/// Returns what metrics are divided by, after a slash.
pub(crate) fn each(ops: Option<NonZeroU64>) -> &'static str {
    if ops.is_some() { "op" } else { "run" }
}

/// Formats `3.000`; empty if the number of operations is not known.
pub(crate) fn per_operation(conclusion: &Conclusion, ops: Option<NonZeroU64>) -> String {
    let per = |ops| match conclusion.spread.min {
        0 => "0".to_owned(),
        value if u128::from(value) * 1000 < u128::from(NonZeroU64::get(ops)) => "<0.001".to_owned(),
        value => diff::value(measure(conclusion.metric), value, ops),
    };
    // With one operation per run the division says nothing.
    ops.filter(|ops| ops.get() > 1).map(per).unwrap_or_default()
}

/// Formats `2,000 → 3,000`, or one value if there is no baseline or nothing changed.
pub(crate) fn from_baseline(conclusion: &Conclusion) -> String {
    let now = grouped(conclusion.spread.min);
    match conclusion.reference {
        Some(before) if before != conclusion.spread.min => format!("{} → {now}", grouped(before)),
        _ => now,
    }
}

/// Formats in how many runs the minimum occurred, `10 of 10`; if others had more, also the largest difference: `3 of 20, +12`.
pub(crate) fn steadiness(conclusion: &Conclusion) -> String {
    let spread = conclusion.spread;
    let above = match spread.max.saturating_sub(spread.min) {
        0 => String::new(),
        range => format!(", +{}", grouped(range)),
    };
    format!("{} of {}{above}", spread.at_min, spread.runs)
}

fn is_bytes(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Bytes
            | Metric::Peak
            | Metric::RemainingBytes
            | Metric::ObjectBytes
            | Metric::RemainingObjectBytes
            | Metric::PeakRss
    )
}

/// Returns the measure with the same format as the metric.
fn measure(metric: Metric) -> Measure {
    if is_bytes(metric) { Measure::Bytes } else { Measure::Allocations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_gate::result::{Position, Spread};

    fn conclusion(min: u64, max: u64, at_min: u32, reference: Option<u64>) -> Conclusion {
        Conclusion {
            metric: Metric::Allocations,
            spread: Spread { min, mode: min, max, at_min, runs: 10 },
            reference,
            window: None,
            position: Position::Free,
        }
    }

    #[test]
    fn changes_are_per_operation() {
        let thousand = NonZeroU64::new(1000);
        assert_eq!(change(Metric::Allocations, 1000, thousand), "+1.000/op");
        assert_eq!(change(Metric::Allocations, -1_234_567, thousand), "-1,234.567/op");
        assert_eq!(change(Metric::Remaining, 1000, None), "+1,000/run");
        assert_eq!(change(Metric::Bytes, 16_000, thousand), "+16.000 B/op");
        assert_eq!(change(Metric::RemainingBytes, 2048, None), "+2.00 KiB/run");
        assert_eq!(change(Metric::Descriptors, 0, thousand), "0/op");
    }

    #[test]
    fn what_is_too_little_to_write_is_not_nothing() {
        let million = NonZeroU64::new(1_000_000);
        assert_eq!(change(Metric::Allocations, 999, million), "+<0.001/op");
        assert_eq!(change(Metric::Bytes, -1, million), "-<0.001 B/op");
        assert_eq!(change(Metric::Allocations, 1000, million), "+0.001/op");
        assert_eq!(per_operation(&conclusion(999, 999, 10, None), million), "<0.001");
        assert_eq!(per_operation(&conclusion(0, 0, 10, None), million), "0");
    }

    #[test]
    fn a_test_stands_beside_its_baseline() {
        assert_eq!(from_baseline(&conclusion(3000, 3000, 10, Some(2000))), "2,000 → 3,000");
        assert_eq!(from_baseline(&conclusion(3000, 3000, 10, Some(3000))), "3,000");
        assert_eq!(from_baseline(&conclusion(3000, 3000, 10, None)), "3,000");
        assert_eq!(per_operation(&conclusion(3050, 3050, 10, None), NonZeroU64::new(1000)), "3.050");
        assert_eq!(per_operation(&conclusion(3050, 3050, 10, None), NonZeroU64::new(1)), "");
        assert_eq!(per_operation(&conclusion(3050, 3050, 10, None), None), "");
    }

    #[test]
    fn steadiness_tells_how_much_more_the_worst_run_had() {
        assert_eq!(steadiness(&conclusion(5, 5, 10, None)), "10 of 10");
        assert_eq!(steadiness(&conclusion(5, 1017, 3, None)), "3 of 10, +1,012");
    }
}

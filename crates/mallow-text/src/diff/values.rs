//! Values, differences and shares as a diff shows them.

use crate::{grouped, metric};
use mallow_base::Bytes;
use mallow_stacks::{Level, Metric, Unit};
use mallow_view::Measure;
use mallow_view::diff::Change;
use std::num::NonZeroU64;

/// Formats a metric, divided by the number of operations. A peak is not: it is what was live at one moment, however often something was done.
pub(crate) fn value(measure: impl Metric, value: u64, per: NonZeroU64) -> String {
    if per == NonZeroU64::MIN || measure.word() == Measure::Peak.word() {
        return metric(measure, value);
    }
    if measure.unit() == Unit::Nanoseconds {
        return metric(measure, value / per);
    }
    if measure.unit() != Unit::Bytes {
        return thousandths(u128::from(value), per);
    }
    let whole = value / per;
    if whole >= 1024 {
        Bytes(whole).to_string()
    } else {
        format!("{} B", thousandths(u128::from(value), per))
    }
}

/// Formats `1,234.567`, truncated and not rounded, so that what is shown never exceeds the value.
fn thousandths(value: u128, per: NonZeroU64) -> String {
    let per = u128::from(per.get());
    let whole = u64::try_from(value / per).unwrap_or(u64::MAX);
    format!("{}.{:03}", grouped(whole), value % per * 1000 / per)
}

/// Formats a difference with its sign; `0` has none.
pub(crate) fn signed(measure: impl Metric, difference: i128, per: NonZeroU64) -> String {
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    match difference {
        0 => "0".to_owned(),
        1.. => format!("+{}", value(measure, size, per)),
        _ => format!("-{}", value(measure, size, per)),
    }
}

/// Formats the difference as a percentage of before; empty if there is none or before is 0.
pub(crate) fn percent(change: Change) -> String {
    let difference = change.difference();
    if difference == 0 || change.before == 0 {
        return String::new();
    }
    let percent = difference as f64 * 100.0 / change.before as f64;
    match percent.abs() {
        0.0..0.01 => format!("{}<0.01%", if difference > 0 { '+' } else { '-' }),
        0.01..0.1 => format!("{percent:+.2}%"),
        0.1..10_000.0 => format!("{percent:+.1}%"),
        _ => format!("× {}", grouped(change.after / change.before)),
    }
}

/// Returns the confidence of a match, as a few characters.
pub(crate) fn mark(level: Level) -> String {
    match level {
        Level::Same => "=".to_owned(),
        Level::Lines => "≈ lines".to_owned(),
        Level::Files => "≈ files".to_owned(),
        Level::Inlining => "≈ inlining".to_owned(),
        Level::Renamed => "≈ renamed".to_owned(),
        Level::Frames => "~ frames".to_owned(),
        Level::Similar(percent) => format!("~ {percent} %"),
    }
}

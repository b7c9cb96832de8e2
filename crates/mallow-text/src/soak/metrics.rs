//! Formats a soak's metrics: bytes per request, sizes that may be negative, long times.

use crate::grouped;
use mallow_base::{Bytes, Micros};
use mallow_evidence::Phase;
use mallow_growth::Shape;
use mallow_view::soak::{SeriesRow, SeriesUnit};

/// Formats `16.0`, `0.70`, `-3.2`: bytes per request, or any other small number.
pub(crate) fn small(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if !value.is_finite() => return "?".to_owned(),
        _ if size < 0.005 => return "0".to_owned(),
        _ if size < 9.995 => format!("{size:.2}"),
        _ if size < 999.95 => format!("{size:.1}"),
        _ => grouped(size.round() as u64),
    };
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Formats `16.0 bytes`, `64.0 KiB`.
pub(crate) fn bytes_in_words(value: f64) -> String {
    if value.abs() < 10_240.0 { format!("{} bytes", small(value)) } else { size(value) }
}

/// Formats `1.50 MiB`, `-4.00 KiB`.
pub(crate) fn size(value: f64) -> String {
    let text = Bytes(value.abs().round() as u64).to_string();
    if value <= -0.5 { format!("-{text}") } else { text }
}

/// Formats the same with a sign before an increase.
pub(crate) fn signed_size(value: f64) -> String {
    if value >= 0.5 { format!("+{}", size(value)) } else { size(value) }
}

/// Formats `45 s`, `12 min`, `9 h 2 min`, `12 days`, `3 years`.
pub(crate) fn long_time(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    match seconds {
        _ if !seconds.is_finite() || seconds > 200.0 * 365.0 * DAY => "centuries".to_owned(),
        _ if seconds >= 730.0 * DAY => format!("{:.0} years", seconds / (365.0 * DAY)),
        _ if seconds >= 2.0 * DAY => format!("{:.0} days", seconds / DAY),
        _ if seconds >= 60.0 => Micros((seconds * 1e6) as u64).to_string(),
        _ => format!("{:.0} s", seconds),
    }
}

/// Formats a level of a series.
pub(crate) fn level(row: &SeriesRow, value: f64) -> String {
    match row.unit {
        SeriesUnit::Bytes => size(value),
        SeriesUnit::Count => grouped(value.max(0.0).round() as u64),
    }
}

/// Formats microseconds that may be the mean of two.
pub(crate) fn micros(value: f64) -> String {
    Micros(value.max(0.0).round() as u64).to_string()
}

/// Describes a trend in one or two words. A series that rises by less than the threshold has not levelled off.
pub(crate) fn course(shape: Shape, per_request_low: f64) -> &'static str {
    match shape {
        Shape::RoseThenFlat | Shape::Flat if per_request_low > 0.0 => "within limit",
        Shape::Grows => "grows",
        Shape::Doubles => "doubles",
        Shape::RoseThenFlat => "levelled off",
        Shape::Flat => "flat",
        Shape::Falls => "falls",
        Shape::Unclear => "unclear",
    }
}

/// Describes a phase in one word.
pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Preflight => "preflight",
        Phase::Start => "start",
        Phase::Idle => "idle",
        Phase::Burst => "burst",
        Phase::WarmUp => "warm-up",
        Phase::Measured => "load",
        Phase::IdleControl => "idle",
        Phase::Snapshots => "snapshots",
        Phase::Stop => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_metrics_keep_three_digits() {
        let texts = [0.0, 0.004, 0.7, 9.99, 9.996, 16.04, -3.2, 123.45, 999.96, 12_345.6].map(small);
        assert_eq!(texts, ["0", "0", "0.70", "9.99", "10.0", "16.0", "-3.20", "123.5", "1,000", "12,346"]);
        assert_eq!(small(f64::NAN), "?");
        assert_eq!(bytes_in_words(16.0), "16.0 bytes");
        assert_eq!(bytes_in_words(65_536.0), "64.0 KiB");
    }

    #[test]
    fn what_falls_has_its_sign() {
        assert_eq!(
            [size(-4096.0), size(-0.2), signed_size(4096.0), signed_size(0.0)],
            ["-4.00 KiB", "0 B", "+4.00 KiB", "0 B"]
        );
    }

    #[test]
    fn times_are_as_coarse_as_plans() {
        let times = [12.0, 90.0, 32_520.0, 864_000.0, 1e9, 1e12, f64::INFINITY].map(long_time);
        assert_eq!(
            times,
            ["12 s", "1 min 30 s", "9 h 2 min", "10 days", "32 years", "centuries", "centuries"]
        );
    }
}

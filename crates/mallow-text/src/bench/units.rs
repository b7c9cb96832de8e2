//! Amounts in a table: times in one unit, bytes, counts.

use mallow_base::{Bytes, Count, grouped};
use mallow_stacks::Unit;

/// A unit of time, named as in hyperfine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// µs.
    Microsecond,
    /// ms.
    Millisecond,
    /// s.
    Second,
}

impl TimeUnit {
    /// All units.
    pub const ALL: [TimeUnit; 3] = [TimeUnit::Microsecond, TimeUnit::Millisecond, TimeUnit::Second];

    /// Returns its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            TimeUnit::Microsecond => "microsecond",
            TimeUnit::Millisecond => "millisecond",
            TimeUnit::Second => "second",
        }
    }

    /// Returns its symbol.
    pub fn letters(self) -> &'static str {
        match self {
            TimeUnit::Microsecond => "µs",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Second => "s",
        }
    }

    /// Converts nanoseconds to this unit.
    pub fn of_ns(self, ns: f64) -> f64 {
        match self {
            TimeUnit::Microsecond => ns / 1e3,
            TimeUnit::Millisecond => ns / 1e6,
            TimeUnit::Second => ns / 1e9,
        }
    }

    /// Returns the unit that suits a time.
    pub fn suiting(ns: f64) -> TimeUnit {
        match ns {
            _ if ns >= 1e9 => TimeUnit::Second,
            _ if ns >= 1e6 || ns == 0.0 => TimeUnit::Millisecond,
            _ => TimeUnit::Microsecond,
        }
    }

    /// Returns the number of decimals, as in hyperfine.
    pub fn digits(self) -> usize {
        if self == TimeUnit::Second { 3 } else { 1 }
    }
}

/// Formats an amount with its unit.
pub(super) fn with_unit(unit: Unit, value: f64, time: Option<TimeUnit>) -> String {
    match unit {
        Unit::Nanoseconds => {
            let time = time.unwrap_or_else(|| TimeUnit::suiting(value));
            format!("{} {}", amount(unit, value, value, Some(time)), time.letters())
        }
        _ => amount(unit, value, value, time),
    }
}

/// Formats an amount without its unit, in the unit that suits `like`, beside which it is shown.
pub(super) fn amount(unit: Unit, value: f64, like: f64, time: Option<TimeUnit>) -> String {
    match unit {
        Unit::Nanoseconds => {
            let time = time.unwrap_or_else(|| TimeUnit::suiting(like));
            format!("{:.*}", time.digits(), time.of_ns(value))
        }
        Unit::Bytes => Bytes(value.round() as u64).to_string(),
        // A number that a program printed, or the deviation of small counts.
        Unit::Count if value.abs() < 10.0 && value.fract() != 0.0 => format!("{value:.2}"),
        Unit::Count if value < 0.0 || value.abs() < 1000.0 => format!("{value:.0}"),
        Unit::Count if value < 1e6 => grouped(value.round() as u64),
        Unit::Count => Count(value.round() as u64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them_or_the_one_asked_for() {
        assert_eq!(with_unit(Unit::Nanoseconds, 1.5e6, None), "1.5 ms");
        assert_eq!(with_unit(Unit::Nanoseconds, 2.5e9, None), "2.500 s");
        assert_eq!(with_unit(Unit::Nanoseconds, 950.0, None), "0.9 µs");
        assert_eq!(with_unit(Unit::Nanoseconds, 1.5e6, Some(TimeUnit::Second)), "0.002 s");
        assert_eq!(amount(Unit::Nanoseconds, 5e5, 1.5e9, None), "0.001");
    }

    #[test]
    fn counts_are_whole_or_short() {
        assert_eq!(amount(Unit::Count, 1234.4, 0.0, None), "1,234");
        assert_eq!(amount(Unit::Count, 2.55, 0.0, None), "2.55");
        assert_eq!(amount(Unit::Bytes, 2048.0, 0.0, None), "2.00 KiB");
    }
}

//! Metrics as people read them: three significant digits, the unit beside the number.
//!
//! Bytes use powers of 1024 (KiB, MiB), as `/proc` and `free` do; counts use powers of 1000.
//! These types only format. Arithmetic stays on the plain integers, and is [`add_fields`](crate::add_fields) for many of them.

use std::fmt;

/// Adds fields of one value to the same fields of another. A sum that does not fit stays at the largest number: only a damaged
/// file has such metrics.
#[macro_export]
macro_rules! add_fields {
    ($to:expr, $from:expr; $($field:ident),+) => {
        $($to.$field = $to.$field.saturating_add($from.$field);)+
    };
}

/// A number of bytes, shown as `512 B`, `1.50 KiB`, `73.4 MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A number of things, shown in full up to 99,999 and as `1.23 M` above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A duration in microseconds, shown as `850 µs`, `12.3 ms`, `4.56 s`, `3 min 20 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

/// A share of a whole, shown as `12.3%`; a whole of zero shows as `-`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent {
    /// The part.
    pub part: u64,
    /// The whole it is part of.
    pub whole: u64,
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let (value, unit) = scale(self.0 as f64, 1024.0, UNITS.len() - 1);
        f.pad(&format!("{} {}", three_digits(value), UNITS[unit]))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
        if self.0 < 100_000 {
            return f.pad(&grouped(self.0));
        }
        let (value, unit) = scale(self.0 as f64, 1000.0, UNITS.len() - 1);
        f.pad(&format!("{} {}", three_digits(value), UNITS[unit]))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..1_000 => format!("{} µs", self.0),
            1_000..1_000_000 => format!("{} ms", three_digits(self.0 as f64 / 1e3)),
            1_000_000..60_000_000 => format!("{} s", three_digits(self.0 as f64 / 1e6)),
            _ => {
                let seconds = self.0 / 1_000_000;
                match seconds / 3600 {
                    0 => format!("{} min {} s", seconds / 60, seconds % 60),
                    hours => format!("{hours} h {} min", seconds % 3600 / 60),
                }
            }
        };
        f.pad(&text)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.whole == 0 {
            return f.pad("-");
        }
        f.pad(&format!("{:.1}%", self.part as f64 * 100.0 / self.whole as f64))
    }
}

/// Divides by `base` until the value, rounded to three digits, is below it; gives the value and how often.
fn scale(mut value: f64, base: f64, unit_max: usize) -> (f64, usize) {
    let mut unit = 0;
    while unit < unit_max && value >= base - 0.5 {
        value /= base;
        unit += 1;
    }
    (value, unit)
}

/// `1.23`, `12.3`, `123`, `1023`.
fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Bytes as lower-case hexadecimal digits, the way build ids are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every digit, in groups of three: `12,345`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_three_digits_and_never_show_1024_of_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10 * 1024, "10.0 KiB"),
            (1024 * 1024 - 1, "1.00 MiB"),
            (3 << 30, "3.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn counts_are_whole_while_they_can_be_read() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (99_999, "99,999"),
            (100_000, "100 k"),
            (12_345_678, "12.3 M"),
        ] {
            assert_eq!(Count(count).to_string(), text);
        }
    }

    #[test]
    fn durations_choose_their_unit() {
        for (micros, text) in [
            (7, "7 µs"),
            (1_500, "1.50 ms"),
            (2_500_000, "2.50 s"),
            (200_000_000, "3 min 20 s"),
            (7_260_000_000, "2 h 1 min"),
        ] {
            assert_eq!(Micros(micros).to_string(), text);
        }
    }

    #[test]
    fn a_share_of_nothing_is_a_dash() {
        assert_eq!(Percent { part: 1, whole: 0 }.to_string(), "-");
        assert_eq!(Percent { part: 1, whole: 8 }.to_string(), "12.5%");
    }

    #[test]
    fn metrics_obey_width() {
        assert_eq!(format!("{:>10}|{:<8}|", Bytes(2048), Count(5)), "  2.00 KiB|5       |");
    }
}

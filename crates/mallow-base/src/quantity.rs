//! Times and sizes as people type them and as tools print them: one grammar for all flags, files and readers.

use std::time::Duration;

/// Units of time in microseconds. Both signs for micro: the one of Latin-1, and the Greek letter.
const TIMES: [(&str, f64); 10] = [
    ("d", 8.64e10),
    ("h", 3.6e9),
    ("min", 6e7),
    ("m", 6e7),
    ("s", 1e6),
    ("ms", 1e3),
    ("us", 1.0),
    ("µs", 1.0),
    ("μs", 1.0),
    ("ns", 1e-3),
];

/// Microseconds of `1.5s`, `200 ms`, `2min` or, as Go writes it, `1m30s`. Every number has a unit; none for what is no
/// time or below 0.
pub fn micros(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    let is_empty = rest.is_empty();
    while !rest.is_empty() {
        let (value, behind) = scientific(rest)?;
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (_, factor) = TIMES.iter().find(|(name, _)| *name == behind[..end].trim())?;
        total += value * factor;
        rest = &behind[end..];
    }
    (!is_empty && total.is_finite() && total >= 0.0).then_some(total)
}

/// The same as a duration; none for what is too long for one.
pub fn duration(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(micros(text)? / 1e6).ok()
}

/// The same, or a number of seconds without a unit. A hundred years are the most: more is a typo, and more than clocks can
/// represent.
pub fn time(text: &str) -> Option<Duration> {
    const MICROS_MAX: f64 = 3.2e15;
    let bare =
        || number(text.trim()).filter(|(_, behind)| behind.is_empty()).map(|(seconds, _)| seconds * 1e6);
    let micros = micros(text).or_else(bare).filter(|micros| *micros <= MICROS_MAX);
    micros.map(|micros| Duration::from_secs_f64(micros / 1e6))
}

/// How many nanoseconds a unit of time has.
pub fn time_unit_ns(unit: &str) -> Option<u64> {
    TIMES.iter().find(|(name, _)| *name == unit).map(|(_, micros)| (micros * 1e3) as u64)
}

/// Bytes of `64MiB`, `1.5 GB`, `512K` (which is binary) or `7`.
pub fn bytes(text: &str) -> Option<f64> {
    let (value, unit) = number(text.trim())?;
    Some(value * byte_unit(unit.trim())? as f64)
}

/// The same as a count, without what is less than a byte; none for more than a count can hold.
pub fn whole_bytes(text: &str) -> Option<u64> {
    const BYTES_MAX: f64 = 1.8e19;
    bytes(text).filter(|bytes| *bytes < BYTES_MAX).map(|bytes| bytes as u64)
}

/// How many bytes a unit of size has. No unit is a byte.
pub fn byte_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "" | "B" => 1,
        "KiB" | "K" | "k" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    })
}

/// The number that a text begins with, and what stands behind it.
pub fn number(text: &str) -> Option<(f64, &str)> {
    split(text, |_, c| c.is_ascii_digit() || c == '.')
}

/// The same where the number may have a sign, or an exponent as in `1e3`.
fn scientific(text: &str) -> Option<(f64, &str)> {
    split(text, |before, c| {
        let is_first = before.is_empty() || before.ends_with(['e', 'E']);
        c.is_ascii_digit()
            || c == '.'
            || (is_first && "+-".contains(c))
            || (!before.is_empty() && "eE".contains(c))
    })
}

fn split(text: &str, goes_on: impl Fn(&str, char) -> bool) -> Option<(f64, &str)> {
    let end = text.char_indices().find(|(at, c)| !goes_on(&text[..*at], *c)).map_or(text.len(), |(at, _)| at);
    let value: f64 = text[..end].parse().ok()?;
    value.is_finite().then_some((value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every spelling that any flag, file or reader has taken.
    #[test]
    fn times_have_units() {
        for (text, us) in [
            ("3s", 3e6),
            ("500ms", 5e5),
            ("1.5m", 9e7),
            ("1m30s", 9e7),
            ("1m2.5s", 6.25e7),
            ("1m 30 s", 9e7),
            ("8h", 2.88e10),
            ("2d", 1.728e11),
            ("10min", 6e8),
            ("60 s", 6e7),
            (" 0.25s ", 2.5e5),
            ("300us", 300.0),
            ("7 µs", 7.0),
            ("7μs", 7.0),
            ("250ns", 0.25),
            (".5s", 5e5),
            ("1.s", 1e6),
            ("+1s", 1e6),
            ("1e3ms", 1e6),
            ("2.5E-1s", 2.5e5),
            ("9007199254740991us", 9_007_199_254_740_991.0),
            ("0s", 0.0),
        ] {
            assert_eq!(micros(text), Some(us), "{text}");
        }
        for text in [
            "", "12", "s", "-1s", "1 parsec", "1h30", "1.2.3s", "1e400h", "infs", "nans", "µ", "10%", "1-2s",
            "1em",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("123ms"), Some(Duration::from_millis(123)));
        assert_eq!(duration("1e30h"), None);
        assert_eq!(
            ["1.5", "1.5s", "3e9s", "1h30", ""].map(|text| time(text).map(|time| time.as_millis())),
            [Some(1500), Some(1500), Some(3_000_000_000_000), None, None]
        );
        assert_eq!(time("4e9s"), None, "more than a hundred years");
        let units = ["ns", "us", "ms", "s", "m", "min", "h", "d", "", "y"].map(time_unit_ns);
        let seconds = |s: u64| Some(s * 1_000_000_000);
        let (minute, hour, day) = (seconds(60), seconds(3600), seconds(86_400));
        let small = [Some(1), Some(1000), Some(1_000_000), seconds(1)];
        assert_eq!(units[..4], small);
        assert_eq!(units[4..], [minute, minute, hour, day, None, None]);
    }

    /// The plugin for pytest reads sizes by the same list.
    #[test]
    fn sizes_have_units_or_are_bytes() {
        let mut seen = [0, 0];
        for line in include_str!("quantity/sizes.txt").lines().filter(|line| !line.starts_with('#')) {
            let (text, size) = line.split_once('|').expect("a size and its bytes");
            let size = (size != "none").then(|| size.parse().expect("a number of bytes"));
            assert_eq!(whole_bytes(text), size, "{text:?}");
            seen[usize::from(size.is_some())] += 1;
        }
        assert_eq!(seen, [18, 29], "none and sizes");
        assert_eq!(bytes("0.5B"), Some(0.5));
        let units = ["", "B", "k", "K", "KiB", "kB", "KB", "Kb", "E"].map(byte_unit);
        let (kibi, kilo) = (Some(1024), Some(1000));
        assert_eq!(units, [Some(1), Some(1), kibi, kibi, kibi, kilo, kilo, None, None]);
    }
}

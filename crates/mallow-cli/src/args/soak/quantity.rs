//! Times, sizes and signals as people type them.

use mallow_base::quantity;
use std::ops::RangeInclusive;
use std::time::Duration;

const DURATION: &str = "a time such as 3s, 500ms, 1m30s or 8h was expected";
const SIZE: &str = "a size such as 64MiB, 1.5GiB or 512KB was expected";
const STATUS: &str = "a status from 400 to 599, or 4xx or 5xx, was expected";
const PER_REQUEST: &str = "bytes per request such as 4B/req or 1KiB/req were expected";

/// Parses `3s`, `1m30s` as Go writes it, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bare = || quantity::number(text.trim()).filter(|(_, behind)| behind.is_empty()).map(|(s, _)| s * 1e6);
    // A hundred years: more is a typo, and more than clocks can represent.
    let micros = quantity::micros(text).or_else(bare).filter(|us| (0.0..=3.2e15).contains(us));
    micros.map(|us| Duration::from_secs_f64(us / 1e6)).ok_or_else(|| DURATION.into())
}

/// Parses `64MiB`, `64MB`, `64M`, or bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let size = quantity::bytes(text).filter(|size| *size < 1.8e19);
    size.map(|size| size as u64).ok_or_else(|| SIZE.into())
}

/// Parses `4B/req`; the unit may be left out.
pub(super) fn per_request(text: &str) -> Result<f64, String> {
    let ends = ["/request", "/req"];
    let size_text = ends.iter().find_map(|end| text.trim().strip_suffix(end)).unwrap_or(text);
    quantity::bytes(size_text).ok_or_else(|| PER_REQUEST.into())
}

/// Parses `404`, or `4xx` for a range of a hundred.
pub(super) fn statuses(text: &str) -> Result<RangeInclusive<u16>, String> {
    let text = text.trim();
    let range = match text.strip_suffix("xx") {
        Some(hundred) => {
            hundred.parse().ok().and_then(|hundred: u16| hundred.checked_mul(100)).map(|low| low..=low + 99)
        }
        None => text.parse().ok().map(|status: u16| status..=status),
    };
    range.filter(|range| (400..600).contains(range.start())).ok_or_else(|| STATUS.into())
}

/// Parses a number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("a number above 0 was expected".into()),
    }
}

/// Parses `USR1`, `SIGUSR1` or `10`.
pub(super) fn signal(text: &str) -> Option<i32> {
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let by_name = (1..=31).find(|number| mallow_text::signal_name(*number).strip_prefix("SIG") == Some(name));
    by_name.or_else(|| text.parse().ok().filter(|number| (1..=64).contains(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_script_and_of_go() {
        for (text, milliseconds) in [
            ("3s", 3000),
            ("3", 3000),
            ("500ms", 500),
            ("1.5m", 90_000),
            ("1m30s", 90_000),
            ("8h", 28_800_000),
            ("2d", 172_800_000),
            ("10min", 600_000),
            (" 0.25s ", 250),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "-1s", "1 parsec", "1h30", "1.2.3s", "99999999999h", "infs", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, size) in
            [("64MiB", 64 << 20), ("512KB", 512_000), ("1.5GiB", 3 << 29), ("7", 7), ("2 M", 2 << 20)]
        {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "MiB", "64Mb", "-1", "1e9", "99999999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(per_request("4B/req"), Ok(4.0));
        assert_eq!(per_request("0.5 KiB/request"), Ok(512.0));
        assert_eq!(per_request("16"), Ok(16.0));
        assert!(per_request("4B/s").is_err());
    }

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(signal("USR1"), Some(10));
        assert_eq!(signal("SIGUSR2"), Some(12));
        assert_eq!(signal("34"), Some(34));
        assert_eq!((signal("0"), signal("65"), signal("USR9"), signal("")), (None, None, None, None));
    }

    #[test]
    fn a_rate_is_above_nothing() {
        assert_eq!(positive("0.5"), Ok(0.5));
        assert!(["0", "-1", "inf", "many"].iter().all(|text| positive(text).is_err()));
    }
}

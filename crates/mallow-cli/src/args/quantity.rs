//! Times and sizes as they are typed, with one grammar in every command: that of [`mallow_base::quantity`], and numbers
//! without a unit, which are seconds and bytes.

use mallow_base::quantity;
use std::time::Duration;

const TIME: &str = "a time such as 30s, 500ms, 1m30s or 8h was expected";
const SIZE: &str = "a size such as 64MiB, 1.5GiB or 512KB was expected";

/// Parses `30s`, `1m30s` as Go writes it, or a number of seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    quantity::time(text).ok_or_else(|| TIME.into())
}

/// Parses the same into microseconds, rounded.
pub(super) fn time_us(text: &str) -> Result<u64, String> {
    time(text).map(|time| (time.as_secs_f64() * 1e6).round() as u64)
}

/// Parses a time of at least a microsecond.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    time_at_least(text, Duration::from_micros(1), "more than no time")
}

/// Parses a time of at least `min`, which `words` say.
pub(super) fn time_at_least(text: &str, min: Duration, words: &str) -> Result<Duration, String> {
    match time(text)? {
        time if time >= min => Ok(time),
        _ => Err(format!("{words} was expected")),
    }
}

/// Parses `64MiB`, `64MB`, `64M`, or bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    quantity::whole_bytes(text).ok_or_else(|| SIZE.into())
}

/// Parses `32KiB`; a number without a unit is one of KiB, and the result too.
pub(super) fn kib(text: &str) -> Result<u64, String> {
    let bare = text.trim().parse().ok();
    let whole = || size(text).ok().filter(|bytes| bytes % 1024 == 0).map(|bytes| bytes / 1024);
    bare.or_else(whole).ok_or_else(|| "a whole number of KiB, such as 32KiB, was expected".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_go_and_of_sleep() {
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
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
            assert_eq!(time_us(text), Ok(milliseconds * 1000), "{text}");
        }
        for text in ["", "s", "-1s", "1 parsec", "1h30", "1.2.3s", "99999999999h", "infs", "nan", "10%"] {
            assert_eq!((time(text), time_us(text)), (Err(TIME.into()), Err(TIME.into())), "{text}");
        }
        assert_eq!(some_time("0s"), Err("more than no time was expected".into()));
        assert_eq!(some_time("1us"), Ok(Duration::from_micros(1)));
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("512KB", 512_000), ("1.5GiB", 3 << 29), ("7", 7), ("2 M", 2 << 20)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "64Mb", "-1", "1e9", "99999999999TiB"] {
            assert_eq!(size(text), Err(SIZE.into()), "{text}");
        }
        let kibs = ["32", "32KiB", "32k", "32768B", "0.5MiB"].map(kib);
        assert_eq!(kibs, [Ok(32), Ok(32), Ok(32), Ok(32), Ok(512)]);
        assert!(["", "1000B", "32 KB", "-1", "1.5"].iter().all(|text| kib(text).is_err()));
    }
}

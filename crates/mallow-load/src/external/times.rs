//! Times as other tools print them.

use mallow_base::quantity;

/// Converts seconds to microseconds; `None` if it is not a valid time.
pub(super) fn us_of_seconds(seconds: f64) -> Option<u64> {
    us(seconds * 1e6)
}

/// Converts nanoseconds to microseconds.
pub(super) fn us_of_ns(ns: f64) -> Option<u64> {
    us(ns / 1e3)
}

fn us(us: f64) -> Option<u64> {
    (us.is_finite() && (0.0..1e15).contains(&us)).then(|| us.round() as u64)
}

/// Parses a time such as `507.00us`, `1.2ms`, `1m2.5s` or `2.981s`, as wrk and Go print them, into seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let is_one_word = !text.contains(char::is_whitespace);
    quantity::micros(text).filter(|_| is_one_word).map(|us| us / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_added_up() {
        assert_eq!(seconds("1m2.5s"), Some(62.5));
        assert_eq!(seconds("2h"), Some(7200.0));
        assert_eq!(seconds("507.00us").and_then(us_of_seconds), Some(507));
        assert_eq!(seconds("301.2µs").and_then(us_of_seconds), Some(301));
        for nonsense in ["", "12", "s", "1.2.3s", "5 s", "3parsecs", "µ"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn no_time_is_no_time() {
        assert_eq!(us_of_seconds(f64::NAN), None);
        assert_eq!(us_of_seconds(-1.0), None);
        assert_eq!(us_of_ns(1e300), None);
    }
}

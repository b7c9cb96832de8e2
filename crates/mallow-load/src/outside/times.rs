//! Times as tools print them.

/// Microseconds of seconds; none when there is no such time.
pub(super) fn us_of_seconds(seconds: f64) -> Option<u64> {
    us(seconds * 1e6)
}

/// Microseconds of nanoseconds.
pub(super) fn us_of_ns(ns: f64) -> Option<u64> {
    us(ns / 1e3)
}

fn us(us: f64) -> Option<u64> {
    (us.is_finite() && (0.0..1e15).contains(&us)).then(|| us.round() as u64)
}

/// Seconds of a time such as `507.00us`, `1.2ms`, `1m2.5s` or `2.981s`, as wrk and Go print them.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += value
            * match &rest[..end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" | "μs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
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

//! Growth, statuses, rates and signals as they are typed for `mallow soak`.

use mallow_base::quantity;
use std::ops::RangeInclusive;

const STATUS: &str = "a status from 400 to 599, or 4xx or 5xx, was expected";
const PER_REQUEST: &str = "bytes per request such as 4B/req or 1KiB/req were expected";

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
    fn growth_is_a_size_for_each_request() {
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

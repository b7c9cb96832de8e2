//! Numbers after labels, as in summaries for people.

/// Returns the text after `label` on the line that begins with it, trimmed.
pub(super) fn after<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    output.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim)
}

/// Parses the first word after `label`.
pub(super) fn metric<T: std::str::FromStr>(output: &str, label: &str) -> Option<T> {
    after(output, label)?.split_whitespace().next()?.parse().ok()
}

/// Parses a rate or a time; `NaN` and infinities count as absent.
pub(super) fn finite(output: &str, label: &str) -> Option<f64> {
    metric::<f64>(output, label).filter(|value| value.is_finite())
}

/// Returns how many of a status distribution failed: codes from 400, and 0 for no response.
pub(super) fn failed_statuses(statuses: impl Iterator<Item = (u64, u64)>) -> u64 {
    statuses
        .filter(|(status, _)| !(100..400).contains(status))
        .fold(0, |sum, (_, count)| sum.saturating_add(count))
}

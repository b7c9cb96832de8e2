//! Metrics behind labels, as summaries for people have them.

/// What follows `label` on the line that begins with it, blanks around both left out.
pub(super) fn after<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    output.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim)
}

/// The first word that follows `label`, as a metric.
pub(super) fn metric<T: std::str::FromStr>(output: &str, label: &str) -> Option<T> {
    after(output, label)?.split_whitespace().next()?.parse().ok()
}

/// A metric of a rate or a time; those that are none (`NaN`) count as absent.
pub(super) fn finite(output: &str, label: &str) -> Option<f64> {
    metric::<f64>(output, label).filter(|value| value.is_finite())
}

/// The part of a status distribution that is no success: codes from 400, and 0 for no answer.
pub(super) fn failed_statuses(statuses: impl Iterator<Item = (u64, u64)>) -> u64 {
    statuses
        .filter(|(status, _)| !(100..400).contains(status))
        .fold(0, |sum, (_, count)| sum.saturating_add(count))
}

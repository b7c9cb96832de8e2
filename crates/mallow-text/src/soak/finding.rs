//! Findings of a soak and of a comparison, one sentence each.

use super::metrics::{bytes_in_words, size, small};
use crate::grouped;
use mallow_evidence::Series;
use mallow_growth::Finding;

/// Returns a finding as a sentence.
pub fn finding(finding: &Finding) -> String {
    match finding {
        Finding::Descriptors { more, per_request } => format!(
            "Open descriptors grow: {} more over the window, one every {}.",
            whole(*more),
            every(*per_request)
        ),
        Finding::Threads { more, per_request } => {
            format!("Threads grow: {} more over the window, one every {}.", whole(*more), every(*per_request))
        }
        Finding::Throughput { ratio } => format!(
            "The server becomes slower: its last iterations answered {:.0}% of the requests per second of the first.",
            ratio * 100.0
        ),
        Finding::Managed { per_request } => {
            format!(
                "The managed heap grows by {} per request after a collection.",
                bytes_in_words(*per_request)
            )
        }
        Finding::Limit { of, measured, allowed } => {
            let metric = if of.contains("per request") { small } else { size };
            format!("Above the limit: {of} {}, allowed {}.", metric(*measured), metric(*allowed))
        }
    }
}

/// Formats a count without fractions.
fn whole(count: f64) -> String {
    grouped(count.max(0.0).round() as u64)
}

/// Formats `request`, `40 requests`.
fn every(per_request: f64) -> String {
    let requests = (1.0 / per_request).round();
    if requests > 1.0 && requests.is_finite() {
        format!("{} requests", whole(requests))
    } else {
        "request".to_owned()
    }
}

/// Returns a sentence about a compared series that is worse.
pub(crate) fn worse(series: &Series) -> String {
    let [before, after] = [series.before, series.after].map(|value| of_series(series.unit, value));
    format!("Worse than before: {} {after}, was {before}.", series.name)
}

/// Formats a value of a comparison with its unit.
pub(crate) fn of_series(unit: &str, value: f64) -> String {
    match unit {
        "B" => size(value),
        "µs" => super::metrics::micros(value),
        "B/request" => format!("{} B", small(value)),
        "/s" => format!("{}/s", small(value)),
        _ => small(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sentences() {
        let sentence = |found| finding(&found);
        assert_eq!(
            sentence(Finding::Descriptors { more: 80.4, per_request: 0.01 }),
            "Open descriptors grow: 80 more over the window, one every 100 requests."
        );
        assert_eq!(
            sentence(Finding::Limit { of: "retained bytes", measured: 2_097_152.0, allowed: 1_048_576.0 }),
            "Above the limit: retained bytes 2.00 MiB, allowed 1.00 MiB."
        );
        assert_eq!(
            sentence(Finding::Limit { of: "growth in bytes per request", measured: 2.0, allowed: 1.0 }),
            "Above the limit: growth in bytes per request 2.00, allowed 1.00."
        );
    }
}

//! What a soak's end means for a script: the exit code, and what made it fail.

use super::figures::{bytes_in_words, size, small};
use crate::args::LowFailOn;
use crate::exit_code;
use crate::text::grouped;
use mallow_evidence::{Plane, SoakReport};
use mallow_growth::{Finding, Verdict};

/// How heavy the end weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Fine,
    Failed,
    Inconclusive,
}

/// The weight of the verdict itself.
pub(crate) fn weight(verdict: Verdict, fail_on: &[LowFailOn]) -> Weight {
    let fails_on = |word| fail_on.contains(&word);
    match verdict {
        Verdict::Leaking | Verdict::Mappings | Verdict::GrowsWhenIdle => Weight::Failed,
        Verdict::Retention if fails_on(LowFailOn::Retention) => Weight::Failed,
        Verdict::Fragmentation if fails_on(LowFailOn::Fragmentation) => Weight::Failed,
        Verdict::Plateau if fails_on(LowFailOn::Plateau) => Weight::Failed,
        Verdict::Inconclusive | Verdict::Invalid if fails_on(LowFailOn::Inconclusive) => Weight::Failed,
        Verdict::Inconclusive | Verdict::Invalid => Weight::Inconclusive,
        Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation => Weight::Fine,
    }
}

/// Whether a finding fails the soak.
pub(crate) fn is_failure(finding: &Finding, fail_on: &[LowFailOn]) -> bool {
    match finding {
        // A process has but so many of them, so what grows beyond doubt will end it.
        Finding::Descriptors { .. } | Finding::Limit { .. } => true,
        Finding::Threads { .. } => fail_on.contains(&LowFailOn::Threads),
        Finding::Throughput { .. } => fail_on.contains(&LowFailOn::Throughput),
        Finding::Managed { .. } => fail_on.contains(&LowFailOn::Managed),
    }
}

/// The exit code. A run that proves nothing does not fail by what it seems to show.
pub(crate) fn exit_code(report: &SoakReport, fail_on: &[LowFailOn]) -> u8 {
    let judgement = &report.judgement;
    let weight = weight(judgement.verdict, fail_on);
    let compared = report.comparison.iter().flat_map(|comparison| &comparison.planes);
    let fails = judgement.findings.iter().any(|finding| is_failure(finding, fail_on))
        || compared.into_iter().any(|plane| plane.worse);
    match weight {
        Weight::Inconclusive if judgement.verdict == Verdict::Invalid => exit_code::INCONCLUSIVE,
        Weight::Failed => exit_code::FAILED,
        _ if fails => exit_code::FAILED,
        Weight::Inconclusive => exit_code::INCONCLUSIVE,
        Weight::Fine => exit_code::FINE,
    }
}

/// A finding as a sentence.
pub(crate) fn finding(finding: &Finding) -> String {
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
            let figure = if of.contains("per request") { small } else { size };
            format!("Above the limit: {of} {}, allowed {}.", figure(*measured), figure(*allowed))
        }
    }
}

/// Things cannot be counted in fractions.
fn whole(count: f64) -> String {
    grouped(count.max(0.0).round() as u64)
}

/// `request`, `40 requests`.
fn every(per_request: f64) -> String {
    let requests = (1.0 / per_request).round();
    if requests > 1.0 && requests.is_finite() {
        format!("{} requests", whole(requests))
    } else {
        "request".to_owned()
    }
}

/// A compared plane that is worse, as a sentence.
pub(crate) fn worse(plane: &Plane) -> String {
    let [before, after] = [plane.before, plane.after].map(|value| of_plane(plane.unit, value));
    format!("Worse than before: {} {after}, was {before}.", plane.name)
}

/// A figure of a comparison with its unit.
pub(crate) fn of_plane(unit: &str, value: f64) -> String {
    match unit {
        "B" => size(value),
        "µs" => super::figures::micros(value),
        "B/request" => format!("{} B", small(value)),
        "/s" => format!("{}/s", small(value)),
        _ => small(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::sample;

    #[test]
    fn exit_codes_are_those_of_the_guide() {
        let code = |report: &SoakReport| exit_code(report, &[]);
        for (report, expected) in [
            (sample::leaking(), 1),
            (sample::plateau(), 0),
            (sample::clean(), 0),
            (sample::retention(), 0),
            (sample::fragmentation(), 0),
            (sample::mappings(), 1),
            (sample::grows_when_idle(), 1),
            (sample::inconclusive(), 3),
            (sample::invalid(), 3),
        ] {
            assert_eq!(code(&report), expected, "{:?}", report.judgement.verdict);
        }
    }

    #[test]
    fn words_behind_fail_on_fail() {
        for (word, report) in [
            (LowFailOn::Retention, sample::retention()),
            (LowFailOn::Fragmentation, sample::fragmentation()),
            (LowFailOn::Plateau, sample::plateau()),
            (LowFailOn::Inconclusive, sample::inconclusive()),
            (LowFailOn::Inconclusive, sample::invalid()),
        ] {
            assert_eq!(exit_code(&report, &[word]), 1, "{word:?}");
        }
        let mut report = sample::clean();
        report.judgement.findings = vec![Finding::Threads { more: 9.0, per_request: 0.001 }];
        assert_eq!(exit_code(&report, &[]), 0);
        assert_eq!(exit_code(&report, &[LowFailOn::Threads]), 1);
    }

    #[test]
    fn limits_descriptors_and_comparisons_fail_what_is_clean_but_not_what_is_invalid() {
        let limit = Finding::Limit { of: "retained bytes", measured: 2e6, allowed: 1e6 };
        let descriptors = Finding::Descriptors { more: 80.0, per_request: 0.01 };
        for found in [limit, descriptors] {
            let mut report = sample::clean();
            report.judgement.findings = vec![found.clone()];
            assert_eq!(exit_code(&report, &[]), 1);
            let mut report = sample::invalid();
            report.judgement.findings = vec![found];
            assert_eq!(exit_code(&report, &[]), 3);
        }
        assert_eq!(exit_code(&sample::compared(), &[]), 1);
    }

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

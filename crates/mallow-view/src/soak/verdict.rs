//! What a soak's end means to a script: whether it failed, and what of it.

use crate::Weight;
use mallow_base::words;
use mallow_evidence::SoakReport;
use mallow_growth::{Finding, Verdict};

/// What makes a soak fail besides a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// Memory that the allocator keeps.
    Retention,
    /// Free memory between blocks in use.
    Fragmentation,
    /// Memory that rose and stopped.
    Plateau,
    /// More threads.
    Threads,
    /// Fewer requests per second.
    Throughput,
    /// A managed heap that grows.
    Managed,
    /// No verdict.
    Inconclusive,
}

words! {
    FailOn {
        Retention = "retention",
        Fragmentation = "fragmentation",
        Plateau = "plateau",
        Threads = "threads",
        Throughput = "throughput",
        Managed = "managed",
        Inconclusive = "inconclusive",
    }
}

/// The weight of the verdict itself.
pub fn weight(verdict: Verdict, fail_on: &[FailOn]) -> Weight {
    let fails_on = |word| fail_on.contains(&word);
    match verdict {
        Verdict::Leaking | Verdict::Mappings | Verdict::GrowsWhenIdle => Weight::Failed,
        Verdict::Retention if fails_on(FailOn::Retention) => Weight::Failed,
        Verdict::Fragmentation if fails_on(FailOn::Fragmentation) => Weight::Failed,
        Verdict::Plateau if fails_on(FailOn::Plateau) => Weight::Failed,
        Verdict::Inconclusive | Verdict::Invalid if fails_on(FailOn::Inconclusive) => Weight::Failed,
        Verdict::Inconclusive | Verdict::Invalid => Weight::Inconclusive,
        Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation => Weight::Fine,
    }
}

/// Returns whether a finding fails the soak.
pub fn is_failure(finding: &Finding, fail_on: &[FailOn]) -> bool {
    match finding {
        // A process has a limited number of them, so certain growth will end it.
        Finding::Descriptors { .. } | Finding::Limit { .. } => true,
        Finding::Threads { .. } => fail_on.contains(&FailOn::Threads),
        Finding::Throughput { .. } => fail_on.contains(&FailOn::Throughput),
        Finding::Managed { .. } => fail_on.contains(&FailOn::Managed),
    }
}

/// Returns the weight of a soak. An invalid run does not fail by what it seems to show.
pub fn outcome(report: &SoakReport, fail_on: &[FailOn]) -> Weight {
    let conclusion = &report.conclusion;
    let weight = weight(conclusion.verdict, fail_on);
    let compared = report.comparison.iter().flat_map(|comparison| &comparison.series_list);
    let fails = conclusion.findings.iter().any(|finding| is_failure(finding, fail_on))
        || compared.into_iter().any(|series| series.worse);
    match weight {
        Weight::Inconclusive if conclusion.verdict == Verdict::Invalid => Weight::Inconclusive,
        Weight::Failed => Weight::Failed,
        _ if fails => Weight::Failed,
        Weight::Inconclusive => Weight::Inconclusive,
        Weight::Fine => Weight::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::soak as sample;

    #[test]
    fn exit_codes_are_those_of_the_guide() {
        let code = |report: &SoakReport| outcome(report, &[]).exit_code();
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
            assert_eq!(code(&report), expected, "{:?}", report.conclusion.verdict);
        }
    }

    #[test]
    fn words_behind_fail_on_fail() {
        for (word, report) in [
            (FailOn::Retention, sample::retention()),
            (FailOn::Fragmentation, sample::fragmentation()),
            (FailOn::Plateau, sample::plateau()),
            (FailOn::Inconclusive, sample::inconclusive()),
            (FailOn::Inconclusive, sample::invalid()),
        ] {
            assert_eq!(outcome(&report, &[word]), Weight::Failed, "{word:?}");
        }
        let mut report = sample::clean();
        report.conclusion.findings = vec![Finding::Threads { more: 9.0, per_request: 0.001 }];
        assert_eq!(outcome(&report, &[]), Weight::Fine);
        assert_eq!(outcome(&report, &[FailOn::Threads]), Weight::Failed);
    }

    #[test]
    fn limits_descriptors_and_comparisons_fail_what_is_clean_but_not_what_is_invalid() {
        let limit = Finding::Limit { of: "retained bytes", measured: 2e6, allowed: 1e6 };
        let descriptors = Finding::Descriptors { more: 80.0, per_request: 0.01 };
        for found in [limit, descriptors] {
            let mut report = sample::clean();
            report.conclusion.findings = vec![found.clone()];
            assert_eq!(outcome(&report, &[]), Weight::Failed);
            let mut report = sample::invalid();
            report.conclusion.findings = vec![found];
            assert_eq!(outcome(&report, &[]), Weight::Inconclusive);
        }
        assert_eq!(outcome(&sample::compared(), &[]), Weight::Failed);
    }
}

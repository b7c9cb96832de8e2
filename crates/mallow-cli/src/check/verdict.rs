//! What a verdict means to a script: the exit code, and whether a test has failed.

use crate::exit_code;
use mallow_gate::result::{CheckResult, Outcome, TestResult};

/// What a script should make of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Nothing is wrong.
    Fine,
    /// Nobody can tell: no verdict on what the test costs was reached.
    Inconclusive,
    /// The gate is shut.
    Failed,
}

/// How heavy a test's verdict weighs. FLAKY, MISSING and STALE tell that a comparison could not be made, not that it went
/// wrong; everything else that is not OK would let a regression or a blind test pass.
pub(crate) fn weight(test: &TestResult, allow_improvement: bool) -> Weight {
    match test.outcome {
        Outcome::Ok => Weight::Fine,
        Outcome::Improved if allow_improvement => Weight::Fine,
        Outcome::Flaky | Outcome::Missing | Outcome::Stale => Weight::Inconclusive,
        Outcome::Improved | Outcome::Regressed | Outcome::Blind | Outcome::Error => Weight::Failed,
    }
}

/// The exit code of a check. A check of no test has checked nothing, which must not pass.
pub(crate) fn exit_code(result: &CheckResult, allow_improvement: bool) -> u8 {
    match result.tests.iter().map(|test| weight(test, allow_improvement)).max() {
        Some(Weight::Fine) => exit_code::FINE,
        Some(Weight::Inconclusive) => exit_code::INCONCLUSIVE,
        Some(Weight::Failed) => exit_code::FAILED,
        None => exit_code::BAD_INPUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    fn code(outcomes: &[Outcome], allow_improvement: bool) -> u8 {
        let mut result = sample::check();
        result.tests = outcomes.iter().map(|outcome| sample::bare("t", *outcome)).collect();
        exit_code(&result, allow_improvement)
    }

    #[test]
    fn the_worst_verdict_makes_the_exit_code() {
        for (outcome, expected) in [
            (Outcome::Ok, 0),
            (Outcome::Improved, 1),
            (Outcome::Stale, 3),
            (Outcome::Missing, 3),
            (Outcome::Flaky, 3),
            (Outcome::Regressed, 1),
            (Outcome::Blind, 1),
            (Outcome::Error, 1),
        ] {
            assert_eq!(code(&[Outcome::Ok, outcome], false), expected, "{}", outcome.word());
        }
        assert_eq!(code(&[Outcome::Flaky, Outcome::Regressed, Outcome::Stale], false), 1);
        assert_eq!(code(&[Outcome::Flaky, Outcome::Improved], false), 1);
    }

    #[test]
    fn an_improvement_can_be_allowed() {
        assert_eq!(code(&[Outcome::Ok, Outcome::Improved], true), 0);
        assert_eq!(code(&[Outcome::Improved, Outcome::Missing], true), 3);
    }

    #[test]
    fn no_test_is_no_success() {
        assert_eq!(code(&[], false), 2);
    }
}

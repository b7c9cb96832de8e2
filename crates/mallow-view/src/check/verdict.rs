//! What a verdict means to a script: whether a test has failed, and a check.

use crate::Weight;
use mallow_gate::result::{CheckResult, Outcome, TestResult};

/// Returns the weight of a test's verdict. FLAKY, MISSING and STALE mean that a comparison was not possible, not that
/// it failed; everything else that is not OK would let a regression or a blind test pass.
pub fn weight(test: &TestResult, allow_improvement: bool) -> Weight {
    match test.outcome {
        Outcome::Ok => Weight::Fine,
        Outcome::Improved if allow_improvement => Weight::Fine,
        Outcome::Flaky | Outcome::Missing | Outcome::Stale => Weight::Inconclusive,
        Outcome::Improved | Outcome::Regressed | Outcome::Blind | Outcome::Error => Weight::Failed,
    }
}

/// Returns the weight of a check; `None` for a check of no test, which has checked nothing and must not pass.
pub fn outcome(result: &CheckResult, allow_improvement: bool) -> Option<Weight> {
    result.tests.iter().map(|test| weight(test, allow_improvement)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::check as sample;

    fn code(outcomes: &[Outcome], allow_improvement: bool) -> Option<u8> {
        let mut result = sample::check();
        result.tests = outcomes.iter().map(|outcome| sample::bare("t", *outcome)).collect();
        super::outcome(&result, allow_improvement).map(Weight::exit_code)
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
            assert_eq!(code(&[Outcome::Ok, outcome], false), Some(expected), "{}", outcome.word());
        }
        assert_eq!(code(&[Outcome::Flaky, Outcome::Regressed, Outcome::Stale], false), Some(1));
        assert_eq!(code(&[Outcome::Flaky, Outcome::Improved], false), Some(1));
    }

    #[test]
    fn an_improvement_can_be_allowed() {
        assert_eq!(code(&[Outcome::Ok, Outcome::Improved], true), Some(0));
        assert_eq!(code(&[Outcome::Improved, Outcome::Missing], true), Some(3));
    }

    #[test]
    fn no_test_is_no_success() {
        assert_eq!(code(&[], false), None);
    }
}

//! Blind suites, empty suites, tests that are gone.

use super::*;
use crate::judge::{Settings, judge};
use crate::limit::Limits;
use crate::measurement::Measurement;
use crate::sample::{baseline, counts};

fn named(name: &str, allocations: u64) -> Measurement {
    Measurement { name: name.to_owned(), ..counts(Some(1000), &[allocations; 10]) }
}

fn result(name: &str, before: u64, now: u64) -> TestResult {
    judge(&named(name, now), Some(&baseline(&named(name, before))), &Limits::default(), &Settings::default())
}

fn outcomes(results: &[TestResult]) -> Vec<(&str, Outcome)> {
    results.iter().map(|result| (result.name.as_str(), result.outcome)).collect()
}

#[test]
fn no_allocation_at_all_is_blind() {
    let mut results = vec![result("a", 5000, 0), result("b", 5000, 5000), result("c", 0, 0)];
    assert_eq!(mark_blind(&mut results), None);
    assert_eq!(outcomes(&results), [("a", Outcome::Blind), ("b", Outcome::Ok), ("c", Outcome::Ok)]);
    assert_eq!(
        results[0].sentences[0],
        "No allocation was seen, and the baseline has 5,000: the hooks probably do not see the program. If it is true, \
         `--update --allow-missing-counts --only a` accepts it."
    );
    assert_eq!(results[0].sentences.len(), 2, "why it is not in its window is told as well");
}

#[test]
fn all_halved_at_once_is_blind() {
    let mut results = vec![result("a", 5000, 2499), result("b", 4000, 0), result("c", 0, 0)];
    let sentence = mark_blind(&mut results);
    assert_eq!(
        sentence.as_deref(),
        Some(
            "All 2 tests with a baseline lost more than half of their allocations at once: the hooks probably no longer see \
             everything. If it is true, `--update --allow-missing-counts` accepts it."
        )
    );
    assert_eq!(outcomes(&results), [("a", Outcome::Blind), ("b", Outcome::Blind), ("c", Outcome::Ok)]);
}

#[test]
fn one_test_may_be_halved_and_half_is_not_more_than_half() {
    let mut alone = vec![result("a", 5000, 100)];
    assert_eq!((mark_blind(&mut alone), alone[0].outcome), (None, Outcome::Improved));
    let mut results = vec![result("a", 5000, 100), result("b", 5000, 2500)];
    assert_eq!(mark_blind(&mut results), None);
    let mut results = vec![result("a", 5000, 100), result("b", 5000, 5000)];
    assert_eq!(mark_blind(&mut results), None);
    let mut odd = vec![result("a", 5001, 2501), result("b", 5001, 2500)];
    assert_eq!(mark_blind(&mut odd), None);
}

#[test]
fn a_suite_without_tests_does_not_pass() {
    assert!(no_tests(&[]).is_some());
    assert!(no_tests(&[TestResult::unmeasured("gone", Outcome::Stale, String::new())]).is_some());
    assert_eq!(no_tests(&[result("a", 1, 1)]), None);
}

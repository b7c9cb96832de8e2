//! What can be seen only on the whole suite: a gate that has gone blind, tests that are gone, a suite without tests.
//!
//! A gate whose hooks no longer see the program reports fewer allocations, which looks like a win. Nobody makes
//! all programs twice as good in one change, and few make one that allocated allocate nothing at all.

use crate::measurement::Metric;
use crate::regions::name_among_others;
use crate::result::{Outcome, TestResult};
use mallow_base::grouped;
use std::path::PathBuf;

/// With fewer tests than this, a drop of all of them means nothing.
const TESTS_TO_COMPARE: usize = 2;

/// Checks the results as a whole, changes those that look blind, adds the stale ones, and returns sentences about the
/// suite. `kept` are the names and files of the baselines of the environments that the check ran in; `None` if only
/// some tests were requested: then nothing is stale.
pub fn look_over(results: &mut Vec<TestResult>, kept: Option<&[(String, PathBuf)]>) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(no_tests(results));
    sentences.extend(mark_blind(results));
    let stale = stale(results, kept.unwrap_or_default());
    results.extend(stale);
    sentences
}

/// The sentence for a suite in which nothing ran.
pub fn no_tests(results: &[TestResult]) -> Option<String> {
    let is_none = results.iter().all(|result| result.outcome == Outcome::Stale);
    is_none.then(|| "No test was run, so nothing was checked: a suite without tests cannot pass.".to_owned())
}

/// Marks tests BLIND that have no allocations any more without other evidence that they were recorded, and every test
/// if all have lost more than half of theirs at once. Returns the sentence about the latter.
pub fn mark_blind(results: &mut [TestResult]) -> Option<String> {
    for result in results.iter_mut() {
        let is_marked = result.measurement.as_ref().is_some_and(|measurement| measurement.is_marked);
        if let (Some((reference, 0)), false) = (allocations(result), is_marked) {
            let sentence = format!(
                "No allocation was seen, and the baseline has {}: the hooks probably do not see the program. If it is true, \
                 `--update --allow-missing-counts --only {}` accepts it.",
                grouped(reference),
                result.name
            );
            blind(result, sentence);
        }
    }
    let known: Vec<(u64, u64)> = results.iter().filter_map(allocations).collect();
    let is_halved = |(reference, now): &(u64, u64)| *now < reference.div_ceil(2);
    if known.len() < TESTS_TO_COMPARE || !known.iter().all(is_halved) {
        return None;
    }
    for result in results.iter_mut() {
        if allocations(result).is_some_and(|(_, now)| now > 0) {
            let sentence = "It lost more than half of its allocations, as did every other test of the suite.";
            blind(result, sentence.to_owned());
        }
    }
    Some(format!(
        "All {} tests with a baseline lost more than half of their allocations at once: the hooks probably no longer see \
         everything. If it is true, `--update --allow-missing-counts` accepts it.",
        known.len()
    ))
}

/// The baseline's allocations, if there are any, and those of today.
fn allocations(result: &TestResult) -> Option<(u64, u64)> {
    if matches!(result.outcome, Outcome::Error | Outcome::Stale | Outcome::Missing) {
        return None;
    }
    let conclusion = result.conclusions.iter().find(|conclusion| conclusion.metric == Metric::Allocations)?;
    let reference = conclusion.reference.filter(|reference| *reference > 0)?;
    Some((reference, conclusion.spread.min))
}

fn blind(result: &mut TestResult, sentence: String) {
    result.outcome = Outcome::Blind;
    result.sentences.insert(0, sentence);
}

/// A result for each baseline, by its name and file, that no test of a full run has; in the order of the names.
pub fn stale(results: &[TestResult], kept: &[(String, PathBuf)]) -> Vec<TestResult> {
    // A program that crashed did not reach its later regions: theirs are not stale.
    let failed: Vec<&str> =
        results.iter().filter(|r| r.outcome == Outcome::Error).map(|r| r.name.as_str()).collect();
    let is_known = |name: &str| {
        let is_of_failed = |failed: &&str| {
            name.strip_prefix(*failed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        results.iter().any(|result| result.name == name) || failed.iter().any(is_of_failed)
    };
    let mut stale: Vec<TestResult> = Vec::new();
    for (name, path) in kept {
        if !is_known(name) && !stale.iter().any(|result| result.name == *name) {
            let what = match has_sibling(name, results) {
                true => "a region that the test ran without: it was left out, renamed or removed.",
                false => "a test that does not exist; a renamed test needs a new one.",
            };
            let sentence = format!("{} is the baseline of {what} `--update` removes it.", path.display());
            stale.push(TestResult::unmeasured(name, Outcome::Stale, sentence));
        }
    }
    stale.sort_by(|a, b| a.name.cmp(&b.name));
    stale
}

/// Returns whether another region of the same test ran.
fn has_sibling(name: &str, results: &[TestResult]) -> bool {
    let of_regions =
        results.iter().filter_map(|result| Some((&result.name, &result.measurement.as_ref()?.region)));
    let mut tests = of_regions
        .filter(|(_, region)| !region.is_empty())
        .map(|(own, region)| own.strip_suffix(&name_among_others("", region)).unwrap_or(own));
    tests.any(|test| name == test || name.strip_prefix(test).is_some_and(|rest| rest.starts_with('.')))
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;

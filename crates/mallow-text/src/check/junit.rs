//! A check as JUnit XML.
//!
//! A test that fails the gate is a failure (the metric is outside its limits) or an error (it could not be measured).
//! An inconclusive test is skipped, which is JUnit's word for a test whose assumptions did not hold; its verdict is
//! in the message.

use super::details;
use super::text::{Page, line};
use crate::Style;
use crate::junit::{self, attribute, content};
use mallow_gate::measurement::{Metric, Run};
use mallow_gate::result::{Outcome, TestResult};
use mallow_view::Weight;
use mallow_view::check::weight;
use quick_junit::{NonSuccessKind, SerializeError, TestCase, TestCaseStatus};
use std::time::Duration;

/// The class that all tests are in.
const CLASS: &str = "mallow.check";

/// Returns the document. `name` is that of the suite.
///
/// # Errors
/// Those of the XML writer; no result can cause one.
pub fn document(page: &Page<'_>, name: &str) -> Result<String, SerializeError> {
    let result = page.result;
    let time = seconds(result.tests.iter().map(|test| test.duration_us).fold(0, u64::saturating_add));
    let mut suite = junit::suite(name, time);
    // The environment of the tests, to distinguish two reports.
    let environment = &result.environment;
    for (name, value) in [
        ("architecture", environment.architecture.clone()),
        ("libc", environment.libc.clone()),
        ("runtime", environment.runtime.clone()),
        ("allocator", environment.allocator.clone()),
        ("processors", environment.processors.to_string()),
        ("counting", environment.counting.to_string()),
    ] {
        suite.add_property((name, attribute(&value).as_str()));
    }
    suite.add_test_cases(result.tests.iter().map(|test| case(page, test)));
    if !result.sentences.is_empty() {
        suite.set_system_out(content(&result.sentences.join("\n")));
    }
    junit::document("mallow check", suite, time)
}

fn case(page: &Page<'_>, test: &TestResult) -> TestCase {
    let word = test.outcome.word();
    let why = test.sentences.first().map(|sentence| format!("{word}: {sentence}"));
    let message = why.unwrap_or_else(|| word.to_owned());
    let lines = details::lines(test, page.limit, junit::STYLE).join("\n");
    let status = match (weight(test, page.allow_improvement), test.outcome) {
        (Weight::Fine, _) => TestCaseStatus::success(),
        (Weight::Inconclusive, _) => junit::skipped(&message, &lines),
        (Weight::Failed, Outcome::Blind | Outcome::Error) => {
            junit::bad(NonSuccessKind::Error, word, &message, &lines)
        }
        (Weight::Failed, _) => junit::bad(NonSuccessKind::Failure, word, &message, &lines),
    };
    junit::case(CLASS, &test.name, seconds(test.duration_us), status, &metrics(test))
}

/// Returns the table's line and the runs, as details of a test that passed.
fn metrics(test: &TestResult) -> String {
    let Some(measurement) = &test.measurement else { return String::new() };
    let list = |metric: Metric, of: fn(&Run) -> u64| {
        let values: Vec<String> = measurement.runs.iter().map(|run| of(run).to_string()).collect();
        format!("{}: {}", metric.word(), values.join(" "))
    };
    [
        line(test, Style { width: usize::MAX, ..Style::PLAIN }).trim_end().to_owned(),
        list(Metric::Allocations, |run| run.metrics.allocations),
        list(Metric::Bytes, |run| run.metrics.bytes),
        list(Metric::Remaining, |run| run.metrics.remaining_blocks),
        list(Metric::Descriptors, |run| run.metrics.descriptors),
    ]
    .join("\n")
}

/// Rounds to whole milliseconds: the schema has three decimals of seconds.
fn seconds(duration_us: u64) -> Duration {
    Duration::from_millis(duration_us / 1000)
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;

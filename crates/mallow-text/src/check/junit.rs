//! A check as JUnit's XML.
//!
//! What shuts the gate is a failure (the test costs more, or less, than it may) or an error (it could not be measured). What
//! is inconclusive is skipped, as JUnit calls a test whose assumptions did not hold: its verdict stands in the message.

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

/// The document. `name` is the suite's.
///
/// # Errors
/// Those of the writer; there is none that a result could cause.
pub fn document(page: &Page<'_>, name: &str) -> Result<String, SerializeError> {
    let result = page.result;
    let time = seconds(result.tests.iter().map(|test| test.duration_us).fold(0, u64::saturating_add));
    let mut suite = junit::suite(name, time);
    // Where the tests ran, so that two reports can be told apart.
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

/// The table's line and the runs, for whoever opens a test that passed.
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

/// Whole milliseconds, of which the schema has thousandths of a second.
fn seconds(duration_us: u64) -> Duration {
    Duration::from_millis(duration_us / 1000)
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;

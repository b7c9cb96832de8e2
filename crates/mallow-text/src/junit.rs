//! JUnit XML, in the dialect that Jenkins, GitLab and GitHub's reporters read, written by the crate quick-junit.
//!
//! Each command decides on the cases; this file has what all documents share.

use crate::{Style, printable};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The style of the text in a failure.
pub(crate) const STYLE: Style = Style { width: 100, ..Style::PLAIN };

/// Returns the document of one suite.
pub(crate) fn document(name: &str, suite: TestSuite, time: Duration) -> Result<String, SerializeError> {
    let mut report = Report::new(name);
    report.set_time(time).add_test_suite(suite);
    report.to_string()
}

/// Returns a suite without cases.
pub(crate) fn suite(name: &str, time: Duration) -> TestSuite {
    let mut suite = TestSuite::new(attribute(name));
    suite.set_time(time);
    suite
}

/// Returns a case, with text for its output.
pub(crate) fn case(
    class: &str,
    name: &str,
    time: Duration,
    status: TestCaseStatus,
    output: &str,
) -> TestCase {
    let mut case = TestCase::new(attribute(name), status);
    case.set_classname(class).set_time(time);
    if !output.is_empty() {
        case.set_system_out(content(output));
    }
    case
}

/// Returns the status of a case that did not pass.
pub(crate) fn bad(kind: NonSuccessKind, word: &str, message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(attribute(message)).set_description(content(text));
    status
}

/// Returns the status of a case without a verdict. In the schema it has a message and no type.
pub(crate) fn skipped(message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(attribute(message)).set_description(content(text));
    status
}

/// Returns a text that is allowed in an attribute. XML cannot represent most control characters.
pub(crate) fn attribute(value: &str) -> String {
    printable(value).chars().map(|c| if is_xml(c) { c } else { '?' }).collect()
}

/// Returns a text that is allowed in an element, in several lines.
pub(crate) fn content(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || is_xml(c) { c } else { '?' }).collect()
}

fn is_xml(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

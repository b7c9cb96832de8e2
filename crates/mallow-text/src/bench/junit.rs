//! A benchmark as JUnit XML: a case for each limit, or without limits one for each comparison.
//!
//! A limit that could not be judged is an error, so that it cannot be mistaken for a pass.

use super::{Page, sentences};
use crate::junit;
use quick_junit::{NonSuccessKind, SerializeError, TestCaseStatus};
use std::time::Duration;

/// The class that all cases are in.
const CLASS: &str = "mallow.bench";

/// Returns the document.
///
/// # Errors
/// Those of the XML writer; no result can cause one.
pub fn document(page: &Page<'_>) -> Result<String, SerializeError> {
    let total_ns: u64 =
        page.session.commands.iter().flat_map(|command| &command.runs).map(|run| run.wall_ns).sum();
    let time = Duration::from_nanos(total_ns);
    let mut suite = junit::suite("mallow bench", time);
    let text = page.text(junit::STYLE);
    for row in page.limits {
        let message = super::limits::sentence(row);
        let status = match row.is_broken {
            Some(false) => TestCaseStatus::success(),
            Some(true) => junit::bad(NonSuccessKind::Failure, "limit", &message, &text),
            None => junit::bad(NonSuccessKind::Error, "unclear", &message, &text),
        };
        let name = format!("{} {}", row.limit, row.command);
        suite.add_test_case(junit::case(CLASS, &name, Duration::ZERO, status, ""));
    }
    if page.limits.is_empty() {
        for verdict in sentences::verdicts(page.session, true) {
            let status = TestCaseStatus::success();
            suite.add_test_case(junit::case(CLASS, &verdict[0], Duration::ZERO, status, &verdict.join("\n")));
        }
        suite.add_test_case(junit::case(CLASS, "measured", time, TestCaseStatus::success(), &text));
    }
    junit::document("mallow bench", suite, time)
}

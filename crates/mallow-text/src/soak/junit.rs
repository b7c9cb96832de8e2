//! A soak as JUnit XML: a case for the verdict, one for each finding, one for each compared series.
//!
//! An inconclusive or invalid result is an error, so that it cannot be mistaken for a pass.

use super::finding::{finding, worse};
use super::sentence;
use super::text::Page;
use crate::junit;
use mallow_growth::Finding;
use mallow_view::Weight;
use mallow_view::soak::{is_failure, weight};
use quick_junit::{NonSuccessKind, SerializeError, TestCaseStatus};
use std::time::Duration;

/// The class that all cases are in.
const CLASS: &str = "mallow.soak";

/// One case.
struct Case {
    name: String,
    /// The element, its type and its message; `None` for a case that passed.
    bad: Option<(NonSuccessKind, String, String)>,
    /// The full text.
    text: String,
}

/// Returns the document.
///
/// # Errors
/// Those of the XML writer; no result can cause one.
pub fn document(page: &Page<'_>) -> Result<String, SerializeError> {
    let time = Duration::try_from_secs_f64(page.report.seconds).unwrap_or_default();
    let mut suite = junit::suite(&page.report.command.join(" "), time);
    for (at, Case { name, bad, text }) in cases(page).iter().enumerate() {
        // The first case has the whole time, which cannot be divided.
        let time = if at == 0 { time } else { Duration::ZERO };
        let (status, output) = match bad {
            Some((kind, word, message)) => (junit::bad(*kind, word, message, text), ""),
            None => (TestCaseStatus::success(), text.as_str()),
        };
        suite.add_test_case(junit::case(CLASS, name, time, status, output));
    }
    junit::document("mallow soak", suite, time)
}

fn cases(page: &Page<'_>) -> Vec<Case> {
    let report = page.report;
    let conclusion = &report.conclusion;
    let word = conclusion.verdict.word().to_owned();
    let message = sentence::verdict(report);
    let bad = match weight(conclusion.verdict, page.fail_on) {
        Weight::Fine => None,
        Weight::Failed => Some((NonSuccessKind::Failure, word, message.clone())),
        Weight::Inconclusive => Some((NonSuccessKind::Error, word, message.clone())),
    };
    let text = page.text(junit::STYLE);
    let mut cases = vec![Case { name: "memory".into(), bad, text }];
    for found in &conclusion.findings {
        let message = finding(found);
        let name = kind(found).to_owned();
        let bad =
            is_failure(found, page.fail_on).then(|| (NonSuccessKind::Failure, name.clone(), message.clone()));
        cases.push(Case { name, bad, text: message });
    }
    for series in report.comparison.iter().flat_map(|comparison| &comparison.series_list) {
        let message = worse(series);
        let bad = series.worse.then(|| (NonSuccessKind::Failure, "WORSE".to_owned(), message));
        cases.push(Case { name: format!("baseline: {}", series.name), bad, text: String::new() });
    }
    cases
}

fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Descriptors { .. } => "descriptors",
        Finding::Threads { .. } => "threads",
        Finding::Throughput { .. } => "throughput",
        Finding::Managed { .. } => "managed heap",
        Finding::Limit { of, .. } => of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_samples::soak as sample;

    fn of(report: &mallow_evidence::SoakReport) -> String {
        document(&Page::of(report)).unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn the_verdict_is_a_case() {
        let leak = of(&sample::leaking());
        assert!(
            leak.contains(
                "<testsuites name=\"mallow soak\" tests=\"1\" skipped=\"0\" failures=\"1\" errors=\"0\" time=\"41.200\">"
            ),
            "{leak}"
        );
        assert!(
            leak.contains("<testcase name=\"memory\" classname=\"mallow.soak\" time=\"41.200\">"),
            "{leak}"
        );
        assert!(leak.contains("<failure message=\"LEAKING: 16.0 bytes per request"), "{leak}");
        assert!(leak.contains("session::open (session.rs:41)"), "{leak}");
        let open = of(&sample::inconclusive());
        assert!(open.contains("<error ") && open.contains(" type=\"INCONCLUSIVE\">"), "{open}");
        let clean = of(&sample::clean());
        assert!(clean.contains("tests=\"1\" skipped=\"0\" failures=\"0\" errors=\"0\""), "{clean}");
    }

    #[test]
    fn findings_and_comparisons_are_cases_too() {
        let text = of(&sample::compared());
        assert!(text.contains("tests=\"8\" skipped=\"0\" failures=\"2\" errors=\"0\""), "{text}");
        assert!(text.contains(" type=\"descriptors\">"), "{text}");
        assert!(text.contains("name=\"baseline: live heap per request\""), "{text}");
    }

    #[test]
    fn any_text_is_xml() {
        for mut report in sample::all() {
            report.command.push("a\u{1}<&>\"\u{ffff}".into());
            report.warnings.push("\u{1b}[1m ]]> &".into());
            let text = of(&report);
            let mut reader = quick_xml::Reader::from_str(&text);
            loop {
                match reader.read_event() {
                    Ok(quick_xml::events::Event::Eof) => break,
                    Ok(_) => {}
                    Err(error) => panic!("{error}: {text}"),
                }
            }
        }
    }
}

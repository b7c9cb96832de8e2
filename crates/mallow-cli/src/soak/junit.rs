//! A soak as JUnit's XML: a case for the verdict, one for each finding, one for each compared plane.
//!
//! What is inconclusive or invalid is an error: nobody may take it for a pass.

use super::sentence;
use super::text::Page;
use super::verdict::{Weight, finding, is_failure, weight, worse};
use crate::failure::Failure;
use crate::text::{Style, printable};
use mallow_growth::Finding;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// The class that all cases are in.
const CLASS: &str = "mallow.soak";
/// Columns of what is in a failure.
const WIDTH: usize = 100;

type Xml = Writer<Vec<u8>>;

/// One case.
struct Case {
    name: String,
    /// The element, its type and its message; none for a case that passed.
    bad: Option<(&'static str, String, String)>,
    /// What is told in full.
    text: String,
}

/// The document.
pub(crate) fn document(page: &Page<'_>) -> Result<String, Failure> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(page, &mut xml)?;
    let mut text = String::from_utf8(xml.into_inner())?;
    text.push('\n');
    Ok(text)
}

fn cases(page: &Page<'_>) -> Vec<Case> {
    let report = page.report;
    let judgement = &report.judgement;
    let word = judgement.verdict.word().to_owned();
    let message = sentence::verdict(report);
    let bad = match weight(judgement.verdict, page.fail_on) {
        Weight::Fine => None,
        Weight::Failed => Some(("failure", word, message.clone())),
        Weight::Inconclusive => Some(("error", word, message.clone())),
    };
    let text = page.text(Style { width: WIDTH, ..Style::PLAIN });
    let mut cases = vec![Case { name: "memory".into(), bad, text }];
    for found in &judgement.findings {
        let message = finding(found);
        let name = kind(found).to_owned();
        let bad = is_failure(found, page.fail_on).then(|| ("failure", name.clone(), message.clone()));
        cases.push(Case { name, bad, text: message });
    }
    for plane in report.comparison.iter().flat_map(|comparison| &comparison.planes) {
        let message = worse(plane);
        let bad = plane.worse.then(|| ("failure", "WORSE".to_owned(), message));
        cases.push(Case { name: format!("baseline: {}", plane.name), bad, text: String::new() });
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

fn write(page: &Page<'_>, xml: &mut Xml) -> io::Result<()> {
    let cases = cases(page);
    let count = |element: &str| {
        let bad = cases.iter().filter(|case| case.bad.as_ref().is_some_and(|(kind, _, _)| *kind == element));
        bad.count().to_string()
    };
    let (all, failures, errors) = (cases.len().to_string(), count("failure"), count("error"));
    let seconds = page.report.seconds.max(0.0);
    let time = format!("{:.3}", if seconds.is_finite() { seconds } else { 0.0 });
    let totals: [(&str, &str); 4] =
        [("tests", &all), ("failures", &failures), ("errors", &errors), ("time", &time)];
    let name = attribute(&page.report.command.join(" "));
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = xml.create_element("testsuites").with_attribute(("name", "mallow soak"));
    suites.with_attributes(totals).write_inner_content(|xml| {
        let suite = xml.create_element("testsuite").with_attribute(("name", name.as_str()));
        suite.with_attributes(totals).write_inner_content(|xml| {
            cases.iter().enumerate().try_for_each(|(at, case)| {
                // The whole time is that of the first case: it cannot be divided.
                testcase(case, if at == 0 { &time } else { "0.000" }, xml)
            })
        })?;
        Ok(())
    })?;
    Ok(())
}

fn testcase(case: &Case, time: &str, xml: &mut Xml) -> io::Result<()> {
    let name = attribute(&case.name);
    let element = xml.create_element("testcase").with_attribute(("classname", CLASS));
    let element = element.with_attributes([("name", name.as_str()), ("time", time)]);
    element.write_inner_content(|xml| {
        match &case.bad {
            Some((kind, word, message)) => {
                let message = attribute(message);
                let bad = xml.create_element(*kind).with_attribute(("type", word.as_str()));
                let text = content(&case.text);
                bad.with_attribute(("message", message.as_str()))
                    .write_text_content(BytesText::new(&text))?;
            }
            None if !case.text.is_empty() => {
                let text = content(&case.text);
                xml.create_element("system-out").write_text_content(BytesText::new(&text))?;
            }
            None => {}
        }
        Ok(())
    })?;
    Ok(())
}

/// A text that may stand in an attribute. XML has no way to write most control characters.
fn attribute(value: &str) -> String {
    printable(value).chars().map(|c| if is_xml(c) { c } else { '?' }).collect()
}

fn content(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || is_xml(c) { c } else { '?' }).collect()
}

fn is_xml(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::sample;

    fn of(report: &mallow_evidence::SoakReport) -> String {
        document(&Page { report, limit: 5, fail_on: &[], profiles: None })
            .unwrap_or_else(|failure| panic!("{}", failure.sentence()))
    }

    #[test]
    fn the_verdict_is_a_case() {
        let leak = of(&sample::leaking());
        assert!(
            leak.contains(
                "<testsuites name=\"mallow soak\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"41.200\">"
            ),
            "{leak}"
        );
        assert!(
            leak.contains("<testcase classname=\"mallow.soak\" name=\"memory\" time=\"41.200\">"),
            "{leak}"
        );
        assert!(
            leak.contains("<failure type=\"LEAKING\" message=\"LEAKING: 16.0 bytes per request"),
            "{leak}"
        );
        assert!(leak.contains("session::open (session.rs:41)"), "{leak}");
        let open = of(&sample::inconclusive());
        assert!(open.contains("<error type=\"INCONCLUSIVE\""), "{open}");
        let clean = of(&sample::clean());
        assert!(clean.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{clean}");
    }

    #[test]
    fn findings_and_comparisons_are_cases_too() {
        let text = of(&sample::compared());
        assert!(text.contains("tests=\"8\" failures=\"2\" errors=\"0\""), "{text}");
        assert!(text.contains("<failure type=\"descriptors\""), "{text}");
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
                    Ok(Event::Eof) => break,
                    Ok(_) => {}
                    Err(error) => panic!("{error}: {text}"),
                }
            }
        }
    }
}

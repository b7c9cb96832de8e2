//! A check as JUnit's XML, in the form that Jenkins, GitLab and GitHub's reporters read.
//!
//! What shuts the gate is a failure (the test costs more, or less, than it may) or an error (it could not be measured). What
//! is inconclusive is skipped, as JUnit calls a test whose assumptions did not hold: its verdict stands in the message.

use super::details;
use super::text::{Page, line};
use super::verdict::{Weight, weight};
use crate::failure::Failure;
use crate::text::{Style, printable};
use mallow_gate::measurement::{Metric, Run};
use mallow_gate::result::{Outcome, TestResult};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// Columns of what is in a failure.
const WIDTH: usize = 100;
/// The class that all tests are in.
const CLASS: &str = "mallow.check";

type Xml = Writer<Vec<u8>>;

/// The kind of element that a test that is not fine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Failure,
    Error,
    Skipped,
}

impl Kind {
    fn of(test: &TestResult, allow_improvement: bool) -> Option<Self> {
        match (weight(test, allow_improvement), test.outcome) {
            (Weight::Fine, _) => None,
            (Weight::Inconclusive, _) => Some(Kind::Skipped),
            (Weight::Failed, Outcome::Blind | Outcome::Error) => Some(Kind::Error),
            (Weight::Failed, _) => Some(Kind::Failure),
        }
    }

    fn element(self) -> &'static str {
        match self {
            Kind::Failure => "failure",
            Kind::Error => "error",
            Kind::Skipped => "skipped",
        }
    }
}

/// The document. `name` is the suite's.
pub(crate) fn document(page: &Page<'_>, name: &str) -> Result<String, Failure> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(page, name, &mut xml)?;
    let mut text = String::from_utf8(xml.into_inner())?;
    text.push('\n');
    Ok(text)
}

fn write(page: &Page<'_>, name: &str, xml: &mut Xml) -> io::Result<()> {
    let tests = &page.result.tests;
    let count = |kind| {
        let cases = tests.iter().filter(|test| Kind::of(test, page.allow_improvement) == Some(kind));
        cases.count().to_string()
    };
    let duration_us = tests.iter().map(|test| test.duration_us).fold(0, u64::saturating_add);
    let (all, time) = (tests.len().to_string(), seconds(duration_us));
    let (failures, errors, skipped) = (count(Kind::Failure), count(Kind::Error), count(Kind::Skipped));
    let totals: [(&str, &str); 4] =
        [("tests", &all), ("failures", &failures), ("errors", &errors), ("time", &time)];
    let name = attribute(name);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = xml.create_element("testsuites").with_attribute(("name", "mallow check"));
    suites.with_attributes(totals).write_inner_content(|xml| {
        let suite = xml.create_element("testsuite").with_attribute(("name", name.as_str()));
        let suite = suite.with_attributes(totals).with_attribute(("skipped", skipped.as_str()));
        suite.write_inner_content(|xml| {
            properties(page, xml)?;
            tests.iter().try_for_each(|test| testcase(page, test, xml))?;
            if !page.result.sentences.is_empty() {
                element(xml, "system-out", &page.result.sentences.join("\n"))?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Where the tests ran, so that two reports can be told apart.
fn properties(page: &Page<'_>, xml: &mut Xml) -> io::Result<()> {
    let environment = &page.result.environment;
    let list = [
        ("architecture", environment.architecture.clone()),
        ("libc", environment.libc.clone()),
        ("runtime", environment.runtime.clone()),
        ("allocator", environment.allocator.clone()),
        ("processors", environment.processors.to_string()),
        ("counting", environment.counting.to_string()),
    ];
    xml.create_element("properties").write_inner_content(|xml| {
        for (name, value) in &list {
            let value = attribute(value);
            let property = xml.create_element("property").with_attribute(("name", *name));
            property.with_attribute(("value", value.as_str())).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn testcase(page: &Page<'_>, test: &TestResult, xml: &mut Xml) -> io::Result<()> {
    let (name, time) = (attribute(&test.name), seconds(test.duration_us));
    let case = xml.create_element("testcase").with_attribute(("classname", CLASS));
    let case = case.with_attributes([("name", name.as_str()), ("time", time.as_str())]);
    let kind = Kind::of(test, page.allow_improvement);
    case.write_inner_content(|xml| {
        if let Some(kind) = kind {
            verdict(page, test, kind, xml)?;
        }
        let figures = figures(test);
        if figures.is_empty() { Ok(()) } else { element(xml, "system-out", &figures) }
    })?;
    Ok(())
}

fn verdict(page: &Page<'_>, test: &TestResult, kind: Kind, xml: &mut Xml) -> io::Result<()> {
    let word = test.outcome.word();
    let why = test.sentences.first().map(|sentence| format!("{word}: {sentence}"));
    let message = attribute(&why.unwrap_or_else(|| word.to_owned()));
    let style = Style { width: WIDTH, ..Style::PLAIN };
    let lines = details::lines(test, page.limit, style).join("\n");
    let content = BytesText::new(&lines).into_owned();
    let found = xml.create_element(kind.element());
    let found = match kind {
        // The schema gives a skipped test a message and nothing else.
        Kind::Skipped => found,
        Kind::Failure | Kind::Error => found.with_attribute(("type", word)),
    };
    found.with_attribute(("message", message.as_str())).write_text_content(content)?;
    Ok(())
}

/// The table's line and the runs, for whoever opens a test that passed.
fn figures(test: &TestResult) -> String {
    let Some(measurement) = &test.measurement else { return String::new() };
    let list = |metric: Metric, of: fn(&Run) -> u64| {
        let values: Vec<String> = measurement.runs.iter().map(|run| of(run).to_string()).collect();
        format!("{}: {}", metric.word(), values.join(" "))
    };
    [
        line(test, Style { width: usize::MAX, ..Style::PLAIN }).trim_end().to_owned(),
        list(Metric::Allocations, |run| run.figures.allocations),
        list(Metric::Bytes, |run| run.figures.bytes),
        list(Metric::Remaining, |run| run.figures.remaining_blocks),
        list(Metric::Descriptors, |run| run.figures.descriptors),
    ]
    .join("\n")
}

fn element(xml: &mut Xml, name: &str, content: &str) -> io::Result<()> {
    let content: String = content.chars().map(|c| if c == '\n' || is_xml(c) { c } else { '?' }).collect();
    xml.create_element(name).write_text_content(BytesText::new(&content))?;
    Ok(())
}

/// A text that may stand in an attribute. XML has no way to write most control characters.
fn attribute(value: &str) -> String {
    printable(value).chars().map(|c| if is_xml(c) { c } else { '?' }).collect()
}

fn is_xml(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Seconds with thousandths, as the schema has it.
fn seconds(duration_us: u64) -> String {
    format!("{}.{:03}", duration_us / 1_000_000, duration_us % 1_000_000 / 1000)
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;

//! Compares the XML with Jenkins' schema (`junit-10.xsd`) and with the verdicts.

use super::*;
use mallow_gate::result::CheckResult;
use mallow_samples::check as sample;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// An element with its attributes, its text and its children.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn of(start: &BytesStart<'_>) -> Self {
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        let attributes = start
            .attributes()
            .map(|attribute| {
                let attribute = attribute.unwrap_or_else(|error| panic!("{error}"));
                let value = attribute
                    .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                    .unwrap_or_else(|error| panic!("{error}"));
                (String::from_utf8_lossy(attribute.key.as_ref()).into_owned(), value.into_owned())
            })
            .collect();
        Self { name, attributes, ..Self::default() }
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// Parses the root element.
fn parsed(text: &str) -> Element {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{error}: {text}")) {
            Event::Start(start) => open.push(Element::of(&start)),
            Event::Empty(start) => last(&mut open).children.push(Element::of(&start)),
            Event::End(_) => {
                let closed = open.pop().unwrap_or_default();
                last(&mut open).children.push(closed);
            }
            Event::Text(content) => {
                last(&mut open).text += &content.decode().unwrap_or_else(|error| panic!("{error}"))
            }
            Event::GeneralRef(name) => {
                last(&mut open).text += &format!("&{};", String::from_utf8_lossy(&name))
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open.len(), 1, "every element is closed");
    let mut root = open.remove(0);
    assert_eq!(root.children.len(), 1);
    root.children.remove(0)
}

fn last(open: &mut [Element]) -> &mut Element {
    open.last_mut().unwrap_or_else(|| panic!("more ends than starts"))
}

/// For each element: its required and its allowed attributes, and the elements that it may contain.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const SCHEMA: &[Rule] = &[
    // The schema has no count of skipped tests in the root; quick-junit writes one, and all readers ignore it.
    (
        "testsuites",
        &[],
        &["name", "time", "tests", "failures", "disabled", "errors", "skipped"],
        &["testsuite"],
    ),
    (
        "testsuite",
        &["name", "tests"],
        &["failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"],
        &["testsuite", "properties", "testcase", "system-out", "system-err"],
    ),
    ("properties", &[], &[], &["property"]),
    ("property", &["name", "value"], &[], &[]),
    (
        "testcase",
        &["name", "classname"],
        &["assertions", "time", "status"],
        &["skipped", "error", "failure", "system-out", "system-err"],
    ),
    ("failure", &[], &["type", "message"], &[]),
    ("error", &[], &["type", "message"], &[]),
    ("skipped", &[], &["type", "message"], &[]),
    ("system-out", &[], &[], &[]),
    ("system-err", &[], &[], &[]),
];

fn fits(element: &Element) {
    let (_, must, may, children) = SCHEMA
        .iter()
        .find(|(name, ..)| *name == element.name)
        .unwrap_or_else(|| panic!("the schema has no {}", element.name));
    for name in *must {
        assert!(element.attributes.contains_key(*name), "{} lacks {name}", element.name);
    }
    for (name, value) in &element.attributes {
        assert!(must.contains(&name.as_str()) || may.contains(&name.as_str()), "{} has {name}", element.name);
        let is_number = ["tests", "failures", "errors", "skipped"].contains(&name.as_str());
        assert!(!is_number || value.parse::<u32>().is_ok(), "{name}={value}");
        assert!(name != "time" || value.parse::<f64>().is_ok(), "{name}={value}");
    }
    for child in &element.children {
        assert!(children.contains(&child.name.as_str()), "{} in {}", child.name, element.name);
        fits(child);
    }
}

fn xml(result: &CheckResult) -> Element {
    let page = Page { result, limit: 10, allow_improvement: false };
    let text = document(&page, "gate").unwrap_or_else(|failure| panic!("{failure}"));
    let root = parsed(&text);
    fits(&root);
    root
}

fn case<'a>(root: &'a Element, name: &str) -> &'a Element {
    let cases = &root.children[0].children;
    cases.iter().find(|case| case.attribute("name") == name).unwrap_or_else(|| panic!("no {name}"))
}

fn kinds(case: &Element) -> Vec<&str> {
    case.children.iter().map(|child| child.name.as_str()).collect()
}

#[test]
fn every_verdict_has_its_kind() {
    let root = xml(&sample::check());
    for (name, expected) in [
        ("ping_pong", vec!["system-out"]),
        ("buffer_rw", vec!["failure", "system-out"]),
        ("ring_modify", vec!["failure", "system-out"]),
        ("header_map", vec!["error", "system-out"]),
        ("crashes", vec!["error"]),
        ("thread_hop", vec!["skipped", "system-out"]),
        ("cow_copy", vec!["skipped", "system-out"]),
        ("old_name", vec!["skipped"]),
    ] {
        assert_eq!(kinds(case(&root, name)), expected, "{name}");
    }
}

#[test]
fn counts_are_those_of_the_elements() {
    let root = xml(&sample::check());
    let suite = &root.children[0];
    let cases = suite.children.iter().filter(|child| child.name == "testcase");
    let with = |kind: &str| cases.clone().filter(|case| kinds(case).contains(&kind)).count().to_string();
    assert_eq!(suite.attribute("tests"), cases.clone().count().to_string());
    assert_eq!(suite.attribute("tests"), "12");
    for (attribute, kind) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
        assert_eq!(suite.attribute(attribute), with(kind), "{kind}");
    }
    assert_eq!(suite.attribute("failures"), "4");
    assert_eq!((suite.attribute("time"), root.attribute("time")), ("3.000", "3.000"));
}

#[test]
fn a_failure_says_which_line_is_to_blame() {
    let root = xml(&sample::check());
    let failure = &case(&root, "buffer_rw").children[0];
    assert_eq!(failure.attribute("type"), "REGRESSED");
    assert_eq!(
        failure.attribute("message"),
        "REGRESSED: allocations: 3,040 per run, 1,040 more than the baseline's 2,000 (+1.040 per operation); 2,010 allowed."
    );
    assert!(
        failure.text.contains(
            "\n+1.000/op  Buffer::grow (buf.rs:88) ← encode (codec.rs:12) ← run (test_buffer_rw.rs:9)\n"
        ),
        "{}",
        failure.text
    );
    assert!(failure.text.contains("totals are complete"), "{}", failure.text);
    let runs = &case(&root, "ping_pong").children[0].text;
    assert!(runs.ends_with("\nallocations: 0 0 0 0 0 0 0 0 0 0\nbytes: 0 0 0 0 0 0 0 0 0 0\nremaining: 0 0 0 0 0 0 0 0 0 0\ndescriptors: 0 0 0 0 0 0 0 0 0 0"), "{runs}");
}

#[test]
fn anything_may_be_in_a_name() {
    let mut result = sample::fine();
    result.tests[0].name = "a<b> & \"c\" 'd'\u{1}\u{ffff}]]>".into();
    result.tests[1] = sample::bare("t", Outcome::Error);
    result.tests[1].sentences = vec!["it said </failure>\u{8}\nand & more".into()];
    let root = xml(&result);
    assert_eq!(case(&root, "a<b> & \"c\" 'd'??]]>").name, "testcase");
    let error = &case(&root, "t").children[0];
    assert_eq!(error.attribute("message"), "ERROR: it said </failure>??and & more");
    assert_eq!(error.text, "it said &lt;/failure&gt;? and &amp; more");
}

#[test]
fn seconds_have_thousandths() {
    assert_eq!(seconds(999), Duration::ZERO);
    assert_eq!(seconds(1_234_567), Duration::from_millis(1_234));
}

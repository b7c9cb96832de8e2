//! A check as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which code hosts show beside the lines of a
//! change.
//!
//! Each limit that is broken is a result, and so is each test that could not be judged. A result has a place only where a
//! line is known that lies in the checkout, and stacks with the lines that are known.

use mallow_base::Frame;
use mallow_gate::measurement::Metric;
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use mallow_text::check::annotations::{Relative, blamed, place};
use mallow_view::Weight;
use mallow_view::check::{deciding, weight, worst_first};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the format.
const VERSION: &str = "2.1.0";
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Paths are relative to this, which readers set to the root of the checkout.
const ROOT: &str = "%SRCROOT%";

/// Returns the document. `relative` makes a path of a source relative to the checkout.
pub fn sarif(result: &CheckResult, allow_improvement: bool, relative: Relative<'_>) -> Value {
    let mut rules = BTreeMap::new();
    let mut results = Vec::new();
    for test in worst_first(result) {
        let level = match weight(test, allow_improvement) {
            Weight::Failed => "error",
            Weight::Inconclusive => "warning",
            Weight::Fine => continue,
        };
        for metric in broken(test) {
            let (rule, about) = match metric {
                Some(metric) => {
                    (metric.word().to_owned(), format!("{} outside of its limits", metric.word()))
                }
                None => {
                    let word = test.outcome.word().to_lowercase();
                    let about = format!("a test whose verdict is {}", test.outcome.word());
                    (word, about)
                }
            };
            let stacks = blamed(test, metric);
            let place = place(test, &stacks, relative);
            results.push(json!({
                "ruleId": rule,
                "level": level,
                "message": { "text": message(test, &rule) },
                "locations": place.map(|(file, line)| located(&file, line)).into_iter().collect::<Vec<_>>(),
                "stacks": stacks.iter().map(|frames| stack(frames, relative)).collect::<Vec<_>>(),
                "partialFingerprints": { "mallowTest/v1": format!("{}/{rule}", test.name) },
            }));
            rules.insert(rule, about);
        }
    }
    let rules =
        rules.into_iter().map(|(id, about)| json!({ "id": id, "shortDescription": { "text": about } }));
    let driver = json!({
        "name": "mallow check",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
    });
    let run = json!({ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": results });
    json!({ "$schema": SCHEMA, "version": VERSION, "runs": [run] })
}

/// The metrics that are outside of their limits; none of them for a test that could not be judged.
fn broken(test: &TestResult) -> Vec<Option<Metric>> {
    let is_judged = matches!(test.outcome, Outcome::Regressed | Outcome::Improved);
    let metrics: Vec<_> = deciding(test).iter().map(|conclusion| Some(conclusion.metric)).collect();
    if is_judged && !metrics.is_empty() { metrics } else { vec![None] }
}

/// Returns why a limit is broken: the test's sentences about its metric, or all of them.
fn message(test: &TestResult, rule: &str) -> String {
    let about = |sentence: &&String| sentence.strip_prefix(rule).is_some_and(|rest| rest.starts_with(':'));
    let mut sentences: Vec<&str> = test.sentences.iter().filter(about).map(String::as_str).collect();
    if sentences.is_empty() {
        sentences = test.sentences.iter().map(String::as_str).collect();
    }
    format!("{} {}: {}", test.outcome.word(), test.name, sentences.join(" "))
        .trim_end_matches([':', ' '])
        .to_owned()
}

fn located(file: &str, line: u32) -> Value {
    let artifact = json!({ "uri": uri(file), "uriBaseId": ROOT });
    json!({ "physicalLocation": { "artifactLocation": artifact, "region": { "startLine": line } } })
}

fn stack(frames: &[&Frame], relative: Relative<'_>) -> Value {
    let frame = |frame: &&Frame| {
        let place = frame.file.as_deref().and_then(relative).zip(frame.line.filter(|line| *line > 0));
        let mut location = place.map_or_else(|| json!({}), |(file, line)| located(&file, line));
        location["logicalLocations"] = json!([{ "fullyQualifiedName": frame.function, "kind": "function" }]);
        json!({ "location": location })
    };
    json!({ "frames": frames.iter().map(frame).collect::<Vec<_>>() })
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().fold(String::new(), |text, byte| match is_plain(byte) {
        true => text + char::from(byte).encode_utf8(&mut [0; 4]),
        false => text + &format!("%{byte:02X}"),
    })
}

#[cfg(test)]
#[path = "sarif_tests.rs"]
mod tests;

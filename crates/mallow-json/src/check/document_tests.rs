//! The JSON document of a check against its published schema, and against the result that it is made of.

use super::ReportFile;
use crate::schema_tests::assert_fits;
use crate::spelling::spelled;
use mallow_gate::result::CheckResult;
use mallow_samples::check as sample;
use serde_json::{Value, json};

fn document(result: &CheckResult) -> Value {
    serde_json::to_value(ReportFile::from(result)).unwrap_or_else(|error| panic!("{error}"))
}

fn schema() -> Value {
    let text = include_str!("../../../../docs/schema/check.json");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn it_has_the_published_shape() {
    for result in [sample::check(), sample::fine(), sample::all_blind()] {
        assert_fits(&document(&result), &schema());
    }
}

#[test]
fn it_is_the_result() {
    let document = document(&sample::check());
    assert_eq!(document["schema"], json!("mallow.check/2"));
    let outcomes: Vec<&str> = document["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|test| test["outcome"].as_str().unwrap_or(""))
        .collect();
    let check = sample::check();
    let expected: Vec<_> = check.tests.iter().map(|test| spelled(test.outcome.word())).collect();
    assert_eq!(outcomes, expected);
    assert_eq!(document["update_command"], json!("mallow check gate --update"));
}

#[test]
fn it_can_be_read_again() {
    let result = sample::check();
    let text = serde_json::to_string(&ReportFile::from(&result)).unwrap_or_default();
    let read = ReportFile::from_text(&text, "report.json").and_then(|report| report.to_result());
    let read = read.unwrap_or_else(|error| panic!("{error}"));
    let table = |result: &CheckResult| {
        let page = mallow_text::check::text::Page { result, limit: 10, allow_improvement: false };
        page.text(mallow_text::Style::PLAIN)
    };
    assert_eq!(table(&read), table(&result));
}

//! The JSON document against its published schema, and against the report that it is made of.

use super::*;
use crate::schema_tests::assert_fits;
use mallow_evidence::HeapSnapshots;
use mallow_samples::soak as sample;
use serde_json::{Value, json};

fn document(report: &SoakReport) -> Value {
    serde_json::to_value(SoakJson::of(&Page::of(report))).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn it_has_the_published_shape() {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/soak.json")).unwrap();
    for report in sample::all() {
        assert_fits(&document(&report), &schema);
    }
    let mut managed = sample::managed();
    managed.snapshots = Some(HeapSnapshots {
        pid: 7,
        runtime: "node".into(),
        before: "a".into(),
        after: "b".into(),
        requests: 3,
    });
    let rows = crate::heap::tests::held_rows();
    for are_snapshots_kept in [false, true] {
        let page = Page { held: &rows, are_snapshots_kept, ..Page::of(&managed) };
        let document = serde_json::to_value(SoakJson::of(&page)).unwrap();
        assert_fits(&document, &schema);
        assert_eq!(document["managed"]["files"].is_null(), !are_snapshots_kept);
        assert_eq!(document["managed"]["held"][0]["path"][0]["field"], json!(".list"));
    }
    let mut empty = sample::clean();
    empty.samples.clear();
    empty.evidence.observations.clear();
    assert_fits(&document(&empty), &schema);
}

#[test]
fn it_is_the_report() {
    let document = document(&sample::leaking());
    assert_eq!(document["schema"], json!("mallow.soak/3"));
    assert_eq!(document["verdict"], json!("leaking"));
    assert_eq!(document["exit_code"], json!(1));
    assert_eq!(document["growth"]["plane"], json!("live_heap"));
    assert_eq!(document["growth"]["bytes_per_request"], json!({ "value": 16.0, "low": 15.9, "high": 16.1 }));
    assert_eq!(document["growth"]["bytes_per_day"], json!(6_912_000_000.0));
    assert_eq!(document["stacks"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["stacks"][0]["frames"][0]["function"], json!("session::open"));
    assert_eq!(document["samples"].as_array().map(Vec::len), Some(25));
    assert_eq!(document["samples"][4]["phase"], json!("measured"));
    let mut once = sample::leaking();
    once.evidence.observations.truncate(1);
    let growth = &self::document(&once)["growth"];
    let unknown =
        ["bytes_per_request", "bytes_per_day", "seconds_to_limit"].map(|name| growth[name].is_null());
    assert_eq!(unknown, [true; 3], "{growth:#}");
    let words: Vec<Value> =
        sample::all().iter().map(|report| self::document(report)["verdict"].clone()).collect();
    assert_eq!(words[6], json!("grows_when_idle"));
}

#[test]
fn a_verdict_is_the_one_of_the_text() {
    for report in sample::all() {
        let word = document(&report)["verdict"].clone();
        let text = mallow_text::soak::sentence::verdict(&report);
        let of_text = text.split(':').next().unwrap_or_default();
        assert_eq!(word, json!(of_text.to_ascii_lowercase().replace('-', "_")), "{text}");
    }
}

#[test]
fn its_metrics_are_a_side_again() {
    let report = sample::leaking();
    let side = Side::of(&report);
    let text = serde_json::to_string(&MetricsJson::from(&side)).unwrap_or_default();
    let read: MetricsJson = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(Side::from(read), side);
    assert!(side.heap_per_request.is_some() && side.rate.is_some());
}

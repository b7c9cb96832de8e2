//! The document against its schema, and its metrics against the profiles.

use super::*;
use crate::schema_tests::assert_fits;
use mallow_samples::diff::{Asked, asked as request, tables, with_report};
use mallow_view::Measure;
use mallow_view::diff::DiffOptions;
use serde_json::{Value, json};

fn document(asked: &Asked) -> Value {
    with_report(&tables(), asked, |diff| serde_json::to_value(DiffJson::of(diff)).unwrap_or_default())
}

fn limited() -> Asked {
    let fail_on = vec!["leaked>0".parse().unwrap_or_else(|error| panic!("{error}"))];
    Asked { fail_on, ..request(DiffOptions::default()) }
}

#[test]
fn it_has_the_published_shape() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/schema/diff.json")).unwrap_or_default();
    assert_fits(&document(&limited()), &schema);
    assert_fits(&document(&Asked { limit: Some(0), ..limited() }), &schema);
    let by =
        DiffOptions { by: Measure::Leaked, min: 5, filter: "row".parse().ok(), ..DiffOptions::default() };
    assert_fits(&document(&request(by)), &schema);
}

#[test]
fn metrics_are_those_of_the_profiles() {
    let document = document(&limited());
    let allocations = json!({"before": 149_906, "after": 187_256, "difference": 37_350});
    assert_eq!(document["totals"]["allocations"], allocations);
    let sections: Vec<(&str, i64)> = document["sites"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|site| {
            (
                site["section"].as_str().unwrap_or(""),
                site["figures"]["allocations"]["difference"].as_i64().unwrap_or(0),
            )
        })
        .collect();
    assert_eq!(sections, [("new", 37_449), ("gone", -100), ("changed", 1), ("moved", 0), ("moved", 0)]);
    assert_eq!(document["sites"][3]["matched"], json!("renamed"));
    assert_eq!(document["renames"], json!([{"before": "load", "after": "read"}]));
    assert_eq!(document["sites"][0]["after"]["frames"][0]["function"], json!("log"));
    assert_eq!(document["sites"][0]["before"], Value::Null);
    let limit = json!({"limit": "leaked>0", "measure": "leaked", "broken": true, "before": 1_797_552, "after": 2_396_736, "difference": 599_184});
    assert_eq!(document["limits"], json!([limit]));
}

#[test]
fn what_is_not_in_the_list_is_summed_up() {
    let document = document(&Asked { limit: Some(0), ..limited() });
    assert_eq!(document["sites"], json!([]));
    let sum = |key: &str| document[key]["difference"].as_i64().unwrap_or(0);
    assert_eq!(document["not_shown"]["sites"], json!(5));
    assert_eq!(sum("not_shown") + sum("hidden") + sum("unchanged"), 37_350);
}

//! The documents against their published schemas, and their figures against the profile.

use super::*;
use crate::sample;
use mallow_view::{Filter, Measure, Shown};
use serde_json::{Value, json};

fn report(profile: &Profile, filter: &Filter, limit: usize) -> Value {
    let mut sites = Sites::of(profile, Shown::All, filter);
    sites.sort(Measure::Bytes);
    let warnings = ["something is missing".to_owned()];
    let document = ReportJson::of(profile, &sites, limit, !filter.is_empty(), true, &warnings);
    serde_json::to_value(document).unwrap()
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Checks a value against the part of JSON Schema that our schemas use, and complains of any other keyword.
fn check(value: &Value, schema: &Value, root: &Value, path: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().ok_or(format!("{path}: no schema"))? {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let name = rule.as_str().and_then(|name| name.strip_prefix("#/$defs/")).ok_or("bad $ref")?;
                return check(value, &root["$defs"][name], root, path);
            }
            "const" => value == rule,
            "type" => rule
                .as_array()
                .map_or_else(|| is_a(value, rule), |types| types.iter().any(|t| is_a(value, t))),
            "minimum" => value.as_i64().is_none_or(|number| Some(number) >= rule.as_i64()),
            "oneOf" => {
                let fits = |part: &&Value| check(value, part, root, path).is_ok();
                rule.as_array().map(|parts| parts.iter().filter(fits).count()) == Some(1)
            }
            "required" => rule.as_array().is_some_and(|names| {
                names.iter().all(|name| name.as_str().is_some_and(|name| value.get(name).is_some()))
            }),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                *rule == json!(false) && object.keys().all(|key| schema["properties"].get(key).is_some())
            }),
            "properties" => {
                for (name, part) in rule.as_object().ok_or("bad properties")? {
                    if let Some(inner) = value.get(name) {
                        check(inner, part, root, &format!("{path}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (index, item) in
                    value.as_array().ok_or(format!("{path}: not an array"))?.iter().enumerate()
                {
                    check(item, rule, root, &format!("{path}[{index}]"))?;
                }
                true
            }
            other => return Err(format!("the checker does not know {other}")),
        };
        if !holds {
            return Err(format!("{path}: {value} breaks {keyword} {rule}"));
        }
    }
    Ok(())
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

#[track_caller]
fn assert_fits(value: &Value, schema: &Value) {
    assert_eq!(check(value, schema, schema, "$"), Ok(()));
}

#[test]
fn reports_have_the_published_shape() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    for profile in [sample::leaky_c(), sample::rust(), sample::python(), sample::nothing(), sample::deep()] {
        assert_fits(&report(&profile, &Filter::default(), usize::MAX), &schema);
    }
    let filter = Filter { function: Some("main".into()), module: None };
    assert_fits(&report(&sample::rust(), &filter, 1), &schema);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    let good = report(&sample::leaky_c(), &Filter::default(), usize::MAX);
    for (pointer, bad) in [
        ("/schema", json!("mallow.report/2")),
        ("/totals/bytes", json!("many")),
        ("/sites/0/frames/0/line", json!(-1)),
        ("/processes/0/exit", json!({"signal": 9, "exec": true})),
        ("/sites/0", json!({})),
        ("/totals", json!({"allocations": 1})),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(check(&document, &schema, &schema, "$").is_err(), "{pointer}");
    }
}

#[test]
fn figures_are_those_of_the_profile() {
    let document = report(&sample::leaky_c(), &Filter::default(), usize::MAX);
    let totals = json!({
        "allocations": 149_798, "bytes": 14_385_536, "frees": 112_341, "reallocations": 12, "temporary": 112_340,
        "failed": 1, "peak_bytes": 12_586_976, "peak_blocks": 37_451, "leaked_bytes": 12_584_000,
        "leaked_blocks": 37_457,
    });
    assert_eq!(document["totals"], totals);
    assert_eq!(document["sites"].as_array().map(Vec::len), Some(4));
    assert_eq!(document["sites"][0]["leaked_blocks"], json!(37_449));
    let leaf = json!({
        "function": "load_row", "file": "/build/src/table.c", "line": 42, "module": "/usr/bin/app", "inlined": false
    });
    assert_eq!(document["sites"][0]["frames"][0], leaf);
    assert_eq!(document["sites"][0]["frames"].as_array().map(Vec::len), Some(5));
    assert_eq!(document.get("selected"), None);
}

#[test]
fn a_filter_adds_what_it_selected_and_a_limit_only_shortens() {
    let filter = Filter { function: Some("strdup".into()), module: None };
    let document = report(&sample::leaky_c(), &filter, 0);
    assert_eq!(document["selected"]["allocations"], json!(112_347));
    assert_eq!(document["totals"]["allocations"], json!(149_798));
    assert_eq!(document["sites"], json!([]));
}

#[test]
fn ends_of_processes() {
    let exit = |exit: Option<Exit>| serde_json::to_value(exit.map(ExitJson::from)).unwrap();
    assert_eq!(exit(Some(Exit::Status(3))), json!(3));
    assert_eq!(exit(Some(Exit::Signal(9))), json!({"signal": 9}));
    assert_eq!(exit(Some(Exit::Exec)), json!({"exec": true}));
    assert_eq!(exit(None), Value::Null);
}

#[test]
fn stat_has_the_published_shape() {
    let schema = schema(include_str!("../../../docs/schema/stat.json"));
    let profile = sample::python();
    let run = RunJson {
        exit: Some(Exit::Status(0).into()),
        wall_us: 5,
        totals: (&profile.totals()).into(),
        processes: profile.processes.into_iter().map(OwnedProcessJson::from).collect(),
    };
    let command = vec!["true".to_owned()];
    let document = StatJson { schema: "mallow.stat/1", command, runs: vec![run], equal_counts: true };
    let mut document = serde_json::to_value(document).unwrap();
    assert_fits(&document, &schema);
    document["equal_counts"] = json!(1);
    assert!(check(&document, &schema, &schema, "$").is_err());
}

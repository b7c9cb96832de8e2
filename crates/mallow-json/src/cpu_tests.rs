//! The document fits its schema, whatever is asked for.

use super::*;
use crate::schema_tests::assert_fits;
use mallow_samples::cpu::{rows, waits};
use mallow_view::{Direction, Filter, FrameVisibility};
use serde_json::{Value, json};

fn document(layout: CpuLayout) -> Value {
    of(&rows(), layout, CpuMetric::Time)
}

fn of(profile: &CpuProfile, layout: CpuLayout, by: CpuMetric) -> Value {
    either(profile, layout, by, false)
}

fn either(profile: &CpuProfile, layout: CpuLayout, by: CpuMetric, compact: bool) -> Value {
    let options = CpuOptions {
        layout,
        by,
        limit: None,
        shown: FrameVisibility::WithoutStart,
        filter: Filter::default(),
        part: None,
    };
    serde_json::to_value(CpuJson::of(profile, &options, compact, Path::new("a.pb.gz"), "pprof", &[])).unwrap()
}

#[test]
fn every_layout_fits_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/cpu.json")).unwrap();
    let tree = |direction| CpuLayout::Tree { direction, threshold_ppm: 0, depth: 9 };
    for layout in [
        CpuLayout::Functions(FunctionOrder::Own),
        CpuLayout::Stacks,
        tree(Direction::Callers),
        tree(Direction::Callees),
        CpuLayout::Threads,
        CpuLayout::Timeline,
    ] {
        assert_fits(&document(layout.clone()), &schema);
        assert_fits(&of(&waits(), layout, CpuMetric::Blocked), &schema);
    }
}

#[test]
fn waits_have_their_time_and_why() {
    let document = of(&waits(), CpuLayout::Functions(FunctionOrder::Own), CpuMetric::Blocked);
    let first = &document["functions"][0];
    assert_eq!((&document["by"], &first["function"]), (&json!("blocked"), &json!("futex_wait_queue")));
    assert_eq!((&first["self"]["blocked_ns"], &first["self"]["switches"]), (&json!(240_000_000), &json!(2)));
    assert_eq!((&first["self"]["samples"], &first["self"]["time_ns"]), (&json!(0), &json!(0)));
    let totals = &document["totals"];
    assert_eq!((&totals["off_cpu_ns"], &totals["blocked_ns"]), (&json!(310_000_000), &json!(290_000_000)));
}

#[test]
fn functions_have_what_is_theirs_and_their_callees() {
    let document = document(CpuLayout::Functions(FunctionOrder::Own));
    let row = |name: &str| {
        let rows = document["functions"].as_array().unwrap();
        rows.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("{document}"))
    };
    assert_eq!(document["functions"][0]["function"], json!("core::str::trim"));
    let parse = row("rows::parse::parse_rows");
    assert_eq!((&parse["self"]["samples"], &parse["children"]["samples"]), (&json!(10), &json!(280)));
    assert_eq!(parse["self"]["time_ns"], json!(10_030_090));
    assert_eq!(parse["self"]["events"], Value::Null);
    assert_eq!(document["quality"]["truncated"], json!(5));
}

#[test]
fn compact_stacks_are_the_same_stacks() {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/cpu.json")).unwrap();
    let plain = document(CpuLayout::Stacks);
    let mut compact = either(&rows(), CpuLayout::Stacks, CpuMetric::Time, true);
    assert_fits(&compact, &schema);
    let frames = compact.as_object_mut().unwrap().remove("frames").unwrap();
    for stack in compact["stacks"].as_array_mut().unwrap() {
        let numbers = stack.as_object_mut().unwrap().remove("stack").unwrap();
        let frame = |number: &Value| frames[number.as_u64().unwrap() as usize].clone();
        stack["frames"] = numbers.as_array().unwrap().iter().map(frame).collect();
    }
    assert_eq!(compact, plain);
}

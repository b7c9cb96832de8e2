//! The documents against their published schemas, and their metrics against the profile.

use super::*;
use crate::schema_tests::{assert_fits, check};
use mallow_profile::Suppression;
use mallow_samples::profile as sample;
use mallow_stacks::ProcessIndex;
use mallow_view::{AppliedSuppressions, Direction, Filter, Origin, Subject};
use serde_json::{Value, json};
use std::path::Path;

fn document(profile: &Profile, origin: Origin, view: &ReportOptions) -> Value {
    either(profile, origin, view, false)
}

/// A whole recording.
pub(crate) fn subject<'a>(
    profile: &'a Profile,
    origin: Origin,
    suppressions: &'a AppliedSuppressions,
) -> Subject<'a> {
    Subject { profile, file: Path::new("app"), origin, suppressions, leaks: None, part: None }
}

fn either(profile: &Profile, origin: Origin, view: &ReportOptions, compact: bool) -> Value {
    let warnings = ["something is missing".to_owned()];
    let applied = AppliedSuppressions::default();
    let subject = subject(profile, origin, &applied);
    serde_json::to_value(ReportJson::of(&subject, view, compact, true, &warnings)).unwrap()
}

fn view(layout: Layout) -> ReportOptions {
    let filter = Filter::default();
    ReportOptions { layout, limit: None, shown: FrameVisibility::WithoutPlumbing, filter, per: None }
}

fn report(profile: &Profile, filter: &Filter, limit: usize) -> Value {
    let view = ReportOptions { filter: filter.clone(), limit: Some(limit), ..view(Layout::Tables) };
    document(profile, sample::TRACE, &view)
}

fn tree(direction: Direction, depth: usize) -> Layout {
    let key = Measure::Bytes.into();
    Layout::Tree(TreeLayout { key, direction, threshold_ppm: 10_000, depth })
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn reports_have_the_published_shape() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    for profile in [sample::leaky_c(), sample::rust(), sample::python(), sample::nothing(), sample::deep()] {
        assert_fits(&report(&profile, &Filter::default(), usize::MAX), &schema);
    }
    let filter = Filter { function: Some("main".into()), ..Filter::default() };
    assert_fits(&report(&sample::rust(), &filter, 1), &schema);
    for (direction, depth) in [(Direction::Callers, 60), (Direction::Callees, 2)] {
        let tree = ReportOptions { per: Some(7), ..view(tree(direction, depth)) };
        for profile in [sample::rust(), sample::python(), sample::deep(), sample::nothing()] {
            assert_fits(&document(&profile, sample::TRACE, &tree), &schema);
        }
    }
    assert_fits(&document(&sample::dhat(), sample::DHAT, &view(Layout::Tables)), &schema);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    let good = report(&sample::leaky_c(), &Filter::default(), usize::MAX);
    for (pointer, bad) in [
        ("/schema", json!("mallow.report/3")),
        ("/totals/bytes", json!("many")),
        ("/sites/0/size_average", json!("336")),
        ("/time_unit", json!("hours")),
        ("/suppressed/sites", json!(null)),
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
fn metrics_are_those_of_the_profile() {
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
    let filter = Filter { function: Some("strdup".into()), ..Filter::default() };
    let document = report(&sample::leaky_c(), &filter, 0);
    assert_eq!(document["selected"]["allocations"], json!(112_347));
    assert_eq!(document["totals"]["allocations"], json!(149_798));
    assert_eq!(document["sites"], json!([]));
}

/// Only where the file tells them: they are no keys of other documents.
#[test]
fn reads_and_writes_are_those_of_the_file() {
    let profile = sample::accessed();
    let document = document(&profile, sample::DHAT, &view(Layout::Tables));
    assert_fits(&document, &schema(include_str!("../../../docs/schema/report.json")));
    let site = &document["sites"][0];
    assert_eq!((&site["read_bytes"], &site["written_bytes"]), (&json!(314_571_600), &json!(3_145_716)));
    let ours = report(&sample::leaky_c(), &Filter::default(), usize::MAX);
    assert_eq!(ours["sites"][0].get("read_bytes"), None);
}

#[test]
fn a_site_has_all_metrics_of_a_program_point() {
    let per = ReportOptions { per: Some(37_449), ..view(Layout::Tables) };
    let document = document(&sample::leaky_c(), sample::TRACE, &per);
    let site = &document["sites"][1];
    assert_eq!((&site["live_bytes_max"], &site["live_blocks_at_max"]), (&json!(112), &json!(7)));
    assert_eq!((&site["first"], &site["last"]), (&json!(24_600), &json!(1_107_000)));
    assert_eq!(site["size_average"], json!(16.0));
    assert_eq!(site["lifetime_average"], json!(5_810_356_f64 / 112_347.0));
    assert_eq!(site["allocations_rate"], json!(112_347.0 / 1_230_000.0 * 1e6));
    assert_eq!(site["per_operation"]["allocations"], json!(3.0));
    assert_eq!(document["per"]["operations"], json!(37_449));
    assert_eq!(document["per"]["per_operation"]["allocations"], json!(149_798.0 / 37_449.0));
    assert_eq!((&document["duration"], &document["time_unit"]), (&json!(1_230_000), &json!("microseconds")));
}

#[test]
fn what_a_source_does_not_tell_is_null() {
    let document = document(&sample::dhat(), sample::DHAT, &view(Layout::Tables));
    assert_eq!((&document["format"], &document["time_unit"]), (&json!("dhat"), &json!("instructions")));
    for metric in ["frees", "reallocations", "temporary", "failed"] {
        assert_eq!(document["totals"][metric], Value::Null, "{metric}");
    }
    for metric in ["reallocations", "temporary", "failed", "first", "last"] {
        assert_eq!(document["sites"][0][metric], Value::Null, "{metric}");
    }
    assert_eq!(document["totals"]["bytes"], json!(14_385_536));
    assert_eq!(document.get("requests"), None);
}

/// None is a figure where they are known, also where nothing was allocated; those of one process are not those of all.
#[test]
fn requests_are_told_where_all_are_known() {
    let of = |profile: &Profile| report(profile, &Filter::default(), usize::MAX).get("requests").cloned();
    let none = json!({"allocations": 0, "bytes": 0});
    for mut profile in [sample::leaky_c(), sample::nothing()] {
        assert_eq!(of(&profile), None);
        let processes = 0..profile.processes.len() as u32;
        processes.for_each(|process| profile.requests.add(ProcessIndex(process), std::iter::empty()));
        assert_eq!(of(&profile), Some(json!({"zeroed": none, "aligned": none})));
    }
    let mut profile = sample::leaky_c();
    profile.requests.add(ProcessIndex(7), std::iter::empty());
    assert_eq!(of(&profile), None);
}

/// At every node the parts add up.
#[test]
fn a_tree_adds_up() {
    fn check(node: &Value) -> u64 {
        let bytes = |node: &Value| node["figures"]["bytes"].as_u64().unwrap_or(0);
        let children = node["children"].as_array().unwrap();
        let below: u64 = children.iter().map(check).sum();
        let sum = below + bytes(&node["own"]) + bytes(&node["rest"]);
        assert!(sum == bytes(node) || (children.is_empty() && sum == 0), "{node}");
        bytes(node)
    }
    let document = document(&sample::python(), sample::TRACE, &view(tree(Direction::Callers, 60)));
    let tree = &document["tree"];
    assert_eq!((&tree["direction"], &tree["sort"]), (&json!("callers"), &json!("bytes")));
    assert_eq!(check(&tree["root"]), 18_269_768);
    assert_eq!(tree["root"]["children"][0]["calls"][0]["function"], json!("PyList_New"));
}

/// Python's parser stops at about 1,000 levels, serde_json at 128.
#[test]
fn a_deep_tree_can_be_parsed_again() {
    let names: Vec<String> = (0..200).map(|level| format!("level_{level}@deep.c:1")).collect();
    let mut profile = sample::nothing();
    for length in 1..200 {
        sample::site_of(&mut profile, &names[..length].iter().rev().map(String::as_str).collect::<Vec<_>>());
    }
    let text = document(&profile, sample::TRACE, &view(tree(Direction::Callees, 60))).to_string();
    let document: Value = serde_json::from_str(&text).unwrap();
    let depth =
        std::iter::successors(Some(&document["tree"]["root"]), |node| node["children"].get(0)).count();
    assert_eq!(depth, 61);
}

#[test]
fn suppressed_leaks_are_told_and_totals_stay() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    let mut profile = sample::leaky_c();
    let mut applied = AppliedSuppressions::default();
    applied.add("known".into(), false, Suppression::parse("leak:nobody\nleak:^load_field$\n").unwrap());
    applied.take(&mut profile, &mut Vec::new());
    let subject = subject(&profile, sample::TRACE, &applied);
    let document =
        serde_json::to_value(ReportJson::of(&subject, &view(Layout::Tables), false, true, &[])).unwrap();
    assert_fits(&document, &schema);
    let pattern = |pattern: &str, line, sites, bytes, blocks| {
        json!({
            "pattern": pattern, "file": "known", "line": line, "embedded": false, "built_in": false,
            "sites": sites, "leaked_bytes": bytes, "leaked_blocks": blocks,
        })
    };
    let expected = json!({
        "sites": 1, "leaked_bytes": 112, "leaked_blocks": 7,
        "patterns": [pattern("nobody", 1, 0, 0, 0), pattern("^load_field$", 2, 1, 112, 7)],
    });
    assert_eq!(document["suppressed"], expected);
    assert_eq!(document["totals"]["leaked_blocks"], json!(37_457));
    assert_eq!(document["sites"][1]["leaked_blocks"], json!(0));
}

#[test]
fn a_compact_document_has_each_frame_once_and_the_same_stacks() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    let view = view(Layout::Tables);
    for profile in [sample::leaky_c(), sample::rust(), sample::python(), sample::nothing(), sample::deep()] {
        let plain = document(&profile, sample::TRACE, &view);
        let mut compact = either(&profile, sample::TRACE, &view, true);
        assert_fits(&compact, &schema);
        let frames = compact.as_object_mut().unwrap().remove("frames").unwrap();
        let frames = frames.as_array().unwrap();
        let distinct: std::collections::HashSet<String> = frames.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), frames.len());
        for site in compact["sites"].as_array_mut().unwrap() {
            let stack = site.as_object_mut().unwrap().remove("stack").unwrap();
            let numbers = stack.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize);
            site["frames"] = numbers.map(|number| frames[number].clone()).collect();
        }
        assert_eq!(compact, plain);
    }
    // 10,006 frames of 3 places in one stack, 45 in the other, of which four are C's start in both.
    let compact = either(&sample::deep(), sample::TRACE, &view, true);
    let stack = compact["sites"][0]["stack"].as_array().unwrap();
    assert_eq!(
        (&stack[0], &stack[1], &stack[2], &stack[10_000]),
        (&json!(0), &json!(1), &json!(1), &json!(1))
    );
}

#[test]
fn what_a_limit_left_out_is_told() {
    let schema = schema(include_str!("../../../docs/schema/report.json"));
    let cut = report(&sample::leaky_c(), &Filter::default(), 1);
    assert_fits(&cut, &schema);
    let whole = report(&sample::leaky_c(), &Filter::default(), usize::MAX);
    let sum = |key: &str| {
        whole["sites"].as_array().unwrap()[1..].iter().map(|site| site[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(cut["rest"]["sites"], json!(3));
    for key in ["allocations", "bytes", "temporary", "peak_bytes", "leaked_blocks"] {
        assert_eq!(cut["rest"]["figures"][key], json!(sum(key)), "{key}");
    }
    assert_eq!(whole.get("rest"), None);
}

#[test]
fn the_frames_of_all_stacks_are_counted() {
    let profile = sample::leaky_c();
    let applied = AppliedSuppressions::default();
    let subject = subject(&profile, sample::TRACE, &applied);
    let count =
        |compact| ReportJson::of(&subject, &view(Layout::Tables), compact, true, &[]).frames_written();
    let plain = document(&profile, sample::TRACE, &view(Layout::Tables));
    let sites = plain["sites"].as_array().unwrap().iter();
    let frames: usize = sites.map(|site| site["frames"].as_array().unwrap().len()).sum();
    assert_eq!((count(false), count(true)), (frames as u64, 0));
}

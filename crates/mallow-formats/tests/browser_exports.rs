//! Exports for browsers, and folded stacks: compared with speedscope's published schema, and number by number.

use mallow_base::Frame;
use mallow_formats::export::{ExportFormat, ExportOptions, write};
use mallow_formats::{Format, read_as};
use mallow_profile::{
    Address, Availability, Measure, Process, Profile, ProfileBuilder, Recording, SiteTotals,
};
use serde_json::{Value, json};
use std::path::Path;

fn frame(function: &str, line: u32) -> Frame {
    Frame { function: function.into(), file: Some("src/rows.c".into()), line: Some(line), ..Frame::default() }
}

/// Two processes; one stack with an inlined call, one without any frame.
fn profile() -> Profile {
    let recording = Recording {
        command: vec!["/bin/rows".into(), "-n".into()],
        duration_us: 900,
        ..Recording::default()
    };
    let mut builder = ProfileBuilder::new(recording, Availability::ALL);
    let process =
        |pid, command: &str| Process { pid, command: command.into(), ended_us: 900, ..Process::default() };
    let (rows, child) =
        (builder.add_process(process(7, "/bin/rows -n")), builder.add_process(process(8, "")));
    let main = builder.location(Address::Unknown, vec![frame("main", 40)]);
    let inlined = vec![Frame { inlined: true, ..frame("row<a;b>", 12) }, frame("parse", 19)];
    let row = builder.location(Address::Unknown, inlined);
    let stack = builder.stack([main, row]);
    let metrics = |allocations, bytes, peak_bytes, leaked_bytes, first_us| SiteTotals {
        allocations,
        bytes,
        peak_bytes,
        leaked_bytes,
        first_us,
        ..SiteTotals::default()
    };
    builder.add_site(rows, stack, &metrics(10, 1000, 300, 100, 50));
    let only_main = builder.stack([main]);
    builder.add_site(rows, only_main, &metrics(1, 64, 64, 64, 20));
    builder.add_site(child, None, &metrics(2, 0, 0, 0, 10));
    builder.finish()
}

fn exported(profile: &Profile, format: ExportFormat, measure: Measure) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let warnings = write(profile, format, &ExportOptions { measure }, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), warnings)
}

/// Returns why a value violates a schema. It supports the keywords of speedscope's schema, and fails on any other.
fn violation(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let because = |what: String| Some(format!("{path}: {what}"));
    for (keyword, rule) in schema.as_object().unwrap() {
        let broken = match keyword.as_str() {
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                violation(root, target, value, path)
            }
            "anyOf" => {
                let all: Vec<_> =
                    rule.as_array().unwrap().iter().map(|any| violation(root, any, value, path)).collect();
                if all.iter().all(Option::is_some) { because(format!("{all:?}")) } else { None }
            }
            "const" if value != rule => because(format!("{value} instead of {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                because(format!("{value} is none of {rule}"))
            }
            "type" => {
                let fits = match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    other => panic!("the schema has the type {other}"),
                };
                if fits { None } else { because(format!("{value} is no {rule}")) }
            }
            "required" => {
                let missing =
                    rule.as_array().unwrap().iter().find(|name| value.get(name.as_str().unwrap()).is_none());
                missing.and_then(|name| because(format!("{name} is missing")))
            }
            "properties" => {
                rule.as_object().unwrap().iter().find_map(|(name, rule)| {
                    violation(root, rule, value.get(name)?, &format!("{path}/{name}"))
                })
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .find_map(|(at, item)| violation(root, rule, item, &format!("{path}/{at}"))),
            "const" | "enum" | "title" | "$schema" | "definitions" => None,
            other => panic!("the schema has the keyword {other}"),
        };
        if broken.is_some() {
            return broken;
        }
    }
    None
}

fn violation_of_speedscope(document: &Value) -> Option<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/speedscope/file-format-schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    violation(&schema, &schema, document, "")
}

#[test]
fn speedscopes_file_is_exactly_this() {
    let (text, warnings) = exported(&profile(), ExportFormat::Speedscope, Measure::Leaked);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(violation_of_speedscope(&document), None);
    assert_eq!(document["activeProfileIndex"], 3);
    assert_eq!(document["name"], "/bin/rows -n");
    let frame = |name: &str, line: u32| json!({ "name": name, "file": "src/rows.c", "line": line });
    assert_eq!(
        document["shared"]["frames"],
        json!([{ "name": "rows" }, frame("main", 40), frame("parse", 19), frame("row<a;b>", 12)])
    );
    assert_eq!(
        document["profiles"][1],
        json!({ "type": "sampled", "name": "bytes allocated", "unit": "bytes", "startValue": 0, "endValue": 1064,
            "samples": [[0, 1, 2, 3], [0, 1]], "weights": [1000, 64] })
    );
    assert_eq!(document["profiles"][0]["unit"], "none");
    // The child has no command of its own, so it is named by the recording's.
    assert_eq!(document["profiles"][0]["samples"][2], json!([0]));
    assert_eq!(document["profiles"].as_array().map(Vec::len), Some(5));
    assert!(warnings[0].contains("lifetimes"), "{warnings:?}");
}

#[test]
fn the_schema_check_can_fail() {
    let (text, _) = exported(&profile(), ExportFormat::Speedscope, Measure::Bytes);
    let whole: Value = serde_json::from_str(&text).unwrap();
    for (at, wrong) in [
        ("/profiles/0/unit", json!("pages")),
        ("/profiles/0/samples/0/0", json!("main")),
        ("/shared/frames/0", json!({})),
        ("/profiles/1/weights", json!(7)),
        ("/$schema", json!("other")),
    ] {
        let mut document = whole.clone();
        *document.pointer_mut(at).unwrap() = wrong;
        assert!(violation_of_speedscope(&document).is_some(), "{at}");
    }
}

#[test]
fn folded_stacks_have_the_metric_that_was_asked_for() {
    let (text, warnings) = exported(&profile(), ExportFormat::Folded, Measure::Allocations);
    assert_eq!(text, "# metric: allocations\nrows;main;parse;row<a:b> 10\nrows;main 1\nrows 2\n");
    assert_eq!(
        warnings[0],
        "folded stacks have one number without a unit; it is allocations, which the first line says"
    );
    let (text, _) = exported(&profile(), ExportFormat::Folded, Measure::Peak);
    assert_eq!(text, "# metric: peak\nrows;main;parse;row<a:b> 300\nrows;main 64\n");
}

/// Of equal lines there is one, where the first stood, and its number is their sum. A stack without a frame is a line as well.
#[test]
fn folded_stacks_that_differ_only_in_lines_are_one() {
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::ALL);
    let process = builder.add_process(Process::default());
    let mut add = |frames: &[(&str, u32)], allocations| {
        let locations = frames.iter().map(|(name, line)| {
            let frames = vec![frame(name, *line)];
            builder.location(Address::Unknown, frames)
        });
        let locations: Vec<_> = locations.collect();
        let stack = builder.stack(locations);
        builder.add_site(process, stack, &SiteTotals { allocations, ..SiteTotals::default() });
    };
    add(&[("main", 1), ("b", 5)], 3);
    add(&[("main", 1), ("a", 6)], 4);
    add(&[], 5);
    add(&[("main", 2), ("b", 7)], 10);
    add(&[("main", 2)], 1);
    let (text, _) = exported(&builder.finish(), ExportFormat::Folded, Measure::Allocations);
    assert_eq!(text, "# metric: allocations\nmain;b 13\nmain;a 4\n(no stack was taken) 5\nmain 1\n");
}

#[test]
fn folded_stacks_come_back_and_are_read_by_inferno() {
    for measure in Measure::ALL {
        let (text, _) = exported(&profile(), ExportFormat::Folded, measure);
        assert_eq!(Format::of_beginning(text.as_bytes()), Some(Format::Folded));
        let imported = read_as(text.as_bytes(), Format::Folded).unwrap();
        assert_eq!(imported.warnings, [""; 0], "{measure:?}");
        let known = Measure::ALL.into_iter().filter(|known| known.is_known(&imported.profile.known));
        assert_eq!(known.collect::<Vec<_>>(), [measure]);
        assert_eq!(exported(&imported.profile, ExportFormat::Folded, measure).0, text);
    }
    let (text, _) = exported(&profile(), ExportFormat::Folded, Measure::Bytes);
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut options, text.lines(), &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.contains("<title>rows (1,064 samples, 100.00%)</title>"), "{svg}");
}

#[test]
fn an_address_has_its_library_beside_it() {
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::ALL);
    let process = builder.add_process(Process::default());
    let unnamed =
        Frame { function: "0x1f".into(), module: Some("/lib/libz.so.1".into()), ..Frame::default() };
    let location = builder.location(Address::Unknown, vec![unnamed]);
    let stack = builder.stack([location]);
    builder.add_site(process, stack, &SiteTotals { allocations: 3, bytes: 5, ..SiteTotals::default() });
    let profile = builder.finish();
    assert_eq!(
        exported(&profile, ExportFormat::Folded, Measure::Allocations).0,
        "# metric: allocations\n0x1f [libz.so.1] 3\n"
    );
    let document: Value =
        serde_json::from_str(&exported(&profile, ExportFormat::Firefox, Measure::Bytes).0).unwrap();
    assert_eq!(native(&document, "process")[0].3, "0x1f [libz.so.1]");
}

#[test]
fn what_is_not_known_is_told() {
    let mut profile = profile();
    profile.known = Availability { leaked: true, ..Availability::NOTHING };
    let (text, warnings) = exported(&profile, ExportFormat::Folded, Measure::Peak);
    assert!(warnings[0].contains("does not contain the metric peak"), "{text} {warnings:?}");
    let (text, _) = exported(&profile, ExportFormat::Speedscope, Measure::Peak);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["profiles"].as_array().map(Vec::len), Some(1));
    assert_eq!(violation_of_speedscope(&document), None);
    let empty = ProfileBuilder::new(Recording::default(), Availability::ALL).finish();
    let document: Value =
        serde_json::from_str(&exported(&empty, ExportFormat::Speedscope, Measure::Peak).0).unwrap();
    assert_eq!(violation_of_speedscope(&document), None);
}

/// Returns the native allocations of the thread with a name: time in milliseconds, weight, address, stack by name.
fn native(document: &Value, thread: &str) -> Vec<(f64, i64, u64, String)> {
    let threads = document["threads"].as_array().unwrap();
    let thread =
        threads.iter().find(|known| known["name"] == thread).unwrap_or_else(|| panic!("no {thread}"));
    let strings = thread["stringArray"].as_array().or(document["shared"]["stringArray"].as_array()).unwrap();
    let number = |table: &str, column: &str, row: u64| thread[table][column][row as usize].as_u64();
    let table = &thread["nativeAllocations"];
    let column = |name: &str| table[name].as_array().unwrap_or_else(|| panic!("{name}: {table}")).clone();
    let mut times = Vec::new();
    let mut now = 0.0;
    for time in table["time"].as_array().or(table["timeDeltas"].as_array()).unwrap() {
        now = if table["time"].is_array() { time.as_f64().unwrap() } else { now + time.as_f64().unwrap() };
        times.push(now);
    }
    let rows = column("weight").into_iter().zip(column("memoryAddress")).zip(column("stack"));
    let rows = rows.zip(times).map(|(((weight, address), stack), time)| {
        let (mut names, mut next) = (Vec::new(), stack.as_u64());
        while let Some(stack) = next {
            let frame = number("stackTable", "frame", stack).unwrap();
            let func = number("frameTable", "func", frame).unwrap();
            let name = number("funcTable", "name", func).unwrap();
            names.push(strings[name as usize].as_str().unwrap().to_owned());
            next = number("stackTable", "prefix", stack);
        }
        names.reverse();
        (time, weight.as_i64().unwrap(), address.as_u64().unwrap(), names.join(";"))
    });
    rows.collect()
}

#[test]
fn firefoxs_native_allocations_are_balanced_but_for_leaks() {
    let (text, warnings) = exported(&profile(), ExportFormat::Firefox, Measure::Bytes);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["meta"]["product"], "/bin/rows -n");
    assert_eq!(document["meta"]["symbolicated"], true);
    let (short, long) = (String::from("main"), String::from("main;parse;row<a;b>"));
    assert_eq!(
        native(&document, "rows"),
        [
            (0.02, 64, 16, short.clone()),
            (0.05, 100, 32, long.clone()),
            (0.05, 900, 48, long.clone()),
            (0.9, -900, 48, long.clone())
        ]
    );
    assert_eq!(native(&document, "rows, live at the peak"), [(0.02, 64, 64, short), (0.05, 300, 80, long)]);
    assert!(warnings[0].contains("numbers of allocations and source lines are left out"), "{warnings:?}");
}

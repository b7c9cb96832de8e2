//! Compares exports with speedscope's own importer: everything that its page reads and shows, without a browser.

use crate::oracles::{fixture_path, hard_profile, judge};
use mallow_base::Frame;
use mallow_formats::export::{ExportFormat, ExportOptions, write};
use mallow_formats::open_profile;
use mallow_profile::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Returns what speedscope shows of a file, or its error.
pub(crate) fn opened(text: &str) -> Result<Value, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/speedscope_app/drive.js");
    let mut node = Command::new("node");
    let output =
        node.arg(driver).arg(judge(include_str!("speedscope_app/pinned.json"))).arg(file.path()).output();
    let output = output.expect("node is installed, with `cargo xtask packages`");
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn exported(profile: &Profile, measure: Measure) -> String {
    let mut out = Vec::new();
    write(profile, ExportFormat::Speedscope, &ExportOptions { measure }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Name, file and line of a frame.
type Place = (String, Option<String>, Option<u64>);

/// Own and total metric of each name with its place, and the metric of each stack of names; without zeros.
#[derive(Debug, Default, PartialEq)]
struct Metrics {
    frames: BTreeMap<Place, (u64, u64)>,
    stacks: BTreeMap<String, u64>,
    total: u64,
}

/// As speedscope computes them.
fn theirs(profile: &Value) -> Metrics {
    let mut metrics = Metrics { total: profile["total"].as_u64().unwrap(), ..Metrics::default() };
    for frame in profile["frames"].as_array().unwrap() {
        let text = |name: &str| frame[name].as_str().map(str::to_owned);
        let key = (text("name").unwrap(), text("file"), frame["line"].as_u64());
        let value = (frame["self"].as_u64().unwrap(), frame["total"].as_u64().unwrap());
        assert_eq!(metrics.frames.insert(key, value), None, "{frame} stands twice");
    }
    for stack in profile["stacks"].as_array().unwrap() {
        *metrics.stacks.entry(stack[0].as_str().unwrap().to_owned()).or_default() +=
            stack[1].as_u64().unwrap();
    }
    metrics
}

/// The same computed naively from the profile: a function counts once per stack, the program is its root.
fn ours(profile: &Profile, measure: Measure) -> Metrics {
    let mut metrics = Metrics::default();
    let key = |frame: &Frame| -> Place {
        let line = frame.file.as_ref().and(frame.line).map(u64::from);
        (frame.function.clone(), frame.file.clone().or(frame.module.clone()), line)
    };
    for site in &profile.sites {
        let value = measure.of_site(&site.totals);
        if value == 0 {
            continue;
        }
        let program = &profile.processes[site.process.0 as usize].command;
        let program = if program.is_empty() { &profile.recording.command[0] } else { program };
        let program = program.split(' ').next().unwrap().rsplit('/').next().unwrap();
        let mut stack: Vec<_> = profile.frames(site.stack).map(key).collect();
        stack.push((program.to_owned(), None, None));
        metrics.frames.entry(stack[0].clone()).or_default().0 += value;
        for frame in stack.iter().collect::<BTreeSet<_>>() {
            metrics.frames.entry(frame.clone()).or_default().1 += value;
        }
        let names: Vec<&str> = stack.iter().rev().map(|(name, ..)| name.as_str()).collect();
        *metrics.stacks.entry(names.join(";")).or_default() += value;
        metrics.total += value;
    }
    metrics
}

/// Asserts that every known metric of a profile is shown unchanged.
fn assert_shown(profile: &Profile) {
    let opened = opened(&exported(profile, Measure::Leaked)).unwrap();
    assert_eq!(opened["importer"], json!(["Importing as speedscope json file"]));
    let known: Vec<Measure> =
        Measure::ALL.into_iter().filter(|measure| measure.is_known(&profile.known)).collect();
    let active = known.iter().position(|measure| *measure == Measure::Leaked);
    assert_eq!(opened["active"].as_u64().map(|at| at as usize), active);
    let shown = opened["profiles"].as_array().unwrap();
    assert_eq!(shown.len(), known.len());
    for (shown, measure) in shown.iter().zip(known) {
        assert_eq!(shown["unit"], if measure.is_bytes() { "bytes" } else { "none" });
        assert_eq!(theirs(shown), ours(profile, measure), "{measure:?}");
    }
}

#[test]
fn speedscope_shows_every_stack_of_what_is_hard() {
    let profile = hard_profile();
    assert_shown(&profile);
    let opened = opened(&exported(&profile, Measure::Bytes)).unwrap();
    assert_eq!((&opened["name"], &opened["active"]), (&json!("/usr/bin/app --fast"), &json!(1)));
    let total = |shown: &Value| {
        let text = |name: &str| shown[name].as_str().unwrap().to_owned();
        (text("name"), text("unit"), shown["total"].as_u64().unwrap())
    };
    let totals: Vec<_> = opened["profiles"].as_array().unwrap().iter().map(total).collect();
    assert_eq!(
        totals,
        [
            ("allocations", "none", 7_777_777),
            ("bytes allocated", "bytes", 777_777_700),
            ("bytes live at the peak", "bytes", 555_555_500),
            ("bytes live at the end", "bytes", 333_333_300),
            ("temporary allocations", "none", 2_222_222),
        ]
        .map(|(name, unit, total)| (String::from(name), String::from(unit), total))
    );
}

/// Returns two sites and the program alone: the preferred metric is what is live at the end.
fn small_profile() -> Profile {
    let recording = Recording { command: vec!["/bin/rows".into(), "-n".into()], ..Recording::default() };
    let mut builder = ProfileBuilder::new(
        recording,
        Availability { leaked: true, allocations: true, bytes: true, ..Availability::NOTHING },
    );
    let process = builder.add_process(Process { command: "/bin/rows -n".into(), ..Process::default() });
    let frame = |function: &str, line| Frame {
        function: function.into(),
        file: Some("src/rows.c".into()),
        line: Some(line),
        ..Frame::default()
    };
    let main = builder.location(Address::Unknown, vec![frame("main", 40)]);
    let inlined = vec![Frame { inlined: true, ..frame("row<a;b>", 12) }, frame("parse", 19)];
    let row = builder.location(Address::Unknown, inlined);
    let metrics = |allocations, bytes, leaked_bytes| SiteTotals {
        allocations,
        bytes,
        leaked_bytes,
        ..SiteTotals::default()
    };
    let stack = builder.stack([main, row]);
    builder.add_site(process, stack, &metrics(10, 4_000, 3_072));
    let stack = builder.stack([main]);
    builder.add_site(process, stack, &metrics(1, 1_024, 1_024));
    builder.add_site(process, None, &metrics(2, 20, 0));
    builder.finish()
}

#[test]
fn a_reader_of_speedscope_sees_these_rows() {
    let opened = opened(&exported(&small_profile(), Measure::Leaked)).unwrap();
    assert_eq!(
        opened["shown"],
        json!([
            ["#", "Name", "Total Weight"],
            ["1", "allocations", "13"],
            ["2", "bytes allocated", "4.93 KB"],
            ["3", "bytes live at the end", "4.00 KB"],
            ["Total", "Self", "Symbol Name"],
            ["3.00 KB (75%)", "3.00 KB (75%)", "row<a;b>"],
            ["4.00 KB (100%)", "1.00 KB (25%)", "main"],
            ["3.00 KB (75%)", "0 B (<0.01%)", "parse"],
            ["4.00 KB (100%)", "0 B (<0.01%)", "rows"],
        ])
    );
    assert_eq!(
        opened["profiles"][0]["stacks"],
        json!([["rows", 2], ["rows;main", 1], ["rows;main;parse;row<a;b>", 10]])
    );
    let line = |name: &str, line: u32, own: u32, total: u32| json!({ "name": name, "file": "src/rows.c", "line": line, "self": own, "total": total });
    assert_eq!(
        opened["profiles"][2]["frames"],
        json!([
            { "name": "rows", "self": 0, "total": 4_096 },
            line("main", 40, 1_024, 4_096),
            line("parse", 19, 0, 3_072),
            line("row<a;b>", 12, 3_072, 3_072),
        ])
    );
}

#[test]
fn speedscope_shows_every_stack_of_what_other_tools_recorded() {
    for name in ["realloc_chain.json", "cxx_exceptions.json", "rows.json", "inlined.mallow"] {
        let path = fixture_path(&format!("dhat/{name}"));
        let profile = open_profile(&path, ReallocAttribution::default()).unwrap().1.profile;
        assert!(profile.totals().allocations > 0, "{name}");
        assert_shown(&profile);
    }
}

/// speedscope would import it and show it as empty.
#[test]
fn a_profile_without_metrics_is_not_written() {
    let empty = ProfileBuilder::new(Recording::default(), Availability::NOTHING).finish();
    let options = ExportOptions { measure: Measure::Bytes };
    let error = write(&empty, ExportFormat::Speedscope, &options, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a speedscope file needs a metric by stack, and the profile does not contain that"
    );
}

#[test]
fn speedscope_refuses_what_is_wrong() {
    let text = exported(&small_profile(), Measure::Leaked);
    for (from, to, because) in [
        (
            "\"weights\":[10,1,2]",
            "\"weights\":[10,1]",
            "Expected samples.length (3) to equal weights.length (2)",
        ),
        ("file-format-schema.json", "file-format-schema", "Unrecognized format!"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        let said = opened(&text.replace(from, to)).unwrap_err();
        assert!(said.contains(because), "{said}");
    }
    // A wrong metric is accepted, and detected here.
    let wrong = opened(&text.replace("[10,1,2]", "[10,1,3]")).unwrap();
    assert_ne!(theirs(&wrong["profiles"][0]), ours(&small_profile(), Measure::Allocations));
}

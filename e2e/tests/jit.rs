//! Names of code that runtimes generate, on every stack, and the program does not notice that its runtime was asked.

use e2e::run;
use e2e::session::metric;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

use crate::scripts::script;

const NODE: &str = "/usr/bin/node";

/// Returns the process's perf map, which mallow removes.
fn map_of(report: &Value) -> String {
    format!("/tmp/perf-{}.map", report["processes"][0]["pid"])
}

/// Returns the frames of a site that belong to a language, innermost first.
fn frames_of<'a>(site: &'a Value, language: &str) -> Vec<&'a Value> {
    let frames = site["frames"].as_array().unwrap();
    frames.iter().filter(|frame| frame["language"] == language).collect()
}

/// Returns what a script's source states: number and bytes by line.
fn stated(path: &str) -> BTreeMap<u64, (u64, u64)> {
    let source = fs::read_to_string(path).unwrap();
    let of_line = |(line, text): (u64, &str)| {
        let (count, bytes) = text.split_once("// takes ")?.1.split_once(" x ")?;
        Some((line, (count.parse().unwrap(), bytes.parse().unwrap())))
    };
    (1..).zip(source.lines()).filter_map(of_line).collect()
}

#[test]
fn functions_of_a_node_script_have_what_they_take() {
    let path = script("buffers.js");
    let workshop = Workshop::new("jit-node");
    let session = Session::new(workshop.path(), &[NODE, &path]);
    let _ = session.record().well();
    let report = session.report(&["--sort", "bytes", "--limit", "1000000"]);
    let stated = stated(&path);
    assert_eq!(stated.len(), 12);
    let sizes: BTreeMap<u64, u64> = stated.iter().map(|(line, (_, bytes))| (*bytes, *line)).collect();
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for site in report["sites"].as_array().unwrap() {
        let (allocations, bytes) = (metric(site, "allocations"), metric(site, "bytes"));
        let frames = frames_of(site, "javascript");
        let of_file: Vec<&&Value> = frames.iter().filter(|frame| frame["file"] == path.as_str()).collect();
        let is_buffer = site["frames"][0]["function"].as_str().unwrap().contains("AllocateUninitialized");
        if !is_buffer || of_file.is_empty() {
            continue;
        }
        assert_eq!(bytes % allocations, 0, "{site}");
        let line = sizes[&(bytes / allocations)];
        // Optimised code has inlined functions: the frame is that of their caller.
        let lines: Vec<u64> = of_file.iter().map(|frame| metric(frame, "line")).collect();
        let is_hot = bytes / allocations == 1009;
        assert!(lines[0] == line || is_hot && lines[0] == 1, "{line}: {site}");
        let sum = found.entry(line).or_insert((0, bytes / allocations));
        sum.0 += allocations;
    }
    assert_eq!(found, stated);
    assert!(!fs::exists(map_of(&report)).unwrap());
}

/// The garbage collector takes the code of a function that nobody has any more, and the next function's code is where it was.
#[test]
fn a_function_keeps_its_name_when_its_place_is_anothers() {
    let workshop = Workshop::new("jit-replaced");
    let session = Session::new(workshop.path(), &[NODE, "--expose-gc", &script("replaced.js")]);
    let _ = session.record().well();
    let report = session.report(&["--sort", "bytes", "--limit", "1000000"]);
    let mut found: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for site in report["sites"].as_array().unwrap() {
        let bytes = metric(site, "bytes");
        let frames = frames_of(site, "javascript");
        let step =
            frames.iter().filter_map(|frame| frame["function"].as_str()).find(|it| it.starts_with("step_"));
        let is_buffer = site["frames"][0]["function"].as_str().unwrap().contains("AllocateUninitialized");
        if let (true, Some(step)) = (is_buffer, step) {
            found.insert(bytes, (metric(site, "allocations"), step.to_owned()));
        }
    }
    let stated = (0..20).map(|at| (5000 + at, (1, format!("step_{at}")))).collect();
    assert_eq!(found, stated);
}

/// It prints its own environment and options, and those of its child; and its folder has no new file.
#[test]
fn a_node_program_prints_and_leaves_what_it_does_without_mallow() {
    let workshop = Workshop::new("jit-node-environment");
    let path = script("buffers.js");
    for given in ["", "--max-old-space-size=200"] {
        let session = Session::new(workshop.path(), &[NODE, &path]);
        let session = if given.is_empty() { session } else { session.env("NODE_OPTIONS", given) };
        let (bare, recorded) = (session.bare().well(), session.record().well());
        assert_eq!(recorded.stdout, bare.stdout);
        let trace = session.trace().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(workshop.names(), [trace], "{recorded}");
    }
}

/// A V8 log that the user requests is where the user wants it.
#[test]
fn a_log_that_the_user_asked_for_is_there() {
    let workshop = Workshop::new("jit-log");
    let path = script("buffers.js");
    let log = ["--no-logfile-per-isolate", "--logfile=own.log", "--log-function-events"];
    let _ = Session::new(workshop.path(), &[&[NODE], &log[..], &[&path]].concat()).record().well();
    assert!(workshop.names().contains(&"own.log".to_owned()), "{:?}", workshop.names());
}

#[test]
fn a_runtime_is_left_alone_where_that_is_wanted() {
    let workshop = Workshop::new("jit-left-alone");
    let path = script("buffers.js");
    let bare = Session::new(workshop.path(), &[NODE, &path]).bare().well();
    let trace = workshop.file("trace.mallow");
    let mut mallow = run::mallow();
    mallow.args(["record", "--no-runtime-flags", "-o"]).arg(&trace).args(["--", NODE, &path]);
    assert_eq!(run::finish(&mut mallow).well().stdout, bare.stdout);
    let report = e2e::session::report_of(&trace, &["--sort", "bytes", "--limit", "100000"]).well().stdout;
    assert!(!report.contains("javascript") && report.contains("AllocateUninitialized"));
}

/// A perf map that the user requests is kept.
#[test]
fn a_list_that_the_user_asked_for_stays() {
    let workshop = Workshop::new("jit-theirs");
    let path = script("buffers.js");
    let session = Session::new(workshop.path(), &[NODE, "--perf-basic-prof", &path]);
    let session = session.env("NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack");
    let recorded = session.record().well();
    let report = session.report(&["--sort", "bytes", "--limit", "100000"]);
    assert!(report.to_string().contains("javascript"), "{recorded}");
    fs::remove_file(map_of(&report)).unwrap();
}

#[test]
fn people_are_shown_the_functions_of_their_node_script() {
    let workshop = Workshop::new("jit-shown");
    fs::write(
        workshop.file("app.js"),
        "const kept = [];\nfunction keep() {\n  kept.push(Buffer.allocUnsafeSlow(5000));\n}\nclass Store {\n  fill() {\n    for (let at = 0; at < 400; at += 1) keep();\n  }\n}\nnew Store().fill();\n",
    )
    .unwrap();
    let session = Session::new(workshop.path(), &[NODE, "app.js"]);
    let _ = session.record().well();
    let report = |more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("report").arg(session.trace()).args(["--sort", "peak", "--limit", "1"]).args(more);
        run::finish(&mut mallow).well().stdout
    };
    let lines = "\
            keep (app.js:2)
            fill (app.js:6)
            (anonymous) (app.js:1)
";
    assert!(report(&[]).contains(lines), "{}", report(&[]));
    assert!(report(&["--all-frames"]).contains("node::Start"), "{}", report(&["--all-frames"]));
    let native = report(&["--native"]);
    assert!(!native.contains("(app.js:"), "{native}");
    let mut flamegraph = run::mallow();
    flamegraph.arg("flamegraph").arg(session.trace()).args(["--folded", "--measure", "peak"]);
    let folded = run::finish(&mut flamegraph).well().stdout;
    assert!(folded.contains(";fill;keep;allocUnsafeSlow "), "{folded}");
}

//! `--no-arguments`: only the program of a command line is written down.

use e2e::gate::Suite;
use e2e::session::{json, report_of};
use e2e::{Exit, Workshop, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A shell that starts one program and executes another; each has a word that must not be written.
const COMMAND: [&str; 4] = ["/bin/sh", "-c", "/bin/echo word-1; exec /bin/echo word-2", "word-3"];

/// Returns the command lines of the processes of a report.
fn processes(document: &Value) -> Vec<&str> {
    let processes = document["processes"].as_array().into_iter().flatten();
    let mut lines: Vec<&str> = processes.filter_map(|process| process["command"].as_str()).collect();
    lines.sort_unstable();
    lines
}

/// Returns what `record` or `cpu` prints of the command, and the report of the file that it writes.
fn told(by: &str, workshop: &Workshop, more: &[&str]) -> (String, String) {
    let file = workshop.file("profile");
    let mut mallow = run::mallow();
    mallow.args([by, "--force", "-o"]).arg(&file).args(more).arg("--").args(COMMAND);
    let summary = run::finish(&mut mallow).well().stderr;
    (summary, report_of(&file, &[]).well().stdout)
}

#[test]
fn a_trace_has_programs_and_no_words() {
    let workshop = Workshop::new("no-arguments-record");
    let report = |more: &[&str]| told("record", &workshop, more);
    let (_, whole) = report(&[]);
    assert!(["word-1", "word-2", "word-3"].iter().all(|word| whole.contains(word)), "{whole}");
    let (summary, report) = report(&["--no-arguments"]);
    assert!(!summary.contains("word-") && !report.contains("word-"), "{summary}{report}");
    let report = json(&report);
    assert_eq!(report["command"], json!(["/bin/sh"]), "{report:#}");
    assert_eq!(processes(&report), ["/bin/echo", "/bin/echo", "/bin/sh"]);
}

#[test]
fn counts_have_programs_and_no_words() {
    let mut mallow = run::mallow();
    let counted = run::finish(mallow.args(["stat", "--json", "--no-arguments", "--"]).args(COMMAND)).well();
    // The command prints its words on the same stdout.
    let document = counted.stdout.lines().find(|line| line.starts_with('{')).expect("a document");
    assert!(!document.contains("word-"), "{document}");
    let document = json(document);
    assert_eq!(document["command"], json!(["/bin/sh"]));
    assert_eq!(processes(&document["runs"][0]), ["/bin/echo", "/bin/echo", "/bin/sh"]);
}

#[test]
fn a_profile_of_time_has_the_program_and_no_words() {
    let workshop = Workshop::new("no-arguments-cpu");
    let profile = |more: &[&str]| told("cpu", &workshop, more);
    assert!(profile(&[]).1.contains("word-3"));
    let (summary, report) = profile(&["--no-arguments"]);
    assert!(!summary.contains("word-") && !report.contains("word-"), "{summary}{report}");
    assert_eq!(json(&report)["command"], json!(["/bin/sh"]));
}

/// Returns the one file of this name below a folder.
fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() { found(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

#[test]
fn the_traces_of_the_gate_have_programs_and_no_words() {
    let suite = Suite::empty("no-arguments");
    let manifest = "[gate]\nruns = 1\nwarmup = 0\n[[test]]\nname = \"says\"\ncmd = [\"/bin/echo\", \"word-4\"]\nmode = \"process\"\n\
                    limit = { allocations = 100000 }\n";
    suite.write("mallow.toml", manifest);
    let trace = |arguments: &[&str]| {
        let _ = suite.check(arguments).ended(Exit::Status(0));
        let trace =
            found(&suite.workshop.file("cache"), "trace.mallow").expect("the gate keeps the last trace");
        report_of(&trace, &[]).well().stdout
    };
    assert!(trace(&[]).contains("word-4"));
    let report = trace(&["--no-arguments"]);
    assert!(!report.contains("word-4"), "{report}");
    assert_eq!(processes(&json(&report)), ["/bin/echo"]);
}

#[test]
fn a_soak_has_programs_and_no_words() {
    let workshop = Workshop::new("no-arguments-soak");
    let mode = e2e::soak::mode(Path::new(env!("CARGO_TARGET_TMPDIR")), "c", "clean");
    let samples = workshop.file("samples");
    let short = [
        "--iterations",
        "4",
        "--requests",
        "50",
        "--warm-up",
        "0",
        "--idle",
        "0s",
        "--no-extend",
        "--no-burst",
    ];
    let more = [&short[..], &["--no-arguments", "--samples", samples.to_str().unwrap()]].concat();
    let soaked = mode.soak(&more);
    assert!(mode.command.contains(&"--mode".to_owned()), "{:?}", mode.command);
    assert_eq!(json(&soaked.stdout)["command"], json!([mode.command[0]]), "{soaked}");
    let samples = fs::read_to_string(samples).unwrap();
    assert!(!soaked.stdout.contains("--mode") && !samples.contains("--mode"), "{soaked}{samples}");
}

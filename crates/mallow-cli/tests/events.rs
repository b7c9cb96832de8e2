//! Analyses of events with the real binary: on a real program, a trace without events, another tool's file.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn mallow(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.args(args).current_dir(folder).env_remove("NO_COLOR").env("COLUMNS", "80").stdin(Stdio::null());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Asserts one sentence beside warnings, nothing on stdout, and exit code 2.
#[track_caller]
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = mallow(folder, args);
    let text = stderr(&output);
    let text: String =
        text.split_inclusive('\n').filter(|line| !line.starts_with("mallow: warning: ")).collect();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{text}");
    assert!(text.starts_with("mallow: ") && text.ends_with(".\n") && text.lines().count() == 1, "{text}");
    text
}

const QUESTIONS: [&[&str]; 8] = [
    &["--timeline"],
    &["--from", "10%", "--to", "90%"],
    &["--at", "50%"],
    &["--histogram"],
    &["--threads"],
    &["--chains"],
    &["--temporary-within", "3"],
    &["--short-lived", "100us"],
];

fn recorded(flags: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let command = [&["record", "-o", "t"][..], flags, &["--", "sort", "/etc/passwd"]].concat();
    let output = mallow(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    folder
}

#[test]
fn every_question_is_answered_in_80_columns() {
    let folder = recorded(&[]);
    for question in QUESTIONS {
        let output = mallow(folder.path(), &[&["report", "t"][..], question].concat());
        let text = stdout(&output);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{question:?}");
        assert!(text.starts_with("sort /etc/passwd: "), "{text}");
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }
}

#[test]
fn what_events_tell_agrees_with_the_totals() {
    let folder = recorded(&[]);
    let args =
        ["report", "t", "--json", "--at", "100%", "--histogram", "--threads", "--temporary-within", "1"];
    let output = mallow(folder.path(), &args);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let totals = &report["totals"];
    let sum = |rows: &Value, key: &str| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
    };
    assert!(totals["allocations"].as_u64() > Some(0));
    assert_eq!(Some(sum(&report["threads"], "allocations")), totals["allocations"].as_u64());
    assert_eq!(Some(sum(&report["threads"], "bytes")), totals["bytes"].as_u64());
    assert_eq!(Some(sum(&report["histogram"]["sizes"], "bytes")), totals["bytes"].as_u64());
    assert_eq!(report["histogram"]["never_freed_blocks"], totals["leaked_blocks"]);
    assert_eq!(report["temporary_within"]["blocks"], totals["temporary"]);
    assert_eq!(report["window"]["totals"]["live_bytes"], totals["leaked_bytes"]);
    assert_eq!(report["window"]["totals"]["allocations"], totals["allocations"]);

    let output = mallow(folder.path(), &["report", "t", "--json", "--timeline"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = &report["timeline"]["slices"];
    assert_eq!(Some(sum(slices, "allocations")), totals["allocations"].as_u64());
    assert_eq!(report["timeline"]["peak_bytes"], totals["peak_bytes"]);
    let last = slices.as_array().unwrap().last().unwrap();
    assert_eq!(last["live_blocks"], totals["leaked_blocks"]);
}

#[test]
fn leaks_have_a_verdict() {
    let folder = recorded(&[]);
    let output =
        mallow(folder.path(), &["report", "t", "--json", "--sort", "leaked", "--no-default-suppressions"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let leaked = report["leaks"]["leaked"].as_array().unwrap();
    assert!(!leaked.is_empty());
    let bytes: u64 = leaked.iter().map(|site| site["leaked_bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(bytes), report["totals"]["leaked_bytes"].as_u64());
    assert!(leaked.iter().all(|site| site["judgement"].is_string()));
}

#[test]
fn without_events_one_sentence_says_what_to_do() {
    let folder = recorded(&["--summary-only"]);
    for question in QUESTIONS {
        for form in [&["report", "t"][..], &["report", "t", "--json"]] {
            let text = refused(folder.path(), &[form, question].concat());
            assert!(text.contains("has no events") && text.contains("--summary-only"), "{text}");
        }
    }
    // Leaks are still shown, without a verdict.
    let output = mallow(folder.path(), &["report", "t", "--sort", "leaked"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn another_tools_file_has_no_events() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stacks"), "main;work 3\nmain;rest 4\n").unwrap();
    for question in QUESTIONS {
        let text = refused(folder.path(), &[&["report", "stacks"][..], question].concat());
        assert!(text.contains("without events") && text.contains("mallow record"), "{text}");
    }
}

#[test]
fn windows_that_cannot_be_are_refused() {
    let folder = recorded(&[]);
    let text = refused(folder.path(), &["report", "t", "--from", "2h"]);
    assert!(text.contains("behind the recording's end"), "{text}");
    let text = refused(folder.path(), &["report", "t", "--from", "50%", "--to", "10%"]);
    assert!(text.contains("is behind --to"), "{text}");
    let text = refused(folder.path(), &["report", "t", "--threads", "--process", "1"]);
    assert!(text.contains("t has no process 1; it has "), "{text}");
    for args in [&["--timeline", "--sort", "bytes"][..], &["--at", "5x"], &["--short-lived", "10%"]] {
        let output = mallow(folder.path(), &[&["report", "t"][..], args].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{args:?}");
    }
}

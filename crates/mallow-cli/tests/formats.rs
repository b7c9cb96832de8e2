//! Other tools' files with the real binary: every fixture is reported, imported without loss, and exported again.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn mallow(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn stdout_of(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns every file under `fixtures/` that a tool wrote, with its path there.
fn fixtures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(repository().join("fixtures")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let is_source = path
                .extension()
                .is_some_and(|end| ["md", "c", "cpp", "rs", "go", "rb", "js"].iter().any(|e| end == *e));
            if !is_source {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns whether the name of a fixture says that it is of this kind.
fn is_a(path: &Path, what: &str) -> bool {
    path.to_string_lossy().contains(what)
}

fn is_allocator_state(path: &Path) -> bool {
    is_a(path, "malloc-info/") || is_a(path, "jemalloc/stats")
}

/// Returns whether it is neither a profile nor an allocator's statistics: schemas, licences, expected outputs of
/// other tools, inputs of other commands.
fn is_no_profile(path: &Path) -> bool {
    ["speedscope/", "dtrace/nio.txt", "gc-log/", "load/"].iter().any(|what| is_a(path, what))
}

/// Returns whether it is a CPU profile.
fn has_time(path: &Path) -> bool {
    is_a(path, "fixtures/cpu/")
}

/// Returns heap profiles.
fn profiles() -> Vec<PathBuf> {
    let is_of_memory = |path: &PathBuf| !is_allocator_state(path) && !is_no_profile(path) && !has_time(path);
    fixtures().into_iter().filter(is_of_memory).collect()
}

fn report(folder: &Path, file: &str) -> Value {
    serde_json::from_str(&stdout_of(mallow(folder, &["report", "--json", file]))).unwrap()
}

#[test]
fn every_fixture_is_reported_as_text_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let profiles = profiles();
    assert!(profiles.len() > 25, "only {} fixtures", profiles.len());
    for path in profiles {
        let file = path.to_str().unwrap();
        let report = report(folder.path(), file);
        assert!(!report["sites"].as_array().unwrap().is_empty(), "{file} has no sites");
        let text = stdout_of(mallow(folder.path(), &["report", file]));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 80, "{file}: a line of {widest} columns");
    }
}

#[test]
fn every_cpu_fixture_is_reported_and_its_functions_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = fixtures().into_iter().filter(|path| has_time(path)).collect();
    assert!(!files.is_empty());
    for path in files {
        let file = path.to_str().unwrap();
        let report = report(folder.path(), file);
        let functions = report["functions"].as_array().unwrap();
        let own = functions.iter().map(|row| row["self"]["samples"].as_u64().unwrap()).sum::<u64>();
        assert_eq!((Some(own), own > 0), (report["totals"]["samples"].as_u64(), true), "{file}");
        let text = stdout_of(mallow(folder.path(), &["report", file]));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // A trace holds allocations.
        let refused = mallow(folder.path(), &["import", file]);
        assert_eq!(refused.status.code(), Some(2), "{file}");
    }
}

#[test]
fn an_imported_file_reports_what_the_file_itself_does() {
    let folder = tempfile::tempdir().unwrap();
    for path in profiles().iter().filter(|path| path.extension().is_none_or(|end| end != "mallow")) {
        let file = path.to_str().unwrap();
        stdout_of(mallow(folder.path(), &["import", file, "-o", "t.mallow", "--force"]));
        let (of_file, of_trace) = (report(folder.path(), file), report(folder.path(), "t.mallow"));
        for part in ["command", "totals", "processes", "sites"] {
            assert_eq!(of_file[part], of_trace[part], "{part} of {file}");
        }
    }
}

#[test]
fn the_trace_of_an_import_stands_in_the_current_folder_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let massif = repository().join("fixtures/massif/realloc_chain.txt");
    let massif = massif.to_str().unwrap();
    let first = mallow(folder.path(), &["import", massif]);
    assert_eq!(first.status.code(), Some(0));
    assert!(folder.path().join("realloc_chain.txt.mallow").is_file());
    let said = String::from_utf8(mallow(folder.path(), &["import", massif]).stderr).unwrap();
    assert!(said.ends_with("realloc_chain.txt.mallow exists; use --force to overwrite it.\n"), "{said}");
    let again = mallow(folder.path(), &["import", "realloc_chain.txt.mallow"]);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(said.contains("is a mallow trace already"), "{said}");
}

#[test]
fn an_allocators_statistics_are_explained_and_no_profile() {
    let folder = tempfile::tempdir().unwrap();
    let states: Vec<PathBuf> = fixtures().into_iter().filter(|path| is_allocator_state(path)).collect();
    assert_eq!(states.len(), 3);
    for path in states {
        let file = path.to_str().unwrap();
        let page = stdout_of(mallow(folder.path(), &["import", file]));
        assert!(page.contains("allocated") && page.lines().all(|line| line.chars().count() <= 80), "{page}");
        let refused = mallow(folder.path(), &["report", file]);
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("show it with mallow import"), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_of_another_kind_is_named_with_the_command_that_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = repository().join("fixtures/gc-log/clean.tsv");
    let profile = repository().join("fixtures/heaptrack/csv-map-per-row.zst");
    let state = repository().join("fixtures/malloc-info/heaps.xml");
    let said = |command: &str, file: &Path| {
        let refused = mallow(folder.path(), &[command, file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2));
        String::from_utf8(refused.stderr).unwrap()
    };
    for (command, file, sentence) in [
        (
            "report",
            &log,
            "this gc_tracer log tells what Ruby's collector counted and not what allocated; show it with mallow gc-log.",
        ),
        ("import", &log, "is a gc_tracer log; see it with mallow gc-log "),
        (
            "gc-log",
            &profile,
            "this heaptrack file tells what allocated and is no gc_tracer log; show it with mallow report.",
        ),
        (
            "gc-log",
            &state,
            "this malloc_info file tells the state of an allocator and is no gc_tracer log; show it with mallow import.",
        ),
    ] {
        let said = said(command, file);
        assert!(said.contains(sentence), "{said}");
    }
}

#[test]
fn a_profile_goes_out_in_every_format_and_comes_back_with_its_sums() {
    let folder = tempfile::tempdir().unwrap();
    let file = repository().join("fixtures/heaptrack/csv-map-per-row.zst");
    let file = file.to_str().unwrap();
    let truth = report(folder.path(), file);
    for (format, metrics) in [
        ("mallow", &["allocations", "bytes", "temporary", "peak_bytes", "peak_blocks", "leaked_bytes"][..]),
        // Not the temporary ones: of the pair with the number 0 heaptrack counts any free after another free, and our files have no such pair.
        ("heaptrack", &["allocations", "peak_bytes", "leaked_bytes"]),
        ("dhat", &["allocations", "bytes", "peak_bytes", "peak_blocks", "leaked_bytes", "leaked_blocks"]),
        ("massif", &["peak_bytes", "leaked_bytes"]),
        ("jemalloc-heap", &["leaked_bytes", "leaked_blocks"]),
        ("pprof", &["allocations", "bytes", "leaked_bytes", "leaked_blocks"]),
        ("folded", &[]),
    ] {
        for end in ["", ".gz", ".zst"] {
            let name = format!("out.{format}{end}");
            stdout_of(mallow(folder.path(), &["export", file, "--format", format, "-o", &name]));
            let back = report(folder.path(), &name);
            for metric in metrics {
                assert_eq!(back["totals"][metric], truth["totals"][metric], "{metric} of {name}");
            }
        }
    }
    let temporary = |file: &str| report(folder.path(), file)["totals"]["temporary"].as_u64();
    assert_eq!((temporary(file), temporary("out.heaptrack")), (Some(4), Some(3)));
    for format in ["speedscope", "firefox"] {
        let text = stdout_of(mallow(folder.path(), &["export", file, "--format", format]));
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{format} is no JSON");
    }
}

#[test]
fn a_folded_export_holds_the_metric_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = repository().join("fixtures/heaptrack/csv-map-per-row.zst");
    let file = file.to_str().unwrap();
    let truth = report(folder.path(), file);
    for (measure, metric) in [("allocations", "allocations"), ("bytes", "bytes"), ("peak", "peak_bytes")] {
        let args = ["export", file, "--format", "folded", "--measure", measure];
        let text = stdout_of(mallow(folder.path(), &args));
        assert_eq!(text.lines().next(), Some(format!("# metric: {measure}").as_str()));
        let sum: u64 =
            text.lines().skip(1).map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        assert_eq!(Some(sum), truth["totals"][metric].as_u64(), "{measure}");
    }
}

#[test]
fn an_export_without_inlined_functions_has_a_frame_for_each_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = repository().join("fixtures/heaptrack/csv-map-per-row.zst");
    let file = file.to_str().unwrap();
    let export = |more: &[&str]| -> Vec<(String, u64)> {
        let args = [&["export", file, "--format", "folded", "--metric", "allocations"], more].concat();
        let text = stdout_of(mallow(folder.path(), &args));
        let lines = text.lines().skip(1).map(|line| line.rsplit_once(' ').unwrap());
        lines.map(|(stack, count)| (stack.to_owned(), count.parse().unwrap())).collect()
    };
    let (whole, physical) = (export(&[]), export(&["--no-inline"]));
    let sum = |stacks: &[(String, u64)]| stacks.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(sum(&physical), sum(&whole));
    let frames =
        |stacks: &[(String, u64)]| stacks.iter().map(|(stack, _)| stack.split(';').count()).max().unwrap();
    assert!(frames(&physical) < frames(&whole), "{physical:?}");
    // The compiler inlined `alloc::alloc::alloc` into its callers.
    let has = |stacks: &[(String, u64)], name: &str| {
        stacks.iter().any(|(stack, _)| stack.split(';').any(|frame| frame.contains(name)))
    };
    assert!(has(&whole, "alloc::alloc::alloc") && !has(&physical, "alloc::alloc::alloc"));
}

//! What programs map themselves, under `record --mappings`: Python's `mmap` line by line, judged by memray; what an allocator maps within its
//! calls; and that traces with and without are told apart. The rule itself is held by `programs/hazards/mappings.c`.

use crate::script_oracles::{Lines, judged, memray};
use crate::scripts::script;
use e2e::program::Program;
use e2e::session::metric;
use e2e::{Session, Workshop, run};
use serde_json::Value;
use std::fs;

const PYTHON: &str = "/usr/bin/python3";
const MAPPED: &str = "function=mmap or function=mmap_file or function=mremap";
const ALL: [&str; 4] = ["--sort", "bytes", "--limit", "1000000"];

/// Blocks of Python's own allocator are not in arenas, which it would map.
fn python(workshop: &Workshop, more: &[&str]) -> Session {
    let path = script("mapped.py");
    Session::new(workshop.path(), &[&[PYTHON, &path], more].concat()).env("PYTHONMALLOC", "malloc")
}

/// Returns the line of the script that ends with a comment.
fn line_of(mark: &str) -> u64 {
    let source = fs::read_to_string(script("mapped.py")).unwrap();
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with(&format!("  # {mark}")));
    lines.next().unwrap().0
}

/// Two metrics by the innermost line of the script.
fn by_line(report: &Value, [count, bytes]: [&str; 2]) -> Lines {
    let mut lines = Lines::new();
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let Some(frame) = frames.iter().find(|frame| frame["language"] == "python") else { continue };
        if frame["file"].as_str().unwrap().ends_with("mapped.py") {
            let line = lines.entry(metric(frame, "line")).or_default();
            *line = (line.0 + metric(site, count), line.1 + metric(site, bytes));
        }
    }
    lines
}

#[test]
fn what_python_maps_has_its_line_and_is_what_memray_says() {
    const MIB: u64 = 1 << 20;
    let workshop = Workshop::new("mapped-python");
    let session = python(&workshop, &["none"]);
    let _ = session.record_with(&["--mappings"]).well();
    let report = session.report(&[&ALL[..], &["--filter", MAPPED]].concat());
    let taken = by_line(&report, ["allocations", "bytes"]);
    let left = by_line(&report, ["leaked_blocks", "leaked_bytes"]);
    let script_bytes = fs::metadata(script("mapped.py")).unwrap().len();
    for (mark, of_line, lived) in [
        ("kept", (3, 3 * MIB), (3, 3 * MIB)),
        ("passing", (10, 500_000), (0, 0)),
        ("file", (1, script_bytes), (1, script_bytes)),
        ("small", (1, 8192), (0, 0)),
        ("grown", (1, 65_536), (1, 65_536)),
    ] {
        let line = line_of(mark);
        assert_eq!((taken[&line], left[&line]), (of_line, lived), "{mark}");
    }
    let wheel = memray(&workshop);
    let folders = format!("{}:{}", wheel.display(), workshop.path().display());
    let file = workshop.file("memray.bin");
    let session = python(&workshop, &["memray", &file.to_string_lossy()]).env("PYTHONPATH", &folders);
    let theirs = judged(&session.bare().well().stdout);
    // memray does not see `mremap`.
    for mark in ["kept", "passing", "file", "small"] {
        assert_eq!(theirs.get(&line_of(mark)), taken.get(&line_of(mark)), "{mark}");
    }
}

#[test]
fn mappings_can_be_left_out_again_and_such_traces_are_of_another_version() {
    let workshop = Workshop::new("mapped-version");
    let session = python(&workshop, &["none"]);
    let _ = session.record().well();
    let (plain, without) = (session.report(&[]), workshop.file("without.mallow"));
    fs::rename(session.trace(), &without).unwrap();
    let _ = session.record_with(&["--mappings"]).well();
    let whole = session.report(&[]);
    let parts = [MAPPED, &format!("not ({MAPPED})")].map(|filter| session.report(&["--filter", filter]));
    let allocations = |report: &Value| metric(&report["totals"], "allocations");
    assert_eq!(allocations(&parts[0]) + allocations(&parts[1]), allocations(&whole));
    assert!(allocations(&parts[0]) >= 16, "{}", allocations(&parts[0]));
    let versions = [&plain, &whole].map(|report| report["counting_version"].as_u64().unwrap_or_default());
    assert_eq!(versions, [2, 3]);
    let diff = run::finish(run::mallow().arg("diff").arg(&without).arg(session.trace()));
    assert!(diff.stderr.contains("counted by different rules, version 2 and 3"), "{diff}");
}

/// As a recording within a recording has it.
#[test]
fn a_trace_that_has_mappings_says_so_whoever_asked_for_them() {
    let workshop = Workshop::new("mapped-inherited");
    let session = python(&workshop, &["none"]).env("MALLOW_MAPPINGS", "1");
    let _ = session.record().well();
    assert!(metric(&session.report(&["--filter", MAPPED])["totals"], "allocations") >= 16);
    assert_eq!(session.report(&[])["counting_version"], 3);
}

/// An allocator maps its memory when it starts, which is seen, and within calls that are counted already.
#[test]
fn what_an_allocator_maps_within_a_call_is_not_counted_again() {
    for library in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let workshop = Workshop::new("mapped-allocator");
        let path = Program::load("allocators").build(workshop.path(), &Value::Null);
        let session = Session::new(workshop.path(), &[&path.to_string_lossy()]).env("LD_PRELOAD", library);
        let _ = session.record_with(&["--mappings"]).well();
        let below_main = |more: &str| {
            let report = session.report(&["--filter", &format!("function=main and {more}")]);
            metric(&report["totals"], "allocations")
        };
        assert_eq!(below_main(&format!("({MAPPED})")), 0, "{library}");
        // 100 + 10 + 30 + 10 + 3, by the comment of the program.
        assert_eq!(below_main(&format!("not ({MAPPED})")), 153, "{library}");
    }
}

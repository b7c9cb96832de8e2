//! The lines of a Python script against those of two tools that Python programmers know: tracemalloc's live blocks, memray's allocations.

use crate::scripts::script;
use e2e::session::metric;
use e2e::{Session, Workshop};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PYTHON: &str = "/usr/bin/python3";

/// Count and bytes by line.
type Lines = BTreeMap<u64, (u64, u64)>;

fn session(workshop: &Workshop, more: &[&str]) -> Session {
    let path = script("judged.py");
    Session::new(workshop.path(), &[&[PYTHON, &path], more].concat()).env("PYTHONMALLOC", "malloc")
}

/// What a judge printed.
fn judged(text: &str) -> Lines {
    let of_line = |line: &str| {
        let mut numbers = line.split(' ').map(|word| word.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        (next(), (next(), next()))
    };
    text.lines().map(of_line).collect()
}

/// What mallow has by the innermost line of the script, by two metrics.
fn recorded(workshop: &Workshop, [count, bytes]: [&str; 2]) -> Lines {
    let session = session(workshop, &["none"]);
    let _ = session.record().well();
    let report = session.report(&["--sort", "bytes", "--limit", "1000000"]);
    let mut lines = Lines::new();
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let Some(frame) = frames.iter().find(|frame| frame["language"] == "python") else { continue };
        if frame["file"].as_str().unwrap().ends_with("judged.py") {
            let line = lines.entry(metric(frame, "line")).or_default();
            *line = (line.0 + metric(site, count), line.1 + metric(site, bytes));
        }
    }
    lines
}

/// The line that ends in a comment.
fn line_of(mark: &str) -> u64 {
    let source = fs::read_to_string(script("judged.py")).unwrap();
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with(&format!("  # {mark}")));
    lines.next().unwrap().0
}

#[test]
fn what_lives_is_what_tracemalloc_says_line_by_line() {
    let workshop = Workshop::new("judged-tracemalloc");
    let theirs = judged(&session(&workshop, &["tracemalloc"]).bare().well().stdout);
    let ours = recorded(&workshop, ["leaked_blocks", "leaked_bytes"]);
    assert_eq!(theirs[&line_of("buffers")].0, 401, "200 objects, 200 buffers, and a list");
    for mark in ["words", "buffers", "joined", "products", "points"] {
        let line = line_of(mark);
        assert_eq!(ours.get(&line), theirs.get(&line), "{mark}");
    }
}

/// memray's wheel, with stand-ins for what it prints with and describes types by.
fn memray(workshop: &Workshop) -> PathBuf {
    let pinned: serde_json::Value = serde_json::from_str(include_str!("memray/pinned.json")).unwrap();
    let judges = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges");
    let memray = judges.join(format!("memray-{}", pinned["version"].as_str().unwrap()));
    assert!(memray.is_dir(), "{} is missing: `cargo xtask packages` fetches it", memray.display());
    let rich = workshop.file("rich");
    fs::create_dir(&rich).unwrap();
    fs::write(workshop.file("typing_extensions.py"), "from typing import TypedDict\n").unwrap();
    fs::write(rich.join("__init__.py"), "print = print\n").unwrap();
    fs::write(rich.join("progress.py"), "def __getattr__(name):\n    return type(name, (), {})\n").unwrap();
    memray
}

#[test]
fn what_is_taken_is_what_memray_says_line_by_line() {
    /// It has itself called at each call, for which this Python makes a frame object.
    const ITS_OWN_BYTES: u64 = 72;
    let workshop = Workshop::new("judged-memray");
    let wheel = memray(&workshop);
    let folders = format!("{}:{}", wheel.display(), workshop.path().display());
    let file = workshop.file("memray.bin");
    let session = session(&workshop, &["memray", &file.to_string_lossy()]).env("PYTHONPATH", &folders);
    let theirs = judged(&session.bare().well().stdout);
    let ours = recorded(&workshop, ["allocations", "bytes"]);
    // Each line with the calls of C functions that one of its runs makes, times its runs.
    for (mark, calls) in [("range", 0), ("products", 0), ("words", 1000), ("buffers", 200), ("texts", 700)] {
        let line = line_of(mark);
        let (count, bytes) = ours[&line];
        assert_eq!(theirs.get(&line), Some(&(count + calls, bytes + calls * ITS_OWN_BYTES)), "{mark}");
    }
}

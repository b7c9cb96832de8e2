//! The lines of a Python script compared with two tools that Python programmers know: tracemalloc's live blocks,
//! memray's allocations; and Python's own allocator compared with what malloc would have been asked for.

use crate::scripts::{pythons, script};
use e2e::session::{self, metric};
use e2e::{Session, Workshop, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PYTHON: &str = "/usr/bin/python3";

/// The bytes of one more digit of an integer.
const SIZE_OF_A_DIGIT: u64 = 4;

/// Count and bytes by line.
pub(crate) type Lines = BTreeMap<u64, (u64, u64)>;

fn judged_by(workshop: &Workshop, more: &[&str]) -> Session {
    let path = script("judged.py");
    Session::new(workshop.path(), &[&[PYTHON, &path], more].concat()).env("PYTHONMALLOC", "malloc")
}

/// Parses the output of such a tool.
pub(crate) fn judged(text: &str) -> Lines {
    let of_line = |line: &str| {
        let mut numbers = line.split(' ').map(|word| word.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        (next(), (next(), next()))
    };
    text.lines().map(of_line).collect()
}

/// Returns mallow's counts by the innermost line of the script, by two metrics.
fn recorded(workshop: &Workshop, [count, bytes]: [&str; 2]) -> Lines {
    let session = judged_by(workshop, &["none"]);
    let _ = session.record().well();
    by_line(&session.report(&["--sort", "bytes", "--limit", "1000000"]), [count, bytes])
}

fn by_line(report: &Value, [count, bytes]: [&str; 2]) -> Lines {
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

/// Returns the line that ends with a comment.
fn line_of(mark: &str) -> u64 {
    let source = fs::read_to_string(script("judged.py")).unwrap();
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with(&format!("  # {mark}")));
    lines.next().unwrap().0
}

#[test]
fn what_lives_is_what_tracemalloc_says_line_by_line() {
    let workshop = Workshop::new("judged-tracemalloc");
    let theirs = judged(&judged_by(&workshop, &["tracemalloc"]).bare().well().stdout);
    let ours = recorded(&workshop, ["leaked_blocks", "leaked_bytes"]);
    assert_eq!(theirs[&line_of("buffers")].0, 401, "200 objects, 200 buffers, and a list");
    for mark in ["words", "buffers", "joined", "products", "points"] {
        let line = line_of(mark);
        assert_eq!(ours.get(&line), theirs.get(&line), "{mark}");
    }
}

/// `mallow record --python-objects`: returns allocations and bytes by the innermost line of the script, and the report.
fn with_objects(workshop: &Workshop, python: &str, more: &[&str]) -> (Lines, Value) {
    let trace = workshop.file("objects.mallow");
    let mut mallow = run::mallow();
    mallow.args(["record", "--python-objects", "--force", "-o"]).arg(&trace).args([
        "--",
        python,
        &script("judged.py"),
        "none",
    ]);
    let _ = run::finish(&mut mallow).well();
    let report = session::report_of(&trace, &[&["--sort", "bytes", "--limit", "1000000"], more].concat())
        .well()
        .stdout;
    let report = session::json(&report);
    (by_line(&report, ["allocations", "bytes"]), report)
}

/// The interpreter has its own allocator in one run and malloc in the other.
#[test]
fn objects_of_pythons_own_allocator_are_those_that_malloc_would_have() {
    for python in pythons() {
        println!("{python}");
        let workshop = Workshop::new("objects");
        let (ours, report) = with_objects(&workshop, &python, &[]);
        let path = script("judged.py");
        let session = Session::new(workshop.path(), &[&python, &path, "none"]).env("PYTHONMALLOC", "malloc");
        let _ = session.record().well();
        let of_malloc = session.report(&["--sort", "bytes", "--limit", "1000000"]);
        let mut theirs = by_line(&of_malloc, ["allocations", "bytes"]);
        // `object` keeps its subclasses by their addresses, and an address below 2^30, as in 99 of 100 starts, is an integer with one digit less.
        let class = line_of("class");
        assert!(ours[&class].1.abs_diff(theirs[&class].1) <= SIZE_OF_A_DIGIT, "{ours:?} {theirs:?}");
        theirs.get_mut(&class).unwrap().1 = ours[&class].1;
        assert_eq!(ours, theirs);
        assert!(ours[&line_of("words")].0 >= 3000, "{ours:?}");
        // The name of that allocator is an additional string.
        let whole = [&report, &of_malloc].map(|report| metric(&report["totals"], "allocations"));
        assert!(whole[1] - whole[0] <= 1, "{whole:?}");
    }
}

#[test]
fn blocks_have_their_domain() {
    let workshop = Workshop::new("domains");
    let (all, _) = with_objects(&workshop, PYTHON, &[]);
    let (objects, report) = with_objects(&workshop, PYTHON, &["--domain", "objects"]);
    let (memory, _) = with_objects(&workshop, PYTHON, &["--domain", "memory"]);
    let is_object = |site: &Value| {
        site["frames"][0]["function"].as_str().unwrap().starts_with("mallow_preload::python::object::")
    };
    assert!(report["sites"].as_array().unwrap().iter().all(is_object));
    let line = line_of("products");
    assert_eq!((objects.get(&line), memory.get(&line)), (all.get(&line), None), "integers are objects");
    // A buffer of 3,000 bytes, its object, and now and then the list's table.
    let line = line_of("buffers");
    assert_eq!((objects[&line].0, memory[&line].0), (400, all[&line].0 - 400));
    let (raw, _) = with_objects(&workshop, PYTHON, &["--domain", "raw"]);
    assert_eq!(raw.get(&line), None, "what malloc was asked for on the way is part of the object's block");
}

#[test]
fn who_has_no_objects_to_record_is_told() {
    let workshop = Workshop::new("no-objects");
    let said = |words: &[&str], allocator: &str| {
        let trace = workshop.file("none.mallow");
        let mut mallow = run::mallow();
        mallow.args(["record", "--python-objects", "--force", "-o"]).arg(&trace).arg("--").args(words);
        run::finish(mallow.env("PYTHONMALLOC", allocator)).well().stderr
    };
    let of_true = said(&["/bin/true"], "");
    assert!(of_true.contains("no process let what Python hands out be recorded"), "{of_true}");
    let chosen = said(&[PYTHON, "-c", ""], "malloc");
    assert!(chosen.contains("PYTHONMALLOC chooses its allocator"), "{chosen}");
    assert!(!chosen.contains("no process let"), "{chosen}");
}

/// Returns memray's wheel, with stubs for the packages that it uses for output and for type descriptions.
pub(crate) fn memray(workshop: &Workshop) -> PathBuf {
    let pinned: Value = serde_json::from_str(include_str!("memray/pinned.json")).unwrap();
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
    /// memray is called back at each call, for which this Python creates a frame object.
    const ITS_OWN_BYTES: u64 = 72;
    let workshop = Workshop::new("judged-memray");
    let wheel = memray(&workshop);
    let folders = format!("{}:{}", wheel.display(), workshop.path().display());
    let file = workshop.file("memray.bin");
    let session = judged_by(&workshop, &["memray", &file.to_string_lossy()]).env("PYTHONPATH", &folders);
    let theirs = judged(&session.bare().well().stdout);
    let ours = recorded(&workshop, ["allocations", "bytes"]);
    // Each line with the calls of C functions in one of its runs, times its runs.
    for (mark, calls) in [("range", 0), ("products", 0), ("words", 1000), ("buffers", 200), ("texts", 700)] {
        let line = line_of(mark);
        let (count, bytes) = ours[&line];
        assert_eq!(theirs.get(&line), Some(&(count + calls, bytes + calls * ITS_OWN_BYTES)), "{mark}");
    }
}

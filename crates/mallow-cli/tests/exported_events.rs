//! Exports of a trace with single events: the curve, the order, the sizes and the times are those that were recorded.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// 100 blocks of 10,000 bytes one after another, half of them freed again, a buffer that grows, and a block that is freed at once.
const SOURCE: &str = "#include <stdlib.h>\n#include <unistd.h>\n\
    static void *volatile kept[100];\n\
    int main(void) {\n\
        for (int i = 0; i < 100; i++) { kept[i] = malloc(10000); usleep(500); }\n\
        for (int i = 0; i < 50; i++) { free(kept[i]); usleep(500); }\n\
        void *volatile grown = NULL;\n\
        for (int i = 1; i <= 40; i++) grown = realloc(grown, i * 100);\n\
        void *volatile gone = malloc(77);\n\
        free(gone);\n\
        return 0;\n\
    }\n";

fn run(folder: &Path, program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    let output: Output = command.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn mallow(folder: &Path, words: &[&str]) -> String {
    run(folder, env!("CARGO_BIN_EXE_mallow"), words)
}

fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("app.c"), SOURCE).unwrap();
    run(folder.path(), "gcc", &["-g", "-O0", "-o", "app", "app.c"]);
    mallow(folder.path(), &["record", "-o", "app.mallow", "--", "./app"]);
    folder
}

fn json(folder: &Path, file: &str, more: &[&str]) -> Value {
    let text = mallow(folder, &[&["report", "--json", file], more].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn massif_has_the_curve_with_the_exact_peak() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["export", "app.mallow", "--format", "massif", "-o", "app.massif"]);
    let shown = run(folder, "ms_print", &["app.massif"]);
    // The beginning, the ends of 99 slices and the peak.
    assert!(shown.contains("Number of snapshots: 101\n"), "{shown}");
    let text = fs::read_to_string(folder.join("app.massif")).unwrap();
    let of = |name: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
    };
    let bytes: Vec<u64> = of("mem_heap_B=").iter().map(|text| text.parse().unwrap()).collect();
    let peak = of("heap_tree=").iter().position(|kind| kind == "peak").unwrap();
    assert_eq!((bytes[0], bytes[peak], bytes.iter().max()), (0, 1_000_000, Some(&1_000_000)));
    assert!(bytes[..=peak].is_sorted(), "{bytes:?}");
    assert_eq!(bytes.last(), Some(&504_000));
    // 150 steps of half a millisecond at least, evenly: the way up and the way down have many levels.
    let mut levels = bytes.clone();
    levels.sort_unstable();
    levels.dedup();
    assert!(levels.len() > 30, "{bytes:?}");
}

/// Where a window begins blocks are there already: nothing says that none is. How many depends on how fast the program ran.
#[test]
fn the_curve_of_a_window_begins_with_what_is_live() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["export", "app.mallow", "--format", "massif", "-o", "late.massif", "--from", "50%"]);
    let text = fs::read_to_string(folder.join("late.massif")).unwrap();
    let first = text.lines().find_map(|line| line.strip_prefix("mem_heap_B=")).unwrap();
    let first: u64 = first.parse().unwrap();

    let window = &json(folder, "app.mallow", &["--from", "50%"])["window"];
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let totals = &window["totals"];
    let before = number(totals, "live_bytes") + number(totals, "freed_bytes") - number(totals, "bytes");
    // The first point is the end of the first of 99 slices.
    let (from_us, to_us) = (number(window, "from_us"), number(window, "to_us"));
    let to = format!("{}us", from_us + (to_us - from_us) / 99 + 1);
    let slice = &json(folder, "app.mallow", &["--from", "50%", "--to", &to])["window"];
    let behind = number(&slice["totals"], "live_bytes");
    assert!(
        before > 0 && first >= before.min(behind) && first <= before.max(behind),
        "{before} {first} {behind}"
    );
}

#[test]
fn a_part_of_a_trace_has_the_curve_of_its_time() {
    let folder = recorded();
    let folder = folder.path();
    let words = ["export", "app.mallow", "--format", "massif", "-o", "part.massif"];
    mallow(folder, &[&words[..], &["--to", "30%"]].concat());
    let text = fs::read_to_string(folder.join("part.massif")).unwrap();
    let live = |line: &str| line.strip_prefix("mem_heap_B=").map(|bytes| bytes.parse::<u64>().unwrap());
    let bytes: Vec<u64> = text.lines().filter_map(live).collect();
    assert!(bytes.is_sorted() && bytes.len() > 50, "{bytes:?}");
}

#[test]
fn heaptracks_file_has_the_events_as_they_were() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["export", "app.mallow", "--format", "heaptrack", "-o", "app.zst"]);
    let shown = run(folder, "heaptrack_print", &["app.zst"]);
    for line in [
        "calls to allocation functions: 141 ",
        "peak heap memory consumption: 1000.00K\n",
        "total memory leaked: 504.00K\n",
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    let sizes = |file: &str| json(folder, file, &["--histogram"])["histogram"]["sizes"].clone();
    assert!(sizes("app.mallow").as_array().is_some_and(|rows| rows.len() > 4), "{}", sizes("app.mallow"));
    assert_eq!(sizes("app.zst"), sizes("app.mallow"));
    let half = |file: &str| {
        let window = json(folder, file, &["--at", "50%"]);
        window["window"]["sites"][0]["live_bytes"].as_u64().unwrap_or_else(|| panic!("{window}"))
    };
    let (theirs, ours) = (half("app.zst"), half("app.mallow"));
    // Times are cut to milliseconds, in which two blocks are made. How many there are by then is for the machine to say.
    assert!(theirs.abs_diff(ours) <= 40_000 && ours > 0, "{theirs} and {ours}");
    // Each step of the buffer and the last block, and one more: heaptrack tells no blocks of one size and place apart, so it takes the first block that is
    // freed for the last one that was made. So it does in its own recording, which has a block of its own library in addition.
    assert!(shown.contains("temporary memory allocations: 41 "), "{shown}");
    run(folder, "heaptrack", &["-o", "theirs", "./app"]);
    let theirs = run(folder, "heaptrack_print", &["theirs.zst"]);
    for line in [
        "calls to allocation functions: 142 ",
        "temporary memory allocations: 42 ",
        "total memory leaked: 504.00K\n",
    ] {
        assert!(theirs.contains(line), "{line} in\n{theirs}");
    }
}

#[test]
fn our_own_format_keeps_the_events() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["export", "app.mallow", "--format", "mallow", "-o", "copy.mallow"]);
    let questions: [&[&str]; 5] =
        [&["--histogram"], &["--threads"], &["--chains"], &["--from", "10%", "--to", "60%"], &[]];
    for question in questions {
        assert_eq!(
            json(folder, "copy.mallow", question),
            json(folder, "app.mallow", question),
            "{question:?}"
        );
    }
    mallow(folder, &["export", "app.mallow", "--format", "mallow", "--redact", "-o", "redacted.mallow"]);
    let sizes = |file: &str| json(folder, file, &["--histogram"])["histogram"].clone();
    assert_eq!(sizes("redacted.mallow"), sizes("app.mallow"));
}

#[test]
fn an_imported_heaptrack_file_keeps_its_events_and_nothing_more() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["export", "app.mallow", "--format", "heaptrack", "-o", "app.zst"]);
    mallow(folder, &["import", "app.zst", "-o", "imported.mallow"]);
    let sizes = |file: &str| json(folder, file, &["--histogram"])["histogram"].clone();
    assert_eq!(sizes("imported.mallow"), sizes("app.zst"));
    for flag in ["--threads", "--chains"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
        let output = command.args(["report", "imported.mallow", flag]).current_dir(folder).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("is a trace of another tool's file, which does not contain"), "{text}");
    }
}

/// Without one of several processes the file has the sums of all, as before.
#[test]
fn several_processes_have_sums_in_heaptracks_file() {
    let folder = recorded();
    let folder = folder.path();
    mallow(folder, &["record", "-o", "two.mallow", "--", "sh", "-c", "./app; ./app; true"]);
    let export = |more: &[&str]| {
        let words = ["export", "two.mallow", "--format", "heaptrack", "--force", "-o", "two.txt"];
        mallow(folder, &[&words[..], more].concat());
        let text = fs::read_to_string(folder.join("two.txt")).unwrap();
        text.contains("the order of events is made up")
    };
    assert!(export(&[]));
    assert!(!export(&["--process", "largest"]));
    assert!(export(&["--process", "largest", "--filter", "function:main"]));
}

//! `mallow flamegraph` with real traces and with folded stacks.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn mallow(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Asserts one sentence, nothing on stdout, and exit code 2.
#[track_caller]
fn refused(output: &Output) -> String {
    let text = stderr(output);
    let sentences: Vec<&str> = text.lines().filter(|line| !line.starts_with("mallow: warning: ")).collect();
    assert_eq!((output.status.code(), stdout(output).as_str()), (Some(2), ""), "{text}");
    let [sentence] = sentences[..] else { panic!("{text}") };
    assert!(sentence.starts_with("mallow: ") && sentence.ends_with('.'), "{text}");
    sentence.to_owned()
}

/// Returns the tooltips of the boxes.
fn boxes(svg: &str) -> Vec<&str> {
    svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap()).collect()
}

fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = mallow(folder.path(), &["record", "-o", "t", "--", "sort", "/etc/passwd"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    folder
}

fn folded(before: &str, after: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("before"), before).unwrap();
    fs::write(folder.path().join("after"), after).unwrap();
    folder
}

#[test]
fn a_real_trace_is_drawn_and_its_stacks_add_up() {
    let folder = recorded();
    let svg = mallow(folder.path(), &["flamegraph", "t"]);
    let text = stdout(&svg);
    assert_eq!(svg.status.code(), Some(0), "{}", stderr(&svg));
    assert!(text.starts_with("<?xml") && text.trim_end().ends_with("</svg>"), "{text}");
    assert!(text.contains(">Bytes live at the peak: sort</text>"), "{text}");

    let report = mallow(folder.path(), &["report", "t", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for (measure, metric) in [
        ("allocations", "allocations"),
        ("bytes", "bytes"),
        ("peak", "peak_bytes"),
        ("leaked", "leaked_bytes"),
        ("temporary", "temporary"),
    ] {
        for more in [&[][..], &["--all-frames"]] {
            let args = [&["flamegraph", "t", "--folded", "--measure", measure][..], more].concat();
            let stacks = stdout(&mallow(folder.path(), &args));
            let values = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
            assert_eq!(report["totals"][metric].as_u64(), Some(values.sum()), "{measure}");
            assert!(stacks.lines().all(|line| line.starts_with("sort;")), "{stacks}");
        }
    }
}

#[test]
fn a_graph_goes_where_it_is_told() {
    let folder = folded("main;work 3\n", "");
    let to_file = mallow(folder.path(), &["flamegraph", "before", "-o", "out.svg"]);
    assert_eq!((to_file.status.code(), stdout(&to_file).as_str()), (Some(0), ""));
    let drawn = fs::read_to_string(folder.path().join("out.svg")).unwrap();
    assert_eq!(drawn, stdout(&mallow(folder.path(), &["flamegraph", "before"])));
    let again = refused(&mallow(folder.path(), &["flamegraph", "before", "-o", "out.svg"]));
    assert_eq!(again, "mallow: out.svg exists; use --force to overwrite it.");
    let forced = ["flamegraph", "before", "-o", "out.svg", "--force", "--icicle", "--title", "Mine & yours"];
    assert_eq!(mallow(folder.path(), &forced).status.code(), Some(0));
    let drawn = fs::read_to_string(folder.path().join("out.svg")).unwrap();
    assert!(drawn.contains(">Mine &amp; yours</text>") && drawn.contains("\"icicle\":true"), "{drawn}");
}

#[test]
fn a_terminal_gets_no_svg() {
    let folder = folded("main;work 3\n", "");
    // `script` gives its command a terminal.
    let command = format!("{} flamegraph before", env!("CARGO_BIN_EXE_mallow"));
    let mut script = Command::new("script");
    let output = script.args(["-qec", &command, "/dev/null"]).current_dir(folder.path()).output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("mallow: a flame graph is an SVG file") && !text.contains("<svg"), "{text}");
}

#[test]
fn two_profiles_are_compared() {
    let folder = folded("main;gone 4\nmain;same 2\n", "main;new 50\nmain;same 2\n");
    let stacks = mallow(folder.path(), &["flamegraph", "before", "after", "--folded"]);
    assert_eq!(stdout(&stacks), "main;gone 4 0\nmain;new 0 50\nmain;same 2 2\n");
    let svg = stdout(&mallow(folder.path(), &["flamegraph", "before", "after"]));
    assert_eq!(
        boxes(&svg),
        [
            "Allocations",
            "all\n6 allocations before, 52 after: +46, +766.7%",
            "main\n6 allocations before, 52 after: +46, +766.7%",
            "gone\n4 allocations before, 0 after: −4, gone",
            "new\n0 allocations before, 50 after: +50, new",
            "same\n2 allocations before, 2 after: no difference",
        ]
    );
    assert!(
        svg.contains("before: 6 before, after: 52 after; a box is as wide as the larger of both"),
        "{svg}"
    );
}

/// Two functions that call each other, 16,000 calls deep, on stacks of different depths.
#[test]
fn recursion_is_told_once_unless_it_is_asked_for() {
    let deep = |calls: usize| vec!["is_even;is_odd"; calls / 2].join(";");
    let folder =
        folded(&format!("main;leaf 1\nmain;{};leaf 3\nmain;{};leaf 5\n", deep(10), deep(16_000)), "");
    let svg = stdout(&mallow(folder.path(), &["flamegraph", "before"]));
    let names: Vec<&str> = boxes(&svg).iter().map(|text| text.lines().next().unwrap()).collect();
    assert_eq!(names, ["Allocations", "all", "main", "is_even × 8,000", "is_odd × 8,000", "leaf", "leaf"]);
    let unfolded = stdout(&mallow(folder.path(), &["flamegraph", "before", "--unfold"]));
    assert!(unfolded.contains(">15,603 boxes deeper than 400 calls not drawn<"), "{}", &unfolded[..3000]);
    let stacks = stdout(&mallow(folder.path(), &["flamegraph", "before", "--folded"]));
    assert_eq!(stacks.matches("is_even").count(), 8005);
}

#[test]
fn filters_choose_stacks() {
    let folder = folded("main;load;read 4\nmain;save 2\n", "");
    let stacks = mallow(folder.path(), &["flamegraph", "before", "--folded", "--function", "load"]);
    assert_eq!(stdout(&stacks), "main;load;read 4\n");
}

#[test]
fn what_a_file_does_not_tell_is_refused() {
    let folder = folded("main;work 3\n", "");
    let sentence = refused(&mallow(folder.path(), &["flamegraph", "before", "--measure", "leaked"]));
    assert_eq!(sentence, "mallow: before does not contain bytes live at the end; it contains allocations.");
    let sentence = refused(&mallow(folder.path(), &["flamegraph", "before", "--function", "none"]));
    assert_eq!(sentence, "mallow: cannot draw the allocations of before: there is nothing to draw.");
    refused(&mallow(folder.path(), &["flamegraph", "missing"]));
    refused(&mallow(folder.path(), &["flamegraph", "before", "after"]));
}

//! Which frames are shown, and how: a program's own wrappers, and the width of lines.

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns what a command prints, with additional variables in its environment.
#[track_caller]
fn mallow(folder: &Path, line: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.args(line.split(' ')).current_dir(folder).env_remove("COLUMNS").stdin(Stdio::null());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn own_wrappers_are_plumbing_where_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("f"),
        "main;load;my_take;my_take_zeroed;malloc 7\nmain;save;my_take;malloc 3\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("g"), "main;load;my_take;malloc 9\nmain;save;my_take;malloc 3\n")
        .unwrap();
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.contains('%'));
        rows.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
    };
    let report = |flags: &str| rows(&mallow(folder.path(), &format!("report f{flags}"), &[]));
    assert_eq!(report(""), ["my_take_zeroed", "my_take"]);
    assert_eq!(report(" --plumbing my_*"), ["load", "save"]);
    assert_eq!(report(" --plumbing my_take --plumbing my_take_zeroed"), ["load", "save"]);
    let stacks = mallow(folder.path(), "flamegraph f --folded --plumbing my_*", &[]);
    assert_eq!(stacks, "main;load 7\nmain;save 3\n");
    let diff = mallow(folder.path(), "diff f g --plumbing my_*", &[]);
    assert!(diff.contains("changed: +2 allocations at 1 site"), "{diff}");
}

#[test]
fn lines_are_as_wide_as_asked_and_names_whole_where_nobody_asked() {
    let folder = tempfile::tempdir().unwrap();
    let long = "app::a_module_with_a_long_name::another_module_with_a_long_name::Reader::read_one_record_and_keep_it";
    std::fs::write(folder.path().join("f"), format!("main;{long} 7\n")).unwrap();
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    for line in ["report f", "report f --sort allocations", "report f --sort allocations --all-frames"] {
        let whole = mallow(folder.path(), line, &[]);
        assert!(whole.contains(long), "{line}: {whole}");
    }
    for line in ["report f", "report f --sort allocations"] {
        let at_80 = mallow(folder.path(), line, &[("COLUMNS", "80")]);
        assert!(
            widest(&at_80) == 80 && !at_80.contains(long) && at_80.contains("read_one_record"),
            "{at_80}"
        );
        let at_100 = mallow(folder.path(), &format!("{line} --width 100"), &[("COLUMNS", "80")]);
        assert_eq!(widest(&at_100), 100, "{at_100}");
        assert!(mallow(folder.path(), line, &[("COLUMNS", "200")]).contains(long));
    }
}

/// Valgrind writes short names and `library/alloc/src/alloc.rs`, massif not even the folders; heaptrack's text has mangled names.
#[test]
fn rust_programs_are_shown_by_their_own_lines_whatever_tool_recorded_them() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let first = |line: &str| -> Vec<String> {
        let text = mallow(&fixtures, line, &[]);
        let rows = text.lines().skip_while(|line| !line.contains('%')).filter(|line| line.contains('%'));
        rows.take(2).map(|line| line.trim_start().split_once('%').unwrap().1.trim().to_owned()).collect()
    };
    let own = ["words::count (words.rs:7)", "{closure#0} (words.rs:13)"];
    assert_eq!(first("report dhat/words.json"), own);
    let tops = first("report massif/words.txt");
    assert_eq!(tops[0], "words::copies (words.rs:13)", "{tops:?}");
    for file in ["heaptrack/csv-map-per-row.zst", "heaptrack-print/rust-merged.txt"] {
        let stacks =
            mallow(&fixtures, &format!("flamegraph {file} --folded --measure allocations --all-frames"), &[]);
        for left in ["$LT$", "$u20$", "::h0", "_RNv", "_ZN"] {
            assert!(!stacks.contains(left), "{file}: {left}");
        }
    }
}

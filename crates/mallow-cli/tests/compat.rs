//! `mallow diff --compat nio`: compared with the script's own output, on files of its users.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn mallow(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallow"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

#[test]
fn dtraces_aggregations_are_compared_byte_for_byte() {
    let output = mallow(&fixtures(), &["diff", "--compat", "nio", "dtrace/before.txt", "dtrace/after.txt"]);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(output.stdout, std::fs::read(fixtures().join("dtrace/nio.txt")).unwrap());
}

#[test]
fn a_trace_is_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    mallow(folder.path(), &["record", "-o", "t", "--", "sort", "/etc/passwd"]);
    let output = mallow(folder.path(), &["diff", "--compat", "nio", "t", "t"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.starts_with("\n### only in AFTER\nTotal for only in AFTER:  0\n"), "{text}");
    assert!(text.trim_end().ends_with("DIFFERENCE:  0"), "{text}");
}

#[test]
fn our_own_flags_have_no_meaning_there() {
    for flag in ["--json", "--markdown", "--all-frames", "--min=3"] {
        let output =
            mallow(&fixtures(), &["diff", "--compat", "nio", flag, "dtrace/before.txt", "dtrace/after.txt"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
    }
    let output = mallow(&fixtures(), &["diff", "--compat", "nio", "dtrace/before.txt", "dtrace/ORIGIN.md"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
    assert!(text.starts_with("mallow: cannot read dtrace/ORIGIN.md: this is not a profile"), "{text}");
}

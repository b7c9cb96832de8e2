//! `cargo xtask soak-record`: every server of `programs/soak`, many times, and how often the verdict was right.
//!
//! What runs them is `e2e/src/bin/soak-record.rs`, because it shares with the end-to-end tests what is expected. A
//! complete record is written to `bench/record/`, one of `--only` some modes is shown.

use crate::{run, workspaces::Workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the release binary, and runs the servers against it.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    run::shown(Command::new("cargo").args(["build", "--release", "--package", "mallow"]).current_dir(root))?;
    let target = Workspace { folder: PathBuf::new() }.target_folder(root)?;
    let mut record = Command::new("cargo");
    record.args(["run", "--package", "e2e", "--bin", "soak-record", "--"]).args(words);
    record.arg("--target").arg(target.join("soak-servers")).current_dir(root);
    record.env("MALLOW_BIN", target.join("release/mallow"));
    if !words.contains(&"--only") && !words.contains(&"--output") {
        let date = run::captured(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
        record.arg("--output").arg(root.join(format!("bench/record/{}-soak-runs.md", date.trim())));
    }
    run::shown(&mut record)
}

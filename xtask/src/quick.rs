//! `cargo xtask quick`: what a developer wants to know within a minute of a change. Formatting, the project's rules, and
//! lints and tests of the crates that differ from main. It must never be taken for `cargo xtask ci`.

use crate::testing::{self, choices_of_changes};
use crate::workspaces::{self, Workspace};
use crate::{run, steps};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let changed = changed_files(root)?;
    steps::timed("fmt", || steps::fmt(root))?;
    steps::timed("tidy", || crate::tidy::run(root))?;
    let choices = choices_of_changes(root, &changed)?;
    if choices.is_empty() {
        println!(
            "    {} files differ from main, none of them a crate's: nothing to lint, no test to run",
            changed.len()
        );
        return Ok(());
    }
    let mut packages: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
    for choice in &choices {
        let of_workspace = packages.entry(choice.workspace()).or_default();
        if !of_workspace.contains(&choice.package()) {
            of_workspace.push(choice.package());
        }
    }
    for (folder, packages) in packages {
        let mut clippy = Workspace { folder: folder.to_owned() }.cargo(root, "clippy");
        clippy.args(packages.iter().flat_map(|package| ["--package", package]));
        run::shown(clippy.args(["--all-targets", "--", "-D", "warnings"]))?;
    }
    steps::timed("test", || testing::chosen(root, &choices))
}

/// Files that differ from where this branch left main, the uncommitted and the new ones included. On main itself those that
/// differ from what was pushed; where nothing was ever pushed, the uncommitted ones.
fn changed_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let git = |words: &[&str]| run::captured(Command::new("git").args(words).current_dir(root));
    let base = ["origin/main", "main"].iter().find_map(|main| git(&["merge-base", "HEAD", main]).ok());
    let base = base.map_or_else(|| "HEAD".to_owned(), |commit| commit.trim().to_owned());
    let mut names = git(&["diff", "--name-only", "-z", &base])?;
    names.push_str(&git(&["ls-files", "-z", "--others", "--exclude-standard"])?);
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    let known = workspaces::tracked_files(root)?;
    println!("    {} files differ from {}", files.len(), base.get(..12).unwrap_or(&base));
    files.retain(|file| known.binary_search(file).is_ok());
    Ok(files)
}

//! `cargo xtask wasm`: the rows of every front end are checked for a target without processes, sockets, signals and files, as a page
//! in a browser has it. `tidy` holds which packages are below them; this holds what they use of the standard library's neighbours.

use crate::run;
use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// What is checked, with everything below it.
const PACKAGES: [&str; 1] = ["mallow-view"];

/// Checks it. The target's library is installed when it is not there.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    have_target(TARGET)?;
    check(root)
}

/// The same, but a machine that cannot have the target goes without, as for Miri.
pub(crate) fn run_where_it_can_be_had(root: &Path) -> Result<(), String> {
    if let Err(sentence) = have_target(TARGET) {
        println!("    NOT RUN: {TARGET} cannot be had here, and its step found out nothing. {sentence}");
        return Ok(());
    }
    check(root)
}

/// Makes sure that the compiler's library for a target is there.
pub(crate) fn have_target(target: &str) -> Result<(), String> {
    let installed = run::captured(Command::new("rustup").args(["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line == target) {
        run::captured(Command::new("timeout").args(["300", "rustup", "target", "add", target]))?;
    }
    Ok(())
}

fn check(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["check", "--locked", "--target", TARGET]);
    run::shown(cargo.args(PACKAGES.iter().flat_map(|name| ["--package", name])))
}

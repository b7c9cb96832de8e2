//! `cargo xtask slim`: mallow without `mallow soak`, which is a feature, builds without a warning. `tidy` holds what is not below it.

use crate::run;
use std::path::Path;
use std::process::Command;

/// Checks it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["clippy", "--locked", "--package", "mallow", "--no-default-features"]);
    run::shown(cargo.args(["--", "-D", "warnings"]))
}

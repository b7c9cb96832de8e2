//! `cargo xtask slim`: mallow without `mallow soak`, which is a feature, and without what debug builds check, which releases are, builds without a
//! warning. `tidy` holds what is not below it.

use crate::run;
use std::path::Path;
use std::process::Command;

/// The packages with code for debug builds alone.
const CHECKED: [&str; 2] = ["mallow", "mallow-lookup"];

/// Checks it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["clippy", "--locked", "--no-default-features"]);
    for package in CHECKED {
        let as_released = format!("profile.dev.package.{package}.debug-assertions=false");
        cargo.args(["--package", package, "--config", &as_released]);
    }
    run::shown(cargo.args(["--", "-D", "warnings"]))
}

//! `cargo xtask slim`: mallow without `mallow soak`, which is a feature, and as it is handed out, for musl and without what debug builds check, builds
//! without a warning. `tidy` holds what is not below it. All other steps build for the C library of this machine, whose types and functions are not
//! musl's.

use crate::packages::STATIC_TARGET;
use crate::{run, wasm};
use std::path::Path;
use std::process::Command;

/// The packages with code for debug builds alone.
const CHECKED: [&str; 2] = ["mallow", "mallow-lookup"];

/// What only the feature brings, which is handed out too.
const OF_FEATURES: [&str; 1] = ["mallow-soak"];

/// Checks it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    wasm::have_target(STATIC_TARGET)?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["clippy", "--locked", "--no-default-features", "--target", STATIC_TARGET]);
    // For libraries in C.
    cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    for package in CHECKED {
        let as_released = format!("profile.dev.package.{package}.debug-assertions=false");
        cargo.args(["--package", package, "--config", &as_released]);
    }
    cargo.args(OF_FEATURES.iter().flat_map(|package| ["--package", package]));
    run::shown(cargo.args(["--", "-D", "warnings"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn packages_with_code_for_debug_builds_alone_are_checked() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = run::captured(Command::new("git").current_dir(root).args([
            "grep",
            "--name-only",
            r"#\[cfg.*debug_assertions",
            "--",
            "crates/*.rs",
        ]))
        .unwrap();
        let package = |source: &str| match source.split('/').nth(1) {
            Some("mallow-cli") => "mallow".to_owned(),
            folder => folder.unwrap_or_default().to_owned(),
        };
        let with_code: BTreeSet<String> = sources.lines().map(package).collect();
        assert_eq!(with_code, CHECKED.map(str::to_owned).into());
    }
}

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

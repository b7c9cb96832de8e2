//! Builds test programs, and learns from cargo which they are.

use super::Lints;
use crate::run;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Its package, as cargo knows it.
    pub(super) package: String,
    /// Its target: the crate's name for unit tests, otherwise the name of the file under `tests/`.
    pub(super) target: String,
    /// The executable.
    pub(super) path: PathBuf,
    /// The package's folder, where tests expect to stand.
    pub(super) folder: PathBuf,
}

impl Program {
    /// How the table calls it.
    pub(super) fn name(&self) -> String {
        let own = self.package.replace('-', "_") == self.target.replace('-', "_");
        if own { self.package.clone() } else { format!("{} {}", self.package, self.target) }
    }
}

/// Builds the test programs of the root's workspace, and the examples beside them. What a build says to people is shown.
pub(super) fn programs(root: &Path, lints: Lints) -> Result<Vec<Program>, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--workspace", "--no-run"]).current_dir(root);
    lints.into_build_of(root, &mut cargo);
    let text = run::printed(cargo.arg("--message-format=json-render-diagnostics"))?;
    let programs: Vec<Program> = text.lines().filter_map(program_of).collect();
    if programs.is_empty() {
        return Err("cargo built no test program.".to_owned());
    }
    Ok(programs)
}

/// The program that a message of cargo names.
fn program_of(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Program {
        package: package_of(message["package_id"].as_str()?).to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder,
    })
}

/// The name in a package's id: `path+file:///a/crates/mallow-wire#0.1.0`, or `…/mallow-cli#mallow@0.1.0`.
fn package_of(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_read_from_cargos_message() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///r/crates/mallow-text#0.1.0",
            "manifest_path":"/r/crates/mallow-text/Cargo.toml","target":{"kind":["test"],"name":"all"},
            "profile":{"test":true},"executable":"/t/debug/deps/all-12"}"#;
        let program = program_of(&line.replace('\n', "")).unwrap();
        assert_eq!(program.name(), "mallow-text all");
        assert_eq!(program.path, Path::new("/t/debug/deps/all-12"));
        assert_eq!(program.folder, Path::new("/r/crates/mallow-text"));
    }

    #[test]
    fn what_is_no_test_program_is_passed_over() {
        for line in [
            "   Compiling something",
            r#"{"reason":"build-finished","success":true}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/t/debug/mallow"}"#,
        ] {
            assert_eq!(program_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_package_has_its_name_in_either_form_of_id() {
        assert_eq!(package_of("path+file:///r/crates/mallow-base#0.1.0"), "mallow-base");
        assert_eq!(package_of("path+file:///r/fuzz#mallow-fuzz@0.1.0"), "mallow-fuzz");
    }
}

//! What cargo knows of the packages: ours with their arrows, and all of them with their licences.

use crate::run;
use crate::workspaces::{self, Workspace};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A package of this repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Relative to the repository.
    pub(super) manifest: PathBuf,
    /// Names of the packages of this repository that it builds on, whichever way it spells them. Tests may look
    /// behind both sides of a boundary, so their dependencies are not among them.
    pub(super) uses: Vec<String>,
}

/// A package that something in this repository is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) name: String,
    pub(super) version: String,
    /// The licence expression of its manifest, empty when it has none.
    pub(super) licence: String,
    /// The workspace's manifest, relative to the repository.
    pub(super) workspace: PathBuf,
}

/// The packages of this repository, over all its workspaces.
///
/// # Errors
/// A sentence when cargo cannot read a manifest.
pub(super) fn members(root: &Path) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for workspace in workspaces::all(root)? {
        let mut command = workspace.cargo(root, "metadata");
        let metadata = parsed(&run::captured(command.args(["--no-deps", "--format-version", "1"]))?)?;
        members.extend(list(&metadata["packages"]).iter().map(|package| member(root, package)));
    }
    members.sort_by(|a, b| a.manifest.cmp(&b.manifest));
    Ok(members)
}

/// Everything that is built here on Linux, over all workspaces. The lock files decide, so they must be up to date.
///
/// # Errors
/// A sentence when a lock file is missing or old, or when a package cannot be had.
pub(super) fn everything(root: &Path) -> Result<Vec<Used>, String> {
    let mut used = Vec::new();
    for workspace in workspaces::all(root)? {
        let mut command = workspace.cargo(root, "metadata");
        command.args(["--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
        let output =
            run::captured(&mut command).map_err(|sentence| with_cure_of_lock(&workspace, sentence))?;
        let metadata = parsed(&output)?;
        let built: Vec<&str> =
            list(&metadata["resolve"]["nodes"]).iter().map(|node| text(&node["id"])).collect();
        let packages = list(&metadata["packages"]).iter();
        used.extend(packages.filter(|package| built.contains(&text(&package["id"]))).map(|package| Used {
            name: text(&package["name"]).to_owned(),
            version: text(&package["version"]).to_owned(),
            licence: text(&package["license"]).to_owned(),
            workspace: workspace.folder.join("Cargo.toml"),
        }));
    }
    Ok(used)
}

fn with_cure_of_lock(workspace: &Workspace, sentence: String) -> String {
    if !sentence.contains("because --locked was passed") {
        return sentence;
    }
    let folder = &workspace.folder;
    format!(
        "{} does not fit the manifests any more. Run `cargo update --workspace --manifest-path {}` and commit it.",
        folder.join("Cargo.lock").display(),
        folder.join("Cargo.toml").display()
    )
}

fn member(root: &Path, package: &Value) -> Member {
    let ours = |dependency: &&Value| dependency["path"].is_string() && text(&dependency["kind"]) != "dev";
    let mut uses: Vec<String> = list(&package["dependencies"])
        .iter()
        .filter(ours)
        .map(|dependency| text(&dependency["name"]).to_owned())
        .collect();
    uses.sort();
    uses.dedup();
    let manifest = Path::new(text(&package["manifest_path"]));
    Member {
        name: text(&package["name"]).to_owned(),
        manifest: manifest.strip_prefix(root).unwrap_or(manifest).to_owned(),
        uses,
    }
}

fn parsed(metadata: &str) -> Result<Value, String> {
    serde_json::from_str(metadata).map_err(|error| format!("cargo metadata cannot be read: {error}."))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_does_not_fit_names_its_cure() {
        let fuzz = Workspace { folder: "fuzz".into() };
        let fault = "cannot update the lock file fuzz/Cargo.lock because --locked was passed to prevent this";
        assert_eq!(
            with_cure_of_lock(&fuzz, fault.to_owned()),
            "fuzz/Cargo.lock does not fit the manifests any more. \
             Run `cargo update --workspace --manifest-path fuzz/Cargo.toml` and commit it."
        );
        assert_eq!(with_cure_of_lock(&fuzz, "something else".to_owned()), "something else");
    }

    #[test]
    fn arrows_are_path_dependencies_other_than_those_of_tests() {
        let package = parsed(
            r#"{"name": "mallow-a", "manifest_path": "/r/crates/mallow-a/Cargo.toml", "dependencies": [
                {"name": "mallow-b", "path": "/r/crates/mallow-b", "kind": null},
                {"name": "mallow-c", "path": "/r/crates/mallow-c", "kind": "build"},
                {"name": "mallow-d", "path": "/r/crates/mallow-d", "kind": "dev"},
                {"name": "serde", "kind": null}]}"#,
        );
        let found = member(Path::new("/r"), &package.unwrap());
        assert_eq!(found.uses, ["mallow-b", "mallow-c"]);
        assert_eq!(found.manifest, Path::new("crates/mallow-a/Cargo.toml"));
    }
}

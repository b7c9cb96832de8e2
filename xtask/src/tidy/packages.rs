//! What cargo knows of the packages: ours with their arrows, and all of them with their licences.

use crate::workspaces::{self, Workspace};
use cargo_metadata::{Dependency, DependencyKind, NodeDep, Package};
use std::collections::{BTreeMap, BTreeSet};
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

impl Member {
    /// Where it is, relative to the repository.
    pub(super) fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(&self.manifest)
    }
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
pub(super) fn members(root: &Path) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for workspace in workspaces::all(root)? {
        let metadata = workspace.metadata(root, &["--no-deps"])?;
        members.extend(metadata.packages.iter().map(|package| member(root, package)));
    }
    members.sort_by(|a, b| a.manifest.cmp(&b.manifest));
    Ok(members)
}

/// What each package of the root workspace, ours and others', is built on when it is built on Linux; what only tests use left out.
pub(super) type Tree = BTreeMap<String, BTreeSet<String>>;

/// The whole tree of dependencies, with more flags for cargo such as `--no-default-features`.
pub(super) fn tree(root: &Path, more: &[&str]) -> Result<Tree, String> {
    let flags = [&["--filter-platform", "x86_64-unknown-linux-gnu"], more].concat();
    let metadata = Workspace { folder: PathBuf::new() }.metadata(root, &flags)?;
    let is_built = |one: &&NodeDep| one.dep_kinds.iter().any(|it| it.kind != DependencyKind::Development);
    let name = |id| metadata[id].name.to_string();
    let mut tree = Tree::new();
    for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
        let uses = node.deps.iter().filter(is_built).map(|one| name(&one.pkg));
        tree.entry(name(&node.id)).or_default().extend(uses);
    }
    Ok(tree)
}

/// Everything that is built here on Linux, over all workspaces. The lock files decide, so they must be up to date.
pub(super) fn everything(root: &Path) -> Result<Vec<Used>, String> {
    let mut used = Vec::new();
    for workspace in workspaces::all(root)? {
        let metadata = workspace
            .metadata(root, &["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])
            .map_err(|sentence| with_cure_of_lock(&workspace, sentence))?;
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        used.extend(nodes.map(|node| &metadata[&node.id]).map(|package| Used {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone().unwrap_or_default(),
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

fn member(root: &Path, package: &Package) -> Member {
    let ours = |dependency: &&Dependency| {
        dependency.path.is_some() && dependency.kind != DependencyKind::Development
    };
    let mut uses: Vec<String> =
        package.dependencies.iter().filter(ours).map(|dependency| dependency.name.clone()).collect();
    uses.sort();
    uses.dedup();
    let manifest = package.manifest_path.as_std_path();
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest).to_owned();
    Member { name: package.name.to_string(), manifest, uses }
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
        let dependency = |name: &str, path: &str, kind: &str| {
            format!(
                r#"{{"name": "{name}", "path": {path}, "kind": {kind}, "req": "*", "optional": false,
                    "uses_default_features": true, "features": []}}"#
            )
        };
        let dependencies = [
            dependency("mallow-b", "\"/r/crates/mallow-b\"", "null"),
            dependency("mallow-c", "\"/r/crates/mallow-c\"", "\"build\""),
            dependency("mallow-d", "\"/r/crates/mallow-d\"", "\"dev\""),
            dependency("serde", "null", "null"),
        ];
        let package = format!(
            r#"{{"name": "mallow-a", "version": "0.1.0", "id": "a", "targets": [], "features": {{}},
                "manifest_path": "/r/crates/mallow-a/Cargo.toml", "dependencies": [{}]}}"#,
            dependencies.join(",")
        );
        let found = member(Path::new("/r"), &serde_json::from_str(&package).unwrap());
        assert_eq!(found.uses, ["mallow-b", "mallow-c"]);
        assert_eq!(found.manifest, Path::new("crates/mallow-a/Cargo.toml"));
    }
}

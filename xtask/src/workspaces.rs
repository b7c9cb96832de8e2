//! The cargo workspaces of this repository.
//!
//! There are several because code that enters other people's processes and programs that are profiled are built with other settings than mallow itself. They are found, not listed, so that a new one
//! cannot be forgotten by a check.

use crate::run;
use cargo_metadata::{Metadata, MetadataCommand};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One workspace: a folder with a manifest that no other manifest governs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// Folder relative to the repository, empty for the root's.
    pub(crate) folder: PathBuf,
}

impl Workspace {
    /// `cargo VERB`, directed at this workspace.
    pub(crate) fn cargo(&self, root: &Path, verb: &str) -> Command {
        let mut command = Command::new("cargo");
        command.arg(verb).current_dir(root);
        if !self.is_root() {
            command.arg("--manifest-path").arg(self.folder.join("Cargo.toml"));
        }
        command
    }

    /// What cargo says of it, with these words besides.
    pub(crate) fn metadata(&self, root: &Path, words: &[&str]) -> Result<Metadata, String> {
        let mut command = self.cargo(root, "metadata");
        let text = run::captured(command.args(["--format-version", "1"]).args(words))?;
        MetadataCommand::parse(text).map_err(|error| format!("cargo metadata cannot be read: {error}."))
    }

    /// Where cargo puts what it builds of this workspace, environment and settings taken into account.
    pub(crate) fn target_folder(&self, root: &Path) -> Result<PathBuf, String> {
        Ok(self.metadata(root, &["--no-deps"])?.target_directory.into())
    }

    /// Returns whether an end-to-end test builds it anyway, lints it and runs its tests, if it has any: `e2e/tests/benchmarks.rs` and
    /// `e2e/src/soak.rs`. Its libraries take longer to build than everything else of it.
    pub(crate) fn is_built_by_end_to_end_tests(&self) -> bool {
        BUILT_BY_END_TO_END_TESTS.iter().any(|folder| self.folder == Path::new(folder))
    }

    /// Returns whether this is the workspace of mallow's own processes.
    pub(crate) fn is_root(&self) -> bool {
        self.folder.as_os_str().is_empty()
    }
}

/// See [`Workspace::is_built_by_end_to_end_tests`].
const BUILT_BY_END_TO_END_TESTS: [&str; 2] = ["markers/criterion", "programs/soak/rust"];

/// Every workspace of the repository, the root's first.
pub(crate) fn all(root: &Path) -> Result<Vec<Workspace>, String> {
    let mut found = Vec::new();
    for path in tracked_files(root)?.into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let manifest = std::fs::read_to_string(root.join(&path))
            .map_err(|error| format!("{} cannot be read: {error}.", path.display()))?;
        if governs_itself(&path, &manifest) {
            found.push(Workspace { folder: path.parent().unwrap_or(Path::new("")).to_owned() });
        }
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

/// Programs that are profiled stand alone even without a `[workspace]` table: the root excludes their folder.
fn governs_itself(path: &Path, manifest: &str) -> bool {
    path.starts_with("programs") || manifest.lines().any(|line| line.trim() == "[workspace]")
}

/// Files that belong to the repository: tracked, or new and not ignored; so that a check speaks before the commit. A link is no
/// file of its own: packages of crates hold the licences and the recorder's sources by links.
pub(crate) fn tracked_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let names = run::captured(&mut list)?;
    let is_file = |path: &PathBuf| root.join(path).symlink_metadata().is_ok_and(|what| what.is_file());
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).filter(is_file).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_not_a_workspace_and_a_program_is() {
        let member = "[package]\nname = \"a\"\n";
        assert!(!governs_itself(Path::new("crates/a/Cargo.toml"), member));
        assert!(governs_itself(Path::new("programs/a/Cargo.toml"), member));
        assert!(governs_itself(Path::new("markers/rust/Cargo.toml"), "[workspace]\n[package]\n"));
    }

    #[test]
    fn this_repository_has_its_root_and_its_recorder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folders: Vec<PathBuf> = all(root).unwrap().into_iter().map(|w| w.folder).collect();
        assert_eq!(folders.first(), Some(&PathBuf::new()));
        assert!(folders.contains(&PathBuf::from("recorder")), "{folders:?}");
    }

    #[test]
    fn a_command_for_another_workspace_names_its_manifest() {
        let workspace = Workspace { folder: PathBuf::from("recorder") };
        let command = workspace.cargo(Path::new("."), "doc");
        assert_eq!(run::as_typed(&command), "cargo doc --manifest-path recorder/Cargo.toml");
    }
}

//! Which tests belong to a crate, a file or a change.

use crate::workspaces;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tests of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    /// The folder of the package's workspace, relative to the repository.
    pub(super) workspace: PathBuf,
    /// The package; empty for all of the workspace.
    pub(super) package: String,
    /// Which of its programs, as options of `cargo test`; empty for all.
    pub(super) target: Vec<String>,
    /// Beginnings or parts of the tests' names; empty for all.
    pub(super) names: Vec<String>,
    /// Whether tests that only the long suite runs are asked for: those that were named.
    pub(super) ignored_too: bool,
}

/// Tests that lie elsewhere than what they test: a place, the package, and the part of the tests' names.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("programs/hazards/", "e2e", "hazards::{stem}"),
    ("programs/gate/", "e2e", "gate"),
    ("programs/soak/", "e2e", "soak"),
    ("programs/", "e2e", ""),
    ("integrations/", "e2e", "ci_"),
    ("README.md", "e2e", "readme::"),
    ("docs/schema/", "mallow-json", ""),
    ("docs/guide/", "mallow", ""),
    ("fixtures/", "mallow-formats", ""),
];

impl Choice {
    /// Returns whether the tests drive the `mallow` binary.
    pub(super) fn needs_mallow(&self) -> bool {
        self.package == "e2e"
    }

    /// What one gives to `cargo xtask test` for it.
    pub(super) fn word(&self) -> String {
        if self.package.is_empty() { self.workspace.display().to_string() } else { self.package.clone() }
    }

    /// The package's name.
    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    /// The folder of its workspace, relative to the repository.
    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns whether no test at all is a slip. A file may have none of its own.
    pub(super) fn must_run_some(&self) -> bool {
        !self.names.is_empty() || self.target.is_empty()
    }

    /// What `cargo xtask test WORD NAME…` asks for: a package's name, a file or a folder.
    pub(crate) fn parse(root: &Path, word: &str, names: &[&str]) -> Result<Choice, String> {
        let folder = Path::new(word.trim_end_matches('/'));
        let mut choice = if workspaces::all(root)?.iter().any(|it| !it.is_root() && it.folder == folder) {
            Choice { workspace: folder.to_owned(), ..Choice::default() }
        } else if root.join(word).exists() {
            of_file(root, folder)?
                .ok_or_else(|| format!("no test belongs to {word}; name a crate, or a file of one."))?
        } else {
            let packages = packages(root)?;
            let found = packages.iter().find(|package| package.name == word).ok_or_else(|| {
                let known: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
                format!("there is no crate and no file `{word}`; the crates are {}.", known.join(", "))
            })?;
            found.whole()
        };
        if !names.is_empty() {
            // A module is what a developer runs again and again: its long tests are for who names them.
            choice.ignored_too = names.iter().all(|name| !name.ends_with("::"));
            choice.names = names.iter().map(|name| (*name).to_owned()).collect();
        }
        Ok(choice)
    }
}

/// The tests of changed files: whole packages, but of the end-to-end tests, which are long, only what changed.
pub(crate) fn choices_of_changes(root: &Path, changed: &[PathBuf]) -> Result<Vec<Choice>, String> {
    let mut choices = BTreeSet::new();
    for file in changed.iter().filter(|file| root.join(file).exists()) {
        let Some(choice) = of_file(root, file)? else { continue };
        if choice.package == "e2e" {
            // What all of them share is tested by all of them: that is for `cargo xtask ci`.
            if !choice.names.is_empty() {
                choices.insert(choice);
            }
        } else {
            choices.insert(Choice { target: Vec::new(), names: Vec::new(), ..choice });
        }
    }
    Ok(choices.into_iter().collect())
}

/// A package of the repository.
#[derive(Debug)]
struct Package {
    name: String,
    /// Relative to the repository.
    folder: PathBuf,
    workspace: PathBuf,
}

impl Package {
    fn whole(&self) -> Choice {
        Choice { workspace: self.workspace.clone(), package: self.name.clone(), ..Choice::default() }
    }
}

fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let workspaces: Vec<PathBuf> = workspaces::all(root)?.into_iter().map(|it| it.folder).collect();
    let manifests = workspaces::tracked_files(root)?.into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let mut packages = Vec::new();
    for manifest in manifests {
        let text = std::fs::read_to_string(root.join(&manifest))
            .map_err(|error| format!("{} cannot be read: {error}.", manifest.display()))?;
        let folder = manifest.parent().unwrap_or(Path::new("")).to_owned();
        let Some(name) = name_of(&text) else { continue };
        let above = workspaces.iter().filter(|workspace| folder.starts_with(workspace));
        let workspace = above.max_by_key(|it| it.components().count()).cloned().unwrap_or_default();
        packages.push(Package { name, folder, workspace });
    }
    Ok(packages)
}

/// `name` of a manifest's `[package]`, which stands first in it.
fn name_of(manifest: &str) -> Option<String> {
    let package = manifest.split_once("[package]")?.1;
    let line = package.lines().find_map(|line| line.strip_prefix("name = \""))?;
    Some(line.trim_end_matches('"').to_owned())
}

/// The tests of a file or folder; none where no test looks at it.
fn of_file(root: &Path, file: &Path) -> Result<Option<Choice>, String> {
    let packages = packages(root)?;
    let owners = packages.iter().filter(|package| file.starts_with(&package.folder));
    if let Some(owner) = owners.max_by_key(|package| package.folder.components().count()) {
        let inside = file.strip_prefix(&owner.folder).unwrap_or(file);
        return Ok(Some(inside_package(root, owner, inside)));
    }
    let text = file.to_string_lossy();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let place = ELSEWHERE.iter().find(|(place, ..)| text.starts_with(place));
    let Some((_, name, part)) = place else { return Ok(None) };
    let mut choice = packages.iter().find(|package| package.name == *name).map(Package::whole);
    if let Some(choice) = choice.as_mut().filter(|_| !part.is_empty()) {
        choice.names = vec![part.replace("{stem}", &stem)];
    }
    Ok(choice)
}

fn inside_package(root: &Path, package: &Package, inside: &Path) -> Choice {
    let mut choice = package.whole();
    let mut words: Vec<String> =
        inside.with_extension("").iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let kind = if words.is_empty() { String::new() } else { words.remove(0) };
    let folder = root.join(&package.folder);
    match kind.as_str() {
        "src" => {
            let is_library =
                folder.join("src/lib.rs").is_file() && words.first().is_none_or(|it| it != "main");
            choice.target = vec![if is_library { "--lib" } else { "--bins" }.to_owned()];
            if let Some(last) = words.last_mut() {
                *last = last.trim_end_matches("_tests").to_owned();
            }
            words.retain(|word| !["lib", "main", "mod", "tests"].contains(&word.as_str()));
        }
        "tests" => {
            let first = words.first().cloned().unwrap_or_default();
            let is_program = !folder.join("tests/all.rs").is_file() || first == "all";
            let name = if is_program { first } else { "all".to_owned() };
            choice.target = vec!["--test".to_owned(), name];
            let is_module = !is_program && words.len() == 1;
            words.truncate(usize::from(is_module));
        }
        _ => words.clear(),
    }
    choice.names = if words.is_empty() { Vec::new() } else { vec![format!("{}::", words.join("::"))] };
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    /// Workspace, package, options and names of what a word asks for.
    fn asked(word: &str) -> String {
        let choice = Choice::parse(root(), word, &[]).unwrap();
        let workspace = choice.workspace.display().to_string();
        [workspace, choice.package, choice.target.join(" "), choice.names.join(" ")].join("|")
    }

    #[test]
    fn a_crate_is_found_by_its_name_wherever_it_is() {
        assert_eq!(asked("mallow-profile"), "|mallow-profile||");
        assert_eq!(asked("mallow-recorder"), "recorder|mallow-recorder||");
        assert_eq!(asked("crates/mallow-wire/"), "|mallow-wire||");
        assert_eq!(asked("recorder"), "recorder|||");
    }

    #[test]
    fn a_file_has_the_tests_of_its_module() {
        assert_eq!(asked("crates/mallow-collect/src/live.rs"), "|mallow-collect|--lib|live::");
        assert_eq!(asked("crates/mallow-collect/src/drain_tests.rs"), "|mallow-collect|--lib|drain::");
        assert_eq!(asked("crates/mallow-cli/src/record.rs").split('|').nth(2), Some("--bins"));
        assert_eq!(asked("xtask/src/testing/choice.rs"), "|xtask|--bins|testing::choice::");
        assert_eq!(asked("e2e/tests/hazards.rs"), "|e2e|--test all|hazards::");
        assert_eq!(asked("crates/mallow-load/tests/memory.rs"), "|mallow-load|--test all|memory::");
    }

    #[test]
    fn what_is_tested_elsewhere_leads_there() {
        assert_eq!(asked("programs/hazards/family.c"), "|e2e||hazards::family");
        assert_eq!(asked("README.md"), "|e2e||readme::");
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let fault = Choice::parse(root(), "mallow-dreams", &[]).unwrap_err();
        assert!(
            fault.starts_with("there is no crate and no file `mallow-dreams`; the crates are "),
            "{fault}"
        );
        assert!(Choice::parse(root(), "LICENSE-MIT", &[]).unwrap_err().starts_with("no test belongs to"));
    }

    #[test]
    fn a_change_asks_for_whole_crates_and_for_single_end_to_end_tests() {
        let changed = [
            "crates/mallow-wire/src/event.rs",
            "crates/mallow-wire/src/shared.rs",
            "programs/hazards/family.c",
            "e2e/src/run.rs",
            "LICENSE-MIT",
            "gone.rs",
        ];
        let choices = choices_of_changes(root(), &changed.map(PathBuf::from)).unwrap();
        let names: Vec<(&str, &[String])> =
            choices.iter().map(|choice| (choice.package.as_str(), &choice.names[..])).collect();
        let [family, run] = ["hazards::family", "run::"].map(|name| vec![name.to_owned()]);
        assert_eq!(names, [("e2e", &family[..]), ("e2e", &run[..]), ("mallow-wire", &[])]);
    }
}

//! `cargo xtask dist --twice`: this checkout and a copy of its commit in another folder, built one after the other, give the same bytes.
//! What was built here stays, so that `--try` installs what was compared.

use super::Release;
use crate::run;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a copy, and compares what was built of it with what was built here.
pub(super) fn compare(release: &Release) -> Result<(), String> {
    let here = contents(&release.out)?;
    let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}."))?;
    let copy = folder.path().join("another/deeper");
    run::captured(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(&release.root).arg(&copy))?;
    let mut cargo = Command::new("cargo");
    run::shown(cargo.args(["xtask", "dist"]).current_dir(&copy).env_remove("CARGO_TARGET_DIR"))?;
    let differing = differences(&here, &contents(&copy.join("target/packages"))?);
    if differing.is_empty() {
        println!("    {} files are the same byte for byte", here.len());
        return Ok(());
    }
    Err(format!("two builds differ in {}.", differing.join(", ")))
}

/// Refuses a checkout with changes: a copy has what is committed.
pub(super) fn has_no_changes(root: &Path) -> Result<(), String> {
    let changes = run::captured(Command::new("git").args(["status", "--porcelain"]).current_dir(root))?;
    match changes.lines().next() {
        None => Ok(()),
        Some(first) => {
            let name = first.get(3..).unwrap_or_default();
            Err(format!(
                "{name} is not as it was committed, so a copy would be built from something else; commit it first."
            ))
        }
    }
}

/// Every file that is handed out, by its name.
fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut contents = BTreeMap::new();
    for folder in [folder.to_owned(), folder.join("crates")] {
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
            contents
                .insert(path.file_name().map(PathBuf::from).unwrap_or_default(), super::stage::read(&path)?);
        }
    }
    Ok(contents)
}

/// The names of files that are not the same.
fn differences(one: &BTreeMap<PathBuf, Vec<u8>>, other: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).map(|name| name.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_with_changes_is_not_compared_with_its_commit() {
        let folder = tempfile::tempdir().unwrap();
        run::captured(Command::new("git").args(["init", "--quiet"]).current_dir(folder.path())).unwrap();
        has_no_changes(folder.path()).unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let sentence = has_no_changes(folder.path()).unwrap_err();
        assert!(sentence.starts_with("a is not as it was committed"), "{sentence}");
    }

    #[test]
    fn what_differs_and_what_only_one_has_is_named() {
        let files = |of: &[(&str, &str)]| -> BTreeMap<PathBuf, Vec<u8>> {
            of.iter().map(|(name, text)| (name.into(), text.as_bytes().to_vec())).collect()
        };
        let one = files(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(differences(&one, &one), Vec::<String>::new());
        assert_eq!(differences(&one, &files(&[("a", "1"), ("b", "4"), ("d", "5")])), ["b", "c", "d"]);
    }
}

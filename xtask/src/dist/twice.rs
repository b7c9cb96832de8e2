//! `cargo xtask dist --twice`: two checkouts of one commit in two folders, built one after the other, give the same bytes.

use crate::run;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds and compares.
pub(super) fn run(root: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}."))?;
    let mut built = Vec::new();
    for name in ["one", "another/deeper"] {
        let checkout = folder.path().join(name);
        run::captured(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(root).arg(&checkout))?;
        let mut cargo = Command::new("cargo");
        cargo
            .args(["xtask", "dist"])
            .current_dir(&checkout)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("SOURCE_DATE_EPOCH");
        run::shown(&mut cargo)?;
        built.push(contents(&checkout.join("target/dist"))?);
        // Two builds at once would fill a small disk.
        std::fs::remove_dir_all(&checkout).map_err(|error| format!("{}: {error}.", checkout.display()))?;
    }
    let differing: Vec<String> = differences(&built[0], &built[1]);
    if differing.is_empty() {
        println!("    {} files are the same byte for byte", built[0].len());
        return Ok(());
    }
    Err(format!("two builds differ in {}.", differing.join(", ")))
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
    fn what_differs_and_what_only_one_has_is_named() {
        let files = |of: &[(&str, &str)]| -> BTreeMap<PathBuf, Vec<u8>> {
            of.iter().map(|(name, text)| (name.into(), text.as_bytes().to_vec())).collect()
        };
        let one = files(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(differences(&one, &one), Vec::<String>::new());
        assert_eq!(differences(&one, &files(&[("a", "1"), ("b", "4"), ("d", "5")])), ["b", "c", "d"]);
    }
}

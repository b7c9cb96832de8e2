//! What lies in a folder: manifests and source files of tests. Folders below are not looked into.

use super::SuiteError;
use crate::manifest::{Language, MANIFEST_NAME, wrong_name};
use std::fs;
use std::path::{Path, PathBuf};

/// What a test's file begins with.
const PREFIX: &str = "test_";

/// A source file that is a test.
pub(super) struct File {
    /// Its stem.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) language: Language,
}

/// Returns whether a file is called as a manifest is.
pub(super) fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name == MANIFEST_NAME || name.ends_with(&format!(".{MANIFEST_NAME}")))
}

/// The manifest of a folder: `mallow.toml`, or else the only `*.mallow.toml`.
pub(super) fn manifest(folder: &Path) -> Result<Option<PathBuf>, SuiteError> {
    let plain = folder.join(MANIFEST_NAME);
    if plain.exists() {
        return Ok(Some(plain));
    }
    let mut named: Vec<PathBuf> =
        listed(folder)?.into_iter().filter(|path| is_manifest(path) && path.is_file()).collect();
    if named.len() > 1 {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let names = named.iter().filter_map(name).collect();
        return Err(SuiteError::Manifests { folder: folder.to_owned(), names });
    }
    Ok(named.pop())
}

/// The files of a folder that are tests, in the order of their names.
pub(super) fn files(folder: &Path) -> Result<Vec<File>, SuiteError> {
    let mut files = Vec::new();
    for path in listed(folder)? {
        let Some(language) = Language::of(&path).filter(|_| path.is_file()) else {
            continue;
        };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if !stem.starts_with(PREFIX) {
            continue;
        }
        if let Some(reason) = wrong_name(&stem) {
            return Err(SuiteError::WrongName { path, reason });
        }
        files.push(File { name: stem, path, language });
    }
    Ok(files)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let unreadable = |error| SuiteError::Unreadable { path: folder.to_owned(), error };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// Returns whether two paths lead to one file.
pub(super) fn is_same_file(left: &Path, right: &Path) -> bool {
    left == right
        || matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

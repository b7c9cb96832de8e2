//! Why there are no tests to run.

use crate::manifest::{Language, MANIFEST_NAME, ManifestError};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why there are no tests to run.
#[derive(Debug)]
pub enum SuiteError {
    /// A file or folder cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The manifest is wrong.
    Manifest(ManifestError),
    /// A file that is no manifest was named.
    NoManifest {
        /// The file.
        path: PathBuf,
    },
    /// A folder has several manifests.
    Manifests {
        /// The folder.
        folder: PathBuf,
        /// The files' names.
        names: Vec<String>,
    },
    /// Nothing there is a test.
    NoTests {
        /// The manifest or the folder.
        place: PathBuf,
        /// The manifest's suite folders.
        folders: Vec<PathBuf>,
    },
    /// Two files of one name.
    SameName {
        /// The test's name.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A test of a manifest that says nothing to run.
    NoProgram {
        /// The test's name.
        name: String,
        /// Where it stands.
        manifest: PathBuf,
    },
    /// A file whose name cannot be a test's.
    WrongName {
        /// The file.
        path: PathBuf,
        /// Why not, as a clause.
        reason: String,
    },
    /// No test and no region is called what was asked for.
    NotThere {
        /// What was asked for.
        asked: String,
        /// The names that are most like it; all of them when none is, and they are few.
        nearest: Vec<String>,
        /// How many there are.
        tests: usize,
    },
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuiteError::Unreadable { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            SuiteError::Manifest(error) => error.fmt(f),
            SuiteError::NoManifest { path } => write!(
                f,
                "{} is no manifest: name a folder, {MANIFEST_NAME} or a NAME.{MANIFEST_NAME}",
                path.display()
            ),
            SuiteError::Manifests { folder, names } => {
                write!(f, "{} has several manifests, {}: name one", folder.display(), names.join(" and "))
            }
            SuiteError::NoTests { place, folders } => no_tests(f, place, folders),
            SuiteError::SameName { name, first, second } => {
                write!(f, "{} and {} are both called {name}: rename one", first.display(), second.display())
            }
            SuiteError::NoProgram { name, manifest } => write!(
                f,
                "the test {name:?} in {} has neither `cmd` nor `source`, and no file in its suite folders \
                 is called {name}",
                manifest.display()
            ),
            SuiteError::WrongName { path, reason } => {
                write!(f, "{} cannot be a test: {reason}", path.display())
            }
            SuiteError::NotThere { asked, nearest, tests } => not_there(f, asked, nearest, *tests),
        }
    }
}

fn no_tests(f: &mut fmt::Formatter<'_>, place: &Path, folders: &[PathBuf]) -> fmt::Result {
    if !place.is_dir() {
        write!(f, "{} has no [[test]]", place.display())?;
        if folders.is_empty() {
            return f.write_str(" and no `suites`: there is nothing to check");
        }
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return write!(f, ", and there is no {} in {}", wanted(), folders.join(" or "));
    }
    write!(f, "there is no {MANIFEST_NAME} and no {} in {}", wanted(), place.display())
}

/// Such as `test_*.c, .cc or .rs`.
fn wanted() -> String {
    let endings = Language::ENDINGS.map(|(ending, _)| format!(".{ending}"));
    match endings.split_last() {
        Some((last, others)) => format!("test_*{} or {last}", others.join(", ")),
        None => "test_*".to_owned(),
    }
}

fn not_there(f: &mut fmt::Formatter<'_>, asked: &str, nearest: &[String], tests: usize) -> fmt::Result {
    let is_pattern = asked.contains(['*', '?']);
    match is_pattern {
        true => write!(f, "no test or region matches {asked:?}")?,
        false => write!(f, "there is no test or region {asked:?}")?,
    }
    match nearest {
        [] => write!(f, " among the {tests} of this suite"),
        [only] if !is_pattern => write!(f, "; did you mean {only}?"),
        names => write!(f, "; there are {}", names.join(", ")),
    }
}

impl std::error::Error for SuiteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SuiteError::Unreadable { error, .. } => Some(error),
            SuiteError::Manifest(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ManifestError> for SuiteError {
    fn from(error: ManifestError) -> SuiteError {
        SuiteError::Manifest(error)
    }
}

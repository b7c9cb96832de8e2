//! Which tests there are: those of a manifest, those of its folders, or those of a bare folder.
//!
//! Nothing is built or run here. A suite without a single test is an error, and so is asking for one that does not
//! exist: a gate that tests nothing by mistake would always be open.

mod error;
mod found;

#[cfg(test)]
mod tests;

use crate::manifest::{Gate, Manifest, Program, TestSpec};
use crate::selection::Selection;
use mallow_gate::result::TestResult;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use error::SuiteError;

/// The tests of a project, or those of them that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The folder that paths are relative to and sites are shown from: absolute, without symbolic links.
    pub folder: PathBuf,
    /// Its manifest, if it has one.
    pub manifest: Option<PathBuf>,
    /// What holds for all tests.
    pub gate: Gate,
    /// The tests that have to be run for what was asked for, in the order of the manifest, then of file names. Each has a
    /// program.
    pub tests: Vec<TestSpec>,
    /// The names of all tests, asked for or not, in the same order.
    pub names: Vec<String>,
    /// What was asked for.
    pub selection: Selection,
}

impl Suite {
    /// The suite at `path`: a manifest, a folder with one, or a folder with `test_*` files. None stands for the
    /// current folder. `only` are names or shell-style patterns of tests and regions; an empty list asks for all.
    pub fn open(path: Option<&Path>, only: &[String]) -> Result<Suite, SuiteError> {
        let path = path.unwrap_or(Path::new("."));
        let unreadable = |error| SuiteError::Unreadable { path: path.to_owned(), error };
        let mut suite = if path.metadata().map_err(unreadable)?.is_dir() {
            match found::manifest(path)? {
                Some(manifest) => of_manifest(&manifest)?,
                None => of_folder(path)?,
            }
        } else if found::is_manifest(path) {
            of_manifest(path)?
        } else {
            return Err(SuiteError::NoManifest { path: path.to_owned() });
        };
        suite.selection = Selection::of(only);
        suite.selection.check(&suite.names)?;
        suite.tests.retain(|test| suite.selection.may_be_of(&test.name));
        Ok(suite)
    }

    /// The same without tests that only may have a region of a name that was asked for, where another test is asked for itself.
    #[must_use]
    pub fn without_possible_ones(mut self) -> Suite {
        let is_named = |test: &TestSpec| self.selection.names_test(&test.name);
        if self.tests.iter().any(is_named) {
            self.tests.retain(is_named);
        }
        self
    }

    /// Leaves the results that were asked for.
    ///
    /// # Errors
    /// When something that was asked for is not among them.
    pub fn keep_selected(&self, results: &mut Vec<TestResult>) -> Result<(), SuiteError> {
        self.selection.keep(results, |result| self.test_of(&result.name).to_owned())
    }

    /// Whose result of this name is: a test's own, or that of one of its regions. One that is no test's is its own.
    pub fn test_of<'name>(&'name self, result: &'name str) -> &'name str {
        let is_of = |test: &&String| {
            result.strip_prefix(test.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.names.iter().filter(is_of).max_by_key(|test| test.len()).map_or(result, String::as_str)
    }
}

fn of_folder(path: &Path) -> Result<Suite, SuiteError> {
    let folder = canonical(path)?;
    let gate = Gate::without_manifest(&folder);
    let tests = tests_of_files(found::files(&folder)?, &folder, &gate)?;
    finish(folder, None, gate, tests)
}

fn of_manifest(path: &Path) -> Result<Suite, SuiteError> {
    // Through symbolic links: what a suite is called must not depend on the way that led to it.
    let folder =
        canonical(path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")))?;
    let unreadable = |error| SuiteError::Unreadable { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let manifest = Manifest::parse(&text, path, &folder)?;
    let mut files = Vec::new();
    for suite in &manifest.gate.suites {
        files.extend(found::files(suite)?);
    }
    let found = tests_of_files(files, &folder, &manifest.gate)?;
    let tests = joined(manifest.tests, found, path)?;
    finish(folder, Some(path.to_owned()), manifest.gate, tests)
}

fn finish(
    folder: PathBuf,
    manifest: Option<PathBuf>,
    gate: Gate,
    tests: Vec<TestSpec>,
) -> Result<Suite, SuiteError> {
    if tests.is_empty() {
        let place = manifest.unwrap_or(folder);
        return Err(SuiteError::NoTests { place, folders: gate.suites });
    }
    let names = tests.iter().map(|test| test.name.clone()).collect();
    Ok(Suite { folder, manifest, gate, tests, names, selection: Selection::default() })
}

/// A test for each file, named after its stem, in the order of names.
fn tests_of_files(files: Vec<found::File>, folder: &Path, gate: &Gate) -> Result<Vec<TestSpec>, SuiteError> {
    let mut tests: BTreeMap<String, (PathBuf, TestSpec)> = BTreeMap::new();
    for file in files {
        let program = Program::Source(file.path.clone(), file.language);
        let test = TestSpec::new(&file.name, Some(program), folder, gate.defaults.clone());
        match tests.get(&file.name) {
            // The same file, by way of two folders.
            Some((before, _)) if *before == file.path => {}
            Some((before, _)) => {
                let (first, second) = (before.clone(), file.path);
                return Err(SuiteError::SameName { name: file.name, first, second });
            }
            None => {
                tests.insert(file.name, (file.path, test));
            }
        }
    }
    Ok(tests.into_values().map(|(_, test)| test).collect())
}

/// A manifest's tests, then the files that it does not mention. A test without `cmd` and `source` says more about the
/// file that has its name.
fn joined(
    spelled: Vec<TestSpec>,
    found: Vec<TestSpec>,
    manifest: &Path,
) -> Result<Vec<TestSpec>, SuiteError> {
    let mut found: BTreeMap<String, TestSpec> =
        found.into_iter().map(|test| (test.name.clone(), test)).collect();
    let mut tests = Vec::with_capacity(spelled.len() + found.len());
    for mut test in spelled {
        let file = found.remove(&test.name);
        if let (Some(Program::Source(own, _)), Some(file)) = (&test.program, &file)
            && let Some(Program::Source(other, _)) = &file.program
            && !found::is_same_file(own, other)
        {
            let (first, second) = (own.clone(), other.clone());
            return Err(SuiteError::SameName { name: test.name, first, second });
        }
        match (&test.program, file) {
            (None, Some(file)) => test.program = file.program,
            (None, None) => {
                return Err(SuiteError::NoProgram { name: test.name, manifest: manifest.to_owned() });
            }
            (Some(_), _) => {}
        }
        tests.push(test);
    }
    // A file that a manifest gives another name is that test, and no other one.
    found.retain(|_, file| !tests.iter().any(|test| is_same_source(test, file)));
    tests.extend(found.into_values());
    Ok(tests)
}

fn is_same_source(left: &TestSpec, right: &TestSpec) -> bool {
    match (&left.program, &right.program) {
        (Some(Program::Source(left, _)), Some(Program::Source(right, _))) => found::is_same_file(left, right),
        _ => false,
    }
}

fn canonical(path: &Path) -> Result<PathBuf, SuiteError> {
    path.canonicalize().map_err(|error| SuiteError::Unreadable { path: path.to_owned(), error })
}

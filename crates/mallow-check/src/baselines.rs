//! The folder of baselines: `CLASS/TEST.json`, and `@NAME/CLASS/TEST.json` of those that have a name.

mod named;

use mallow_gate::baseline::{Baseline, BaselineError, Found, Machine};
use mallow_gate::measurement::Environment;
pub use named::NamedBaseline;
use std::path::{Path, PathBuf};

/// A baseline is some kilobytes; a file above this is something else.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A folder with a folder for each environment class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baselines {
    folder: PathBuf,
}

impl Baselines {
    /// The folder need not be there yet; a file in its place is an error.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Baselines, BaselineError> {
        let folder = folder.into();
        if folder.exists() && !folder.is_dir() {
            return Err(BaselineError(format!("{} is no folder for baselines.", folder.display())));
        }
        Ok(Baselines { folder })
    }

    /// Returns the path of a test's baseline for an environment, whether it exists or not.
    pub fn path(&self, name: &str, environment: &Environment) -> PathBuf {
        self.folder.join(environment.class_name()).join(file_name(name))
    }

    /// Finds the baseline of a test.
    pub fn find(&self, name: &str, environment: &Environment) -> Result<Found, BaselineError> {
        if let Some(baseline) = read(&self.path(name, environment), name)? {
            return Ok(Found::Exact(Box::new(baseline)));
        }
        let mut others = Vec::new();
        for class in sorted(&self.folder)? {
            others.extend(read(&class.join(file_name(name)), name)?);
        }
        Ok(if others.is_empty() { Found::None } else { Found::OtherEnvironment(others) })
    }

    /// The names of all tests that have a baseline for an environment, in order, each with its file.
    pub fn names(&self, environment: &Environment) -> Result<Vec<(String, PathBuf)>, BaselineError> {
        let mut names = Vec::new();
        for path in sorted(&self.folder.join(environment.class_name()))? {
            if path.extension().is_some_and(|end| end == "json")
                && let Some(baseline) = read_any(&path)?
            {
                names.push((baseline.name, path));
            }
        }
        names.sort();
        Ok(names)
    }

    /// The names of all tests that have a baseline for any environment, in order, each once.
    pub fn all_names(&self) -> Result<Vec<String>, BaselineError> {
        let mut names = Vec::new();
        for class in sorted(&self.folder)? {
            for path in
                sorted(&class)?.iter().filter(|path| path.extension().is_some_and(|end| end == "json"))
            {
                names.extend(read_any(path)?.map(|baseline| baseline.name));
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Writes a baseline to its place: whole or not at all. Returns the file.
    pub fn write(&self, baseline: &Baseline) -> Result<PathBuf, BaselineError> {
        let path = self.path(&baseline.name, &baseline.environment);
        let failed = |error: std::io::Error| {
            BaselineError(format!("The baseline {} cannot be written: {error}.", path.display()))
        };
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let text = baseline.to_text();
        // Left alone when nothing changes, so that build systems see no new file.
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(path);
        }
        mallow_files::publish(&path, text.as_bytes()).map_err(failed)?;
        Ok(path)
    }

    /// Removes a test's baseline for an environment. Returns the file.
    pub fn remove(&self, name: &str, environment: &Environment) -> Result<PathBuf, BaselineError> {
        let path = self.path(name, environment);
        std::fs::remove_file(&path).map_err(|error| {
            BaselineError(format!("The baseline {} cannot be removed: {error}.", path.display()))
        })?;
        Ok(path)
    }
}

/// A test's name as a file's: what file systems and shells do not take plainly is written as `%` and its bytes in hexadecimal,
/// so that different names stay different.
pub fn file_name(test: &str) -> String {
    let mut name = String::new();
    for (index, byte) in test.bytes().enumerate() {
        let is_plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && index > 0);
        if is_plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    format!("{name}.json")
}

/// Returns whether the value of the environment variable `CI` says that this is a CI machine.
pub fn is_ci(value: Option<&str>) -> bool {
    value
        .is_some_and(|value| !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no"))
}

/// The machine that this runs on.
pub fn this_machine() -> Machine {
    let first = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim_start_matches([' ', '\t', ':', '=']).trim_matches('"').to_owned()
    };
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    Machine {
        kernel: release.split('.').take(2).collect::<Vec<_>>().join("."),
        distribution: first("/etc/os-release", "PRETTY_NAME"),
        cpu: first("/proc/cpuinfo", "model name"),
    }
}

/// A folder's entries in order; none when it is not there.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, BaselineError> {
    let failed = |error: std::io::Error| {
        BaselineError(format!("The baselines in {} cannot be listed: {error}.", folder.display()))
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path, name: &str) -> Result<Option<Baseline>, BaselineError> {
    let Some(baseline) = read_any(path)? else { return Ok(None) };
    if baseline.name != name {
        let sentence = format!(
            "{} is the baseline of {:?}, not of {name:?}: it was copied.",
            path.display(),
            baseline.name
        );
        return Err(BaselineError(sentence));
    }
    Ok(Some(baseline))
}

fn read_any(path: &Path) -> Result<Option<Baseline>, BaselineError> {
    let failed = |error: &dyn std::fmt::Display| {
        BaselineError(format!("The baseline {} cannot be read: {error}.", path.display()))
    };
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    if size > FILE_BYTES_MAX {
        return Err(failed(&"it is larger than 16 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| failed(&format!("it is not text (byte {})", error.utf8_error().valid_up_to())))?;
    Baseline::from_text(&text, &path.display().to_string()).map(Some)
}

/// A file instead of a folder is not an error either: `README.md` may be beside the classes.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[path = "baselines_tests.rs"]
mod tests;

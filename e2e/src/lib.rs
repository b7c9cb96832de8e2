//! Drives the real `mallow` binary over real programs and holds its metrics against the truth.
//!
//! It must never look inside mallow: it knows the command line, the exit codes, the JSON documents and nothing else. It
//! must never make a difference smaller than it is, either: metrics are equal or the test fails.
//!
//! A test takes a [`Workshop`] (a folder that is kept when the test fails), runs commands in it through [`run`], and
//! reads what `mallow` says through [`Session`]. [`mod@hazard`] does that for a program of `programs/hazards`, whose
//! expected metrics [`expected`] compares.

pub mod ci_job;
pub mod dhat;
pub mod expected;
pub mod forge;
pub mod gate;
pub mod hazard;
pub mod picture;
pub mod program;
pub mod run;
pub mod session;
pub mod soak;
pub mod stacks;

pub use run::{Exit, Finished};
pub use session::Session;

use std::path::{Path, PathBuf};

/// The repository's root folder.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e/ lies in the repository")
}

/// A folder of one test. It disappears with the test, unless the test fails: then it stays, so that the commands in
/// the failure's text can be run again.
pub struct Workshop {
    folder: Option<tempfile::TempDir>,
}

impl Workshop {
    /// A new, empty folder whose name says which test it belongs to.
    ///
    /// # Panics
    /// When no folder can be made.
    #[must_use]
    pub fn new(test: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("mallow-e2e-{test}-"))
            .tempdir()
            .expect("the temporary folder takes another folder");
        Self { folder: Some(folder) }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), |folder| folder.path())
    }

    /// A file in the folder; it is not made.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Keeps the folder for good, and says where it is.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        self.folder.take().map(tempfile::TempDir::keep).unwrap_or_default()
    }

    /// Names of everything in the folder, sorted.
    ///
    /// # Panics
    /// When the folder cannot be read.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the test's folder can be read");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry.expect("the test's folder can be read").file_name().to_string_lossy().into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!("kept for a look: {}", folder.keep().display());
        }
    }
}

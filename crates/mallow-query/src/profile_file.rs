//! A profile from a file, whichever tool wrote it.

use crate::failure::{Failure, reason};
use crate::names::Names;
use mallow_formats::{Format, ImportError, Imported};
use mallow_profile::Profile;
use mallow_profile::ReallocAttribution;
use mallow_trace::TraceError;
use mallow_view::Origin;
use mallow_view::diff::DiffInput;
use std::path::{Path, PathBuf};

/// A profile and what is known of its file.
#[derive(Debug)]
pub struct ProfileFile {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// What is in it.
    pub profile: Profile,
    /// Whether nothing of it is missing.
    pub complete: bool,
    /// What is worth knowing about how it was read.
    pub warnings: Vec<String>,
    /// Where `realloc`'s blocks count.
    pub attribution: ReallocAttribution,
}

impl ProfileFile {
    /// Reads a file of any known format; what a trace of ours has no names for is looked up now.
    ///
    /// # Errors
    /// The file cannot be read, or is none that is known.
    pub fn open(path: &Path, attribution: ReallocAttribution) -> Result<ProfileFile, Failure> {
        let (format, imported) =
            mallow_formats::open_profile(path, attribution).map_err(|error| refused(path, &error))?;
        Ok(ProfileFile::of(path, format, imported, attribution))
    }

    /// What a reader made of a file; what a trace of ours has no names for is looked up now.
    pub(crate) fn of(
        path: &Path,
        format: Format,
        imported: Imported,
        attribution: ReallocAttribution,
    ) -> ProfileFile {
        let (mut profile, mut warnings) = (imported.profile, imported.warnings);
        if format == Format::Mallow && !imported.complete {
            let mut names = Names::new();
            names.complete(&mut profile.stacks);
            warnings.extend_from_slice(names.warnings());
        }
        let (path, complete) = (path.to_owned(), imported.complete);
        ProfileFile { path, format, profile, complete, warnings, attribution }
    }

    /// What people and scripts call its format.
    pub fn origin(&self) -> Origin {
        let ProfileFile { format, .. } = *self;
        Origin { word: format.word(), name: format.name(), is_trace: format == Format::Mallow }
    }

    /// One side of a diff.
    pub fn side(&self) -> DiffInput<'_> {
        let ProfileFile { path, profile, complete, warnings, .. } = self;
        DiffInput { file: path, profile, complete: *complete, warnings }
    }
}

/// Why a file was not read.
pub fn refused(path: &Path, error: &ImportError) -> Failure {
    let path = path.display();
    Failure::new(match error {
        ImportError::Io(error) | ImportError::Trace(TraceError::Io(error)) => {
            format!("cannot read {path}: {}.", reason(error))
        }
        other => format!("cannot read {path}: {other}."),
    })
}

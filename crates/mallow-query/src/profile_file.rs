//! A profile from a file, whichever tool wrote it.

use crate::addresses::name_addresses;
use crate::failure::{Failure, reason};
use crate::filtered::Filtered;
use crate::names::Names;
use crate::processes::ProcessChoice;
use crate::proportion::keep_in_proportion;
use mallow_formats::{Format, ImportError, Imported};
use mallow_profile::{Availability, Nameless, ProcessIndex, Profile, ReallocAttribution};
use mallow_trace::TraceError;
use mallow_view::diff::DiffInput;
use mallow_view::{Origin, PartOf};
use std::path::{Path, PathBuf};

/// A profile and what is known of its file.
#[derive(Debug)]
pub struct ProfileFile {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Its contents.
    pub profile: Profile,
    /// Whether nothing of it is missing.
    pub complete: bool,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
    /// To which stack `realloc`'s blocks are attributed.
    pub attribution: ReallocAttribution,
    /// Which part of it is in the profile, if that is not all.
    pub part: Option<PartOf>,
    /// The file's own indices of the profile's processes, where some were left out.
    pub(crate) kept: Option<Vec<ProcessIndex>>,
    /// What its filter selects, if it has one.
    pub(crate) filtered: Option<Filtered>,
}

impl ProfileFile {
    /// Reads a file of any known format; addresses without symbols in a trace that was recorded here are resolved now.
    ///
    /// # Errors
    /// The file cannot be read, or its format is unknown.
    pub fn open(path: &Path, attribution: ReallocAttribution) -> Result<ProfileFile, Failure> {
        let (format, imported) =
            mallow_formats::open_profile(path, attribution).map_err(|error| refused(path, &error))?;
        Ok(ProfileFile::of(path, format, imported, attribution))
    }

    /// Wraps what a reader made of a file of another tool.
    pub fn read(path: &Path, format: Format, imported: Imported) -> ProfileFile {
        ProfileFile::of(path, format, imported, ReallocAttribution::OwnSite)
    }

    /// Wraps the result of a reader; addresses without symbols in a trace that was recorded here are resolved now.
    pub(crate) fn of(
        path: &Path,
        format: Format,
        imported: Imported,
        attribution: ReallocAttribution,
    ) -> ProfileFile {
        let (mut profile, mut warnings) = (imported.profile, imported.warnings);
        warnings.extend(name_addresses(path, format, &mut profile, imported.complete));
        keep_nameless(&mut profile);
        warnings.extend(profile.recording.nameless.iter().map(Nameless::sentence));
        keep_in_proportion(path, &mut profile.stacks, &profile.sites, &mut warnings);
        let (path, complete) = (path.to_owned(), imported.complete);
        ProfileFile {
            path,
            format,
            profile,
            complete,
            warnings,
            attribution,
            part: None,
            kept: None,
            filtered: None,
        }
    }

    /// The index that a process of the profile has in the file.
    pub(crate) fn index_in_file(&self, index: ProcessIndex) -> ProcessIndex {
        self.kept.as_ref().map_or(index, |kept| kept[index.0 as usize])
    }

    /// Keeps only the chosen processes. If they are one program, its command replaces that of the recording.
    ///
    /// # Errors
    /// There is none; the sentence lists the processes.
    pub(crate) fn keep(&mut self, choice: &ProcessChoice) -> Result<(), Failure> {
        let kept = choice.of_heap(&self.profile, &self.path)?;
        self.keep_indices(&kept);
        let processes = &self.profile.processes;
        let command = processes.first().map(|process| process.command.clone()).unwrap_or_default();
        if !command.is_empty() && processes.iter().all(|process| process.command == command) {
            self.profile.recording.command = command.split(' ').map(str::to_owned).collect();
        }
        Ok(())
    }

    /// Leaves only these processes.
    pub(crate) fn keep_indices(&mut self, kept: &[ProcessIndex]) {
        self.kept = Some(kept.iter().map(|index| self.index_in_file(*index)).collect());
        if let Some(filtered) = &mut self.filtered {
            filtered.keep_indices(kept);
        }
        self.profile.keep_processes(kept);
    }

    /// Returns whether single events can be read.
    pub(crate) fn has_events(&self) -> bool {
        match self.format {
            Format::Mallow => self.profile.known != Availability::NOTHING,
            // Without times its events were made up, to add up to sums.
            Format::Heaptrack => self.profile.known.times,
            _ => false,
        }
    }

    /// Returns the name of its format.
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

/// Leaves those of the modules without names that have none still: others were looked up later.
fn keep_nameless(profile: &mut Profile) {
    let Profile { stacks, recording, .. } = profile;
    recording.nameless.retain(|nameless| Names::are_missing_of(stacks, &nameless.module));
}

/// Why a file was not read.
pub fn refused(path: &Path, error: &ImportError) -> Failure {
    let is_stdin = path.as_os_str() == mallow_files::STREAM;
    let path = if is_stdin { "stdin".into() } else { path.to_string_lossy() };
    Failure::new(match error {
        ImportError::Io(error) | ImportError::Trace(TraceError::Io(error)) => {
            format!("cannot read {path}: {}.", reason(error))
        }
        other => format!("cannot read {path}: {other}."),
    })
}

//! Opens files of all kinds: recognises the format by the first bytes, and calls the reader.

use crate::allocator::{self, AllocatorState};
use crate::any_imported::{AnyImported, ImportedCpu};
use crate::gc_log::{self, Choice, GcLog, GcLogError};
use crate::import;
use crate::snapshot;
use crate::source::Source;
use crate::{Format, ImportError, Imported, Kind};
use mallow_heapsnap::{Histogram, Snapshot};
use mallow_profile::ReallocAttribution;
use std::path::Path;

/// The contents of a file.
#[derive(Clone, Debug)]
pub enum Document {
    /// A heap profile.
    Profile(Format, Imported),
    /// A CPU profile.
    Cpu(Format, ImportedCpu),
    /// The statistics of an allocator.
    AllocatorState(AllocatorState),
    /// A log of Ruby's garbage collector.
    GcLog(GcLog),
    /// The objects of a managed heap.
    Snapshot(Format, Box<Snapshot>),
}

/// Opens a file of any known kind.
///
/// # Errors
/// See [`ImportError`].
pub fn open(path: &Path) -> Result<Document, ImportError> {
    let (source, format) = recognised(path)?;
    Ok(match format.kind() {
        Kind::Profile => match import::any_of_file(source, format, path, ReallocAttribution::OwnSite)? {
            AnyImported::Heap(imported) => Document::Profile(format, imported),
            AnyImported::Cpu(imported) => Document::Cpu(format, imported),
        },
        Kind::AllocatorState => Document::AllocatorState(allocator::of_source(source, format)?),
        Kind::GcLog => Document::GcLog(gc_log::read(&source.whole(format)?, &Choice::default())?),
        Kind::Snapshot => {
            let again = || Source::of_file(path);
            Document::Snapshot(format, Box::new(snapshot::of_source(source, format, again)?))
        }
    })
}

/// Returns the format of a file, by its first bytes.
///
/// # Errors
/// See [`ImportError`].
pub fn format_of(path: &Path) -> Result<Format, ImportError> {
    recognised(path).map(|(_, format)| format)
}

/// Opens a heap profile. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_profile(path: &Path, attribution: ReallocAttribution) -> Result<(Format, Imported), ImportError> {
    let (source, format) = recognised(path)?;
    Ok((format, import::of_file(source, format, path, attribution)?))
}

/// Opens a heap profile or a CPU profile. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_any_profile(
    path: &Path,
    attribution: ReallocAttribution,
) -> Result<(Format, AnyImported), ImportError> {
    let (source, format) = recognised(path)?;
    Ok((format, import::any_of_file(source, format, path, attribution)?))
}

/// Opens a snapshot of a heap. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_snapshot(path: &Path) -> Result<(Format, Snapshot), ImportError> {
    let (source, format) = recognised(path)?;
    Ok((format, snapshot::of_source(source, format, || Source::of_file(path))?))
}

/// Opens a snapshot of a heap for its objects only: references and equal strings may be missing, so it cannot show
/// what holds an object. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_objects(path: &Path) -> Result<(Format, Snapshot), ImportError> {
    let (source, format) = recognised(path)?;
    Ok((format, snapshot::objects(source, format, || Source::of_file(path))?))
}

/// Counts the objects of each class in a snapshot of a heap. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_histogram(path: &Path) -> Result<(Format, Histogram), ImportError> {
    let (source, format) = recognised(path)?;
    Ok((format, snapshot::histogram(source, format, || Source::of_file(path))?))
}

/// Opens a log of Ruby's collector. A file of another kind is refused before it is read.
///
/// # Errors
/// See [`ImportError`].
pub fn open_gc_log(path: &Path, choice: &Choice) -> Result<GcLog, ImportError> {
    match recognised(path) {
        Ok((source, Format::GcTracer)) => Ok(gc_log::read(&source.whole(Format::GcTracer)?, choice)?),
        // Any text may be mistaken for one of these two.
        Ok((_, Format::Dtrace | Format::Folded)) | Err(ImportError::Unknown { .. }) => {
            Err(GcLogError::NoHeader.into())
        }
        Ok((_, format)) => Err(ImportError::NotAGcLog { format }),
        Err(error) => Err(error),
    }
}

fn recognised(path: &Path) -> Result<(Source<'static>, Format), ImportError> {
    let source = Source::of_file(path)?;
    let format = source.format()?;
    Ok((source, format))
}

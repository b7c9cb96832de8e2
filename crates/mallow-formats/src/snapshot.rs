//! Snapshots of managed heaps, one module per format.

mod blocks;
mod hprof;
pub(crate) mod python;
pub(crate) mod ruby;
pub(crate) mod v8;

use crate::source::Source;
use crate::{Format, ImportError};
use mallow_heapsnap::{Histogram, Snapshot};
use std::io;

/// Parses a snapshot in memory, in a known format.
///
/// # Errors
/// See [`ImportError`].
pub fn read_snapshot_as(bytes: &[u8], format: Format) -> Result<Snapshot, ImportError> {
    of_source(Source::of_bytes(bytes)?, format, || Source::of_bytes(bytes))
}

/// Counts the objects of each class. If possible, nothing else is parsed.
pub(crate) fn histogram<'a>(
    source: Source<'a>,
    format: Format,
    open: impl Fn() -> io::Result<Source<'a>> + Sync,
) -> Result<Histogram, ImportError> {
    match format {
        Format::Hprof => hprof::histogram(open),
        _ => Ok(Histogram::of(&objects(source, format, open)?)),
    }
}

/// Parses the objects of a snapshot. If possible, their references and equal strings are skipped.
pub(crate) fn objects<'a>(
    source: Source<'a>,
    format: Format,
    open: impl Fn() -> io::Result<Source<'a>> + Sync,
) -> Result<Snapshot, ImportError> {
    match format {
        Format::RubyHeap => ruby::read_objects(source),
        _ => of_source(source, format, open),
    }
}

/// Parses a snapshot, opening it again if necessary; a file of another kind is refused.
pub(crate) fn of_source<'a>(
    source: Source<'a>,
    format: Format,
    open: impl Fn() -> io::Result<Source<'a>> + Sync,
) -> Result<Snapshot, ImportError> {
    match format {
        Format::RubyHeap => ruby::read(source),
        Format::Hprof => hprof::read(open),
        Format::V8Heap => v8::read(source),
        Format::PythonHeap => python::read(source),
        _ => Err(ImportError::NotASnapshot { format }),
    }
}

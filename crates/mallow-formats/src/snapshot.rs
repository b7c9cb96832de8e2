//! Snapshots of managed heaps, one file per format.

mod blocks;
mod hprof;
pub(crate) mod python;
pub(crate) mod ruby;
pub(crate) mod v8;

use crate::source::Source;
use crate::{Format, ImportError};
use mallow_heapsnap::{Histogram, Snapshot};
use std::io;

/// Reads a snapshot that somebody holds in memory, in a known format.
///
/// # Errors
/// See [`ImportError`].
pub fn read_snapshot_as(bytes: &[u8], format: Format) -> Result<Snapshot, ImportError> {
    of_source(Source::of_bytes(bytes)?, format, || Source::of_bytes(bytes))
}

/// Counts the objects of each class. A format that can is read no further than that takes.
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

/// Reads the objects of a snapshot. A format that can leaves out what they refer to and which strings are equal.
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

/// Reads a snapshot, by opening it again if need be; a file of another kind is refused.
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

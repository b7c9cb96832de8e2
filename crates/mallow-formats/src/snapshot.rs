//! Snapshots of managed heaps, one file per format.

mod blocks;
pub(crate) mod ruby;

use crate::source::Source;
use crate::{Format, ImportError};
use mallow_heapsnap::Snapshot;

/// Reads a snapshot; a file of another kind is refused.
pub(crate) fn of_source(source: Source<'_>, format: Format) -> Result<Snapshot, ImportError> {
    match format {
        Format::RubyHeap => ruby::read(source),
        _ => Err(ImportError::NotASnapshot { format }),
    }
}

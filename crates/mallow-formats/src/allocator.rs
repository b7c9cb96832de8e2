//! Parses the statistics that allocators print: jemalloc's `malloc_stats_print`, as text and as JSON, and glibc's `malloc_info`.
//!
//! These files have no sites, so the result is an [`AllocatorState`] instead of a profile.

mod jemalloc_json;
mod jemalloc_text;
mod malloc_info;
mod parts;

pub use mallow_profile::{Allocator, AllocatorMetrics, AllocatorState, Arena, Bin};

use crate::source::Source;
use crate::{Format, ImportError, Kind};
use mallow_trace::looks_like;

/// Parses bytes.
///
/// # Errors
/// See [`ImportError`].
pub fn read(bytes: &[u8]) -> Result<AllocatorState, ImportError> {
    let source = Source::of_bytes(bytes)?;
    match source.format()? {
        format if format.kind() == Kind::AllocatorState => of_source(source, format),
        _ => Err(ImportError::Unknown { looks_like: looks_like(source.beginning()) }),
    }
}

pub(crate) fn of_source(source: Source<'_>, format: Format) -> Result<AllocatorState, ImportError> {
    let bytes = source.whole(format)?;
    match format {
        Format::MallocInfo => malloc_info::read(&bytes),
        _ if bytes.trim_ascii_start().starts_with(b"{") => jemalloc_json::read(&bytes),
        _ => jemalloc_text::read(&bytes),
    }
}

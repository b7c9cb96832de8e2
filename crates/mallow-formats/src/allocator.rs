//! What allocators print of themselves: jemalloc's `malloc_stats_print`, as text and as JSON, and glibc's `malloc_info`.
//!
//! These files tell no sites; [`open`] gives an [`AllocatorState`] instead of a profile.

mod jemalloc_json;
mod jemalloc_text;
mod malloc_info;
mod parts;

pub use mallow_profile::{Allocator, AllocatorFigures, AllocatorState, Arena, Bin};

use crate::source::Source;
use crate::{Format, ImportError};
use mallow_trace::looks_like;
use std::path::Path;

/// Reads a file.
///
/// # Errors
/// See [`ImportError`].
pub fn open(path: &Path) -> Result<AllocatorState, ImportError> {
    read_source(Source::of_file(path)?)
}

/// Reads bytes.
///
/// # Errors
/// See [`ImportError`].
pub fn read(bytes: &[u8]) -> Result<AllocatorState, ImportError> {
    read_source(Source::of_bytes(bytes)?)
}

fn read_source(source: Source<'_>) -> Result<AllocatorState, ImportError> {
    let format = Format::of_beginning(source.beginning()).filter(|format| format.is_allocator_state());
    let Some(format) = format else {
        return Err(ImportError::Unknown { looks_like: looks_like(source.beginning()) });
    };
    let bytes = source.whole(format)?;
    match format {
        Format::MallocInfo => malloc_info::read(&bytes),
        _ if bytes.trim_ascii_start().starts_with(b"{") => jemalloc_json::read(&bytes),
        _ => jemalloc_text::read(&bytes),
    }
}

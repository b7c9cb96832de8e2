//! What allocators print of themselves: jemalloc's `malloc_stats_print`, as text and as JSON, and glibc's `malloc_info`.
//!
//! These files tell no sites; [`open`] gives an [`AllocatorState`] instead of a profile.

mod jemalloc_json;
mod jemalloc_text;
mod malloc_info;

pub use mallow_profile::{Allocator, AllocatorFigures, AllocatorState, Arena, Bin};

use crate::native::looks_like;
use crate::source::Source;
use crate::{Format, ImportError, Position};
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

fn damaged(format: Format, position: Position, expected: &str) -> ImportError {
    ImportError::Damaged { format, position, expected: expected.to_owned() }
}

/// A size class, by what its slabs could hold.
fn bin(size: u64, blocks: u64, slabs: u64, blocks_per_slab: u64) -> Bin {
    let free_blocks = slabs.saturating_mul(blocks_per_slab).saturating_sub(blocks);
    Bin {
        size_min: size,
        size_max: size,
        blocks: Some(blocks),
        slabs: Some(slabs),
        free_blocks,
        waste_bytes: free_blocks.saturating_mul(size),
    }
}

/// What is said when a file holds several states.
fn several(count: usize) -> Vec<String> {
    if count < 2 { Vec::new() } else { vec![format!("the file holds {count} states; this is the last one")] }
}

//! What the readers of allocator states share.

use crate::{Format, ImportError, Position};
use mallow_profile::Bin;

pub(super) fn damaged(format: Format, position: Position, expected: &str) -> ImportError {
    ImportError::Damaged { format, position, expected: expected.to_owned() }
}

/// Returns a size class, with the number of blocks that its slabs can hold.
pub(super) fn bin(size: u64, blocks: u64, slabs: u64, blocks_per_slab: u64) -> Bin {
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

/// Returns a warning if a file contains several states.
pub(super) fn several(count: usize) -> Vec<String> {
    if count < 2 { Vec::new() } else { vec![format!("the file holds {count} states; this is the last one")] }
}

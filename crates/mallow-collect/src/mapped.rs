//! Which mapping of the program's covers an address: ranges of memory, and the blocks that they are.
//!
//! It is apart from the table of blocks (`live`): a pool may hand out the first bytes of a mapping as a block of its own. A mapping may lose any part of its range, so a
//! block here is all that is left of one call, in one range or several. Ranges end at the byte that was requested, which
//! need not be the end of a page; what is unmapped is whole pages.

use mallow_profile::{BlockId, StackId};
use mallow_wire::event::Mapping;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The number of a mapping: it keeps it when it is cut, though its block becomes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MappingNumber(u64);

/// A part of a mapping that was taken out of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    start: u64,
    end: u64,
    mapping: MappingNumber,
}

/// The block of a mapping.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    block: BlockId,
    stack: StackId,
    /// What is left of it, pieces that were taken out included until they are [released](MappedRanges::release).
    bytes: u64,
}

/// What becomes of a mapping whose pieces are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// Nothing of it is left.
    Whole(BlockId),
    /// So many bytes are left, and are the block of this number from now on.
    Part { block: BlockId, stack: StackId, bytes_left: u64, mapping: MappingNumber },
}

/// The mappings of one process.
#[derive(Debug, Default)]
pub(crate) struct MappedRanges {
    /// By their starts; they do not overlap.
    ranges: BTreeMap<u64, (u64, MappingNumber)>,
    blocks: FxHashMap<MappingNumber, Mapped>,
    next: u64,
}

impl MappedRanges {
    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        const RANGE_BYTES: usize = 2 * size_of::<(u64, u64, MappingNumber)>();
        const BLOCK_BYTES: usize = 2 * size_of::<(MappingNumber, Mapped)>();
        (self.ranges.len() * RANGE_BYTES + self.blocks.len() * BLOCK_BYTES) as u64
    }

    /// Adds a mapping where nothing is.
    pub(crate) fn insert(&mut self, start: u64, size: u64, block: BlockId, stack: StackId) {
        let mapping = MappingNumber(self.next);
        self.next += 1;
        self.ranges.insert(start, (start.saturating_add(size), mapping));
        self.blocks.insert(mapping, Mapped { block, stack, bytes: size });
    }

    /// Takes out what is mapped in the pages of a range.
    pub(crate) fn take(&mut self, start: u64, size: u64) -> Vec<Piece> {
        let end = start.saturating_add(Mapping::paged(size));
        let mut taken = Vec::new();
        if end == start {
            return taken;
        }
        // From the last one backwards: the one that begins before the range may reach into it.
        while let Some((&from, &(to, mapping))) = self.ranges.range(..end).next_back()
            && to > start
        {
            self.ranges.remove(&from);
            if to > end {
                self.ranges.insert(end, (to, mapping));
            }
            if from < start {
                self.ranges.insert(from, (start, mapping));
            }
            taken.push(Piece { start: from.max(start), end: to.min(end), mapping });
        }
        taken.reverse();
        taken
    }

    /// Returns whether something is mapped at a page.
    pub(crate) fn is_mapped(&self, page: u64) -> bool {
        self.ranges.range(..=page).next_back().is_some_and(|(_, (to, _))| *to > page)
    }

    /// Puts pieces back where they were: their call failed.
    pub(crate) fn put_back(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            self.ranges.insert(piece.start, (piece.end, piece.mapping));
        }
    }

    /// Gives up pieces for good: says what that does to each mapping, in the order of addresses.
    pub(crate) fn release(&mut self, pieces: &[Piece]) -> Vec<Released> {
        let mut mappings: Vec<(MappingNumber, u64)> = Vec::new();
        for piece in pieces {
            let bytes = piece.end - piece.start;
            match mappings.iter_mut().find(|(mapping, _)| *mapping == piece.mapping) {
                Some((_, sum)) => *sum += bytes,
                None => mappings.push((piece.mapping, bytes)),
            }
        }
        mappings.into_iter().filter_map(|(mapping, bytes)| self.lose(mapping, bytes)).collect()
    }

    fn lose(&mut self, mapping: MappingNumber, bytes: u64) -> Option<Released> {
        let mapped = self.blocks.get_mut(&mapping)?;
        let Mapped { block, stack, .. } = *mapped;
        mapped.bytes = mapped.bytes.saturating_sub(bytes);
        let bytes_left = mapped.bytes;
        if bytes_left == 0 {
            self.blocks.remove(&mapping);
            return Some(Released::Whole(block));
        }
        Some(Released::Part { block, stack, bytes_left, mapping })
    }

    /// What is left of a mapping is this block from now on.
    pub(crate) fn set_block(&mut self, mapping: MappingNumber, block: BlockId) {
        if let Some(mapped) = self.blocks.get_mut(&mapping) {
            mapped.block = block;
        }
    }
}

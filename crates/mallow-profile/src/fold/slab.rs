//! The live blocks: 16 bytes each, freed slots chained through themselves.
//!
//! The time of allocation is not kept: lifetimes are summed per site as (time of free) − (time of allocation), so each
//! event adds its own half.

use super::{BlockId, ThreadIndex};

/// No slot has this id.
pub(super) const NO_BLOCK: BlockId = BlockId(u32::MAX);

/// In [`Block::site`] of a slot that is not in use.
const NOT_LIVE: u32 = u32::MAX;

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Requested bytes.
    pub(super) size: u64,
    /// The site that it is booked on.
    pub(super) site: u32,
    /// The thread that allocated it; in a free slot, the next free slot.
    pub(super) thread: u32,
}

const _: () = assert!(size_of::<Block>() == 16);

#[derive(Debug)]
pub(super) struct Slab {
    blocks: Vec<Block>,
    free: u32,
}

impl Default for Slab {
    fn default() -> Slab {
        Slab { blocks: Vec::new(), free: NO_BLOCK.0 }
    }
}

impl Slab {
    #[inline]
    pub(super) fn insert(&mut self, size: u64, site: u32, thread: ThreadIndex) -> BlockId {
        let block = Block { size, site, thread: thread.0 };
        let id = self.free;
        match self.blocks.get_mut(id as usize) {
            Some(slot) => {
                self.free = slot.thread;
                *slot = block;
                BlockId(id)
            }
            None => {
                self.blocks.push(block);
                BlockId((self.blocks.len() - 1) as u32)
            }
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, id: BlockId) -> Option<Block> {
        let slot = self.blocks.get_mut(id.0 as usize)?;
        if slot.site == NOT_LIVE {
            return None;
        }
        let gone = *slot;
        slot.site = NOT_LIVE;
        slot.thread = self.free;
        self.free = id.0;
        Some(gone)
    }

    pub(super) fn is_live(&self, id: BlockId) -> bool {
        self.blocks.get(id.0 as usize).is_some_and(|slot| slot.site != NOT_LIVE)
    }

    #[inline]
    pub(super) fn touch(&self, id: BlockId) {
        if let Some(slot) = self.blocks.get(id.0 as usize) {
            std::hint::black_box(slot.site);
        }
    }
}

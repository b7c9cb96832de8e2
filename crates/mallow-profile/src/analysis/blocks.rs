//! The live blocks of a pass, under the ids that the trace's writer gave them.
//!
//! An aggregator keeps 16 bytes for each block, without its time of birth; a pass needs that, and the allocation's number in
//! its thread.

use super::block::Block;
use crate::BlockId;

/// In [`Block::site`] of a slot that is not in use.
const NOT_LIVE: u32 = u32::MAX;
/// In [`Blocks::free`]: no slot is free.
const NO_SLOT: u32 = u32::MAX;
/// In [`Block::thread`] of a block that no analysis includes, while it is live.
const NOT_WANTED: u32 = 1 << 31;

/// A slab whose free list is last in, first out, like an aggregator's: the same events yield the same ids.
#[derive(Debug)]
pub(super) struct Blocks {
    slots: Vec<Block>,
    /// The slot freed last; each free slot names the next one in its `thread`.
    free: u32,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        Blocks { slots: Vec::new(), free: NO_SLOT }
    }

    #[inline]
    pub(super) fn insert(&mut self, mut block: Block, is_wanted: bool) -> BlockId {
        if !is_wanted {
            block.thread |= NOT_WANTED;
        }
        let id = self.free;
        match self.slots.get_mut(id as usize) {
            Some(slot) => {
                self.free = slot.thread;
                *slot = block;
                BlockId(id)
            }
            None => {
                self.slots.push(block);
                BlockId((self.slots.len() - 1) as u32)
            }
        }
    }

    /// Removes a block, and returns whether it is included; `None` if it is not live.
    #[inline]
    pub(super) fn remove(&mut self, id: BlockId) -> Option<(Block, bool)> {
        let slot = self.slots.get_mut(id.0 as usize)?;
        if slot.site == NOT_LIVE {
            return None;
        }
        let mut gone = *slot;
        (slot.site, slot.thread) = (NOT_LIVE, self.free);
        self.free = id.0;
        let is_wanted = gone.thread & NOT_WANTED == 0;
        gone.thread &= !NOT_WANTED;
        Some((gone, is_wanted))
    }

    pub(super) fn is_live(&self, id: BlockId) -> bool {
        self.slots.get(id.0 as usize).is_some_and(|slot| slot.site != NOT_LIVE)
    }

    /// Returns all live blocks that are included.
    pub(super) fn live(&self) -> impl Iterator<Item = &Block> {
        self.slots.iter().filter(|slot| slot.site != NOT_LIVE && slot.thread & NOT_WANTED == 0)
    }
}

//! The live blocks: 16 bytes each, and the freed slots on a stack.
//!
//! The stack is an array of its own, because a chain through the slots would have to be read to be followed: each allocation would
//! wait for memory that it only writes.
//!
//! The time of allocation is not kept: lifetimes are summed per site as (time of free) − (time of
//! allocation), so each event adds its own half.

use super::grow::double;
use super::{BlockId, MemoryAdvice, ThreadIndex};

/// No slot has this id.
pub(super) const NO_BLOCK: BlockId = BlockId(u32::MAX);

/// In [`Block::site`] of a slot that is not in use.
const NOT_LIVE: u32 = u32::MAX;

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Requested bytes.
    pub(super) size: u64,
    /// The site that it is attributed on.
    pub(super) site: u32,
    /// The thread that allocated it.
    pub(super) thread: u32,
}

const _: () = assert!(size_of::<Block>() == 16);

#[derive(Debug, Default)]
pub(super) struct Slab {
    blocks: Vec<Block>,
    /// Slots that are not in use, the one freed last at the end.
    free: Vec<u32>,
    /// Told of new slots before they are touched.
    pub(super) advise: Option<MemoryAdvice>,
}

/// How many allocations ahead a free slot is prefetched.
const AHEAD: usize = 8;

impl Slab {
    /// Returns its own memory in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        (self.blocks.len() * size_of::<Block>() + self.free.len() * size_of::<u32>()) as u64
    }

    #[inline]
    pub(super) fn insert(&mut self, size: u64, site: u32, thread: ThreadIndex) -> BlockId {
        let block = Block { size, site, thread: thread.0 };
        let Some(id) = self.free.pop() else { return self.push(block) };
        if let Some(ahead) = self.free.len().checked_sub(AHEAD) {
            self.prefetch(BlockId(self.free[ahead]));
        }
        self.blocks[id as usize] = block;
        BlockId(id)
    }

    /// Returns the next free slot; `None` if the next one is new.
    #[inline]
    pub(super) fn next(&self) -> Option<BlockId> {
        self.free.last().copied().map(BlockId)
    }

    #[inline]
    pub(super) fn remove(&mut self, id: BlockId) -> Option<Block> {
        let slot = self.blocks.get_mut(id.0 as usize)?;
        if slot.site == NOT_LIVE {
            return None;
        }
        let gone = *slot;
        slot.site = NOT_LIVE;
        self.free.push(id.0);
        Some(gone)
    }

    /// Returns the thread that allocated a block; `None` if it is not live.
    pub(super) fn thread_of(&self, id: BlockId) -> Option<ThreadIndex> {
        let slot = self.blocks.get(id.0 as usize).filter(|slot| slot.site != NOT_LIVE)?;
        Some(ThreadIndex(slot.thread))
    }

    pub(super) fn is_live(&self, id: BlockId) -> bool {
        self.blocks.get(id.0 as usize).is_some_and(|slot| slot.site != NOT_LIVE)
    }

    /// Asks for the cache line of a slot, which need not exist.
    #[inline(always)]
    pub(super) fn prefetch(&self, id: BlockId) {
        let slot = self.blocks.as_ptr().wrapping_add(id.0 as usize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint and faults on no address.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = slot;
    }

    fn push(&mut self, block: Block) -> BlockId {
        if self.blocks.len() == self.blocks.capacity() {
            self.grow();
        }
        self.blocks.push(block);
        BlockId((self.blocks.len() - 1) as u32)
    }

    #[cold]
    fn grow(&mut self) {
        const SLOTS_MIN: usize = 1024;
        // Slots of many megabytes, wanted at random, otherwise miss the processor's page table cache each time.
        double(&mut self.blocks, SLOTS_MIN, self.advise);
    }
}

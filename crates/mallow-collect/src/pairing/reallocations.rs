//! `realloc`: it begins with one block and ends with another, or none.

use super::Pairing;
use super::waiting::{PendingFree, Reallocating};
use crate::live::Located;
use mallow_profile::{BlockId, StackId, ThreadIndex};

/// Handlers within handlers that are followed; what lies deeper is damage.
const REALLOCATIONS_NESTED_MAX: usize = 64;

impl Pairing {
    /// A `realloc` begins; `is_nested` says that a signal handler called it during another one of the same thread.
    pub(crate) fn realloc_begin(
        &mut self,
        thread: ThreadIndex,
        at: impl Into<Located>,
        is_nested: bool,
        time_us: u64,
    ) {
        let (at, time_us) = (at.into(), self.advance(time_us));
        let address = at.address();
        let index = thread.0 as usize;
        if self.reallocating.len() <= index {
            self.reallocating.resize_with(index + 1, Vec::new);
        }
        // One before whose end was lost: its block is where it was.
        while (!is_nested && !self.reallocating[index].is_empty())
            || self.reallocating[index].len() >= REALLOCATIONS_NESTED_MAX
        {
            if let Reallocating::Block(address, block) = self.begun(thread) {
                self.place(thread, address.into(), block);
            }
        }
        let state = match self.take(at) {
            Some(block) => Reallocating::Block(address, block),
            None => {
                self.wait_for(address, PendingFree { thread, time_us, by_realloc: true });
                Reallocating::Unknown(address)
            }
        };
        self.reallocating[index].push(state);
    }

    /// Returns how the thread's innermost `realloc` began; nothing waits for its block any more.
    fn begun(&mut self, thread: ThreadIndex) -> Reallocating {
        let state = self.reallocating.get_mut(thread.0 as usize).and_then(Vec::pop).unwrap_or_default();
        if let Reallocating::Unknown(address) = state
            && self.pending_frees.get(&address).is_some_and(|free| free.by_realloc && free.thread == thread)
        {
            self.pending_frees.remove(&address);
        }
        state
    }

    pub(crate) fn realloc_done(
        &mut self,
        thread: ThreadIndex,
        at: impl Into<Located>,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) {
        let time_us = self.advance(time_us);
        let block = match self.begun(thread) {
            Reallocating::Block(_, old) => self.moved(thread, old, stack, size, time_us),
            Reallocating::Unknown(_) | Reallocating::Nothing => {
                let block = self.fold.realloc_unmatched(thread, stack, size, time_us);
                if let Some(events) = &mut self.events {
                    events.realloc_unmatched(thread.0, block.0, stack.0, size, time_us);
                }
                self.moved_to(thread, None, (block, stack, size), time_us);
                block
            }
        };
        self.place(thread, at.into(), block);
    }

    /// A live block becomes one of another size.
    pub(super) fn moved(
        &mut self,
        thread: ThreadIndex,
        old: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        if let Some(regions) = &mut self.regions {
            regions.gone(old, self.fold.is_latest(thread, old));
        }
        let block = self.fold.realloc(thread, old, stack, size, time_us);
        if let Some(events) = &mut self.events {
            events.realloc(thread.0, old.0, block.0, stack.0, size, time_us);
        }
        self.moved_to(thread, Some(old), (block, stack, size), time_us);
        block
    }

    /// Tells the regions and the counts of threads of it.
    fn moved_to(
        &mut self,
        thread: ThreadIndex,
        before: Option<BlockId>,
        (block, stack, size): (BlockId, StackId, u64),
        time_us: u64,
    ) {
        if let Some(regions) = &mut self.regions {
            regions.born(block, stack, size, true);
        }
        if let Some(scopes) = &mut self.scopes {
            scopes.moved(thread, before, (block, stack, size), time_us);
        }
    }

    pub(crate) fn realloc_freed(&mut self, thread: ThreadIndex, time_us: u64) {
        let time_us = self.advance(time_us);
        match self.begun(thread) {
            Reallocating::Block(_, block) => self.free_block(thread, block, time_us),
            Reallocating::Unknown(_) => self.unmatched(thread, time_us),
            Reallocating::Nothing => {}
        }
    }

    pub(crate) fn realloc_failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
        if let Reallocating::Block(address, block) = self.begun(thread) {
            self.place(thread, address.into(), block);
        }
        self.failed(thread, stack, size, time_us);
    }
}

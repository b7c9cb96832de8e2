//! What two processors show the wrong way round: ends of blocks before their beginnings, and blocks where another one lives.

use super::Pairing;
use mallow_profile::{BlockId, ThreadIndex};
use rustc_hash::FxHashMap;

/// How long a free waits for an allocation by another thread, in microseconds. CPUs disagree by nanoseconds; a longer
/// wait would mistake a later allocation at the same address for the one that was freed.
const REORDER_WINDOW_US: u64 = 3;

/// A free that was seen before its allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFree {
    pub(super) thread: ThreadIndex,
    pub(super) time_us: u64,
    /// A `realloc` that has begun and will say itself what became of the block, or a free.
    pub(super) by_realloc: bool,
}

/// A `realloc` that has begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Reallocating {
    #[default]
    Nothing,
    Block(u64, BlockId),
    Unknown(u64),
}

/// The size of an entry in a table of pending events.
pub(super) const WAITING_BYTES: usize = 64;
/// Ends of blocks that wait for their allocations, and blocks that wait for their ends. Processors disagree by nanoseconds, in which no more can happen.
const WAITING_MAX: usize = 1024;

/// Removes entries from a full table that have waited too long; all, if that makes no room: time stands still for a
/// program that writes invalid data.
fn no_longer_waiting<T: Copy>(
    waiting: &mut FxHashMap<u64, T>,
    since_us: impl Fn(&T) -> u64,
    now_us: u64,
) -> Vec<T> {
    let is_late = |one: &T| now_us.saturating_sub(since_us(one)) > REORDER_WINDOW_US;
    let mut late: Vec<T> = waiting.extract_if(|_, one| is_late(one)).map(|(_, one)| one).collect();
    if waiting.len() > WAITING_MAX / 2 {
        late.extend(std::mem::take(waiting).into_values());
    }
    late
}

impl Pairing {
    #[cold]
    pub(super) fn free_unknown(&mut self, thread: ThreadIndex, address: u64, time_us: u64) {
        self.wait_for(address, PendingFree { thread, time_us, by_realloc: false });
    }

    #[cold]
    pub(super) fn wait_for(&mut self, address: u64, free: PendingFree) {
        let time_us = free.time_us;
        let mut late = Vec::from_iter(self.pending_frees.insert(address, free));
        if self.pending_frees.len() > WAITING_MAX {
            let given_up = no_longer_waiting(&mut self.pending_frees, |free| free.time_us, time_us);
            late.extend(given_up);
        }
        late.into_iter().for_each(|free| self.give_up(free, time_us));
    }

    /// Nothing will turn up for this one. A `realloc` is attributed when it ends.
    pub(super) fn give_up(&mut self, free: PendingFree, time_us: u64) {
        if !free.by_realloc {
            self.unmatched(free.thread, time_us);
        }
    }

    /// The allocation that an end was waiting for, unless that has waited too long to be its own.
    #[cold]
    pub(super) fn resolve_pending(&mut self, allocating: ThreadIndex, address: u64) {
        let Some(free) = self.pending_frees.remove(&address) else { return };
        let now_us = self.last_us;
        if free.thread == allocating || now_us.saturating_sub(free.time_us) > REORDER_WINDOW_US {
            self.give_up(free, now_us);
        } else if let Some(block) = self.live.remove(address) {
            if free.by_realloc {
                let begun = self.reallocating.get_mut(free.thread.0 as usize).into_iter().flatten();
                let waiting =
                    |begun: &&mut Reallocating| matches!(begun, Reallocating::Unknown(at) if *at == address);
                match begun.rev().find(waiting) {
                    Some(begun) => *begun = Reallocating::Block(address, block),
                    // Its end was lost: the block is where it was.
                    None => self.place(free.thread, address.into(), block),
                }
            } else {
                self.free_block(free.thread, block, now_us);
            }
        }
    }

    /// A block is allocated where another one is live: the old one's free is still to come, or was never seen.
    #[cold]
    pub(super) fn overlap(&mut self, address: u64, old: BlockId) {
        let time_us = self.last_us;
        if let Some((older, _)) = self.displaced.insert(address, (old, time_us)) {
            self.was_freed_unseen(older, time_us);
        }
        if self.displaced.len() > WAITING_MAX {
            for (block, _) in no_longer_waiting(&mut self.displaced, |(_, since_us)| *since_us, time_us) {
                self.was_freed_unseen(block, time_us);
            }
        }
    }

    pub(super) fn was_freed_unseen(&mut self, block: BlockId, time_us: u64) {
        self.freed_unseen += 1;
        self.free_block(ThreadIndex(0), block, time_us);
    }

    /// Returns the block that was set aside at an address. One that has waited too long was freed unseen, and the
    /// current event belongs to its successor.
    #[cold]
    pub(super) fn take_displaced(&mut self, address: u64) -> Option<BlockId> {
        let (block, since_us) = self.displaced.remove(&address)?;
        let now_us = self.last_us;
        if now_us.saturating_sub(since_us) <= REORDER_WINDOW_US {
            return Some(block);
        }
        self.was_freed_unseen(block, now_us);
        None
    }
}

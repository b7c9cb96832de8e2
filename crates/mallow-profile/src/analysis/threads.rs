//! What each thread did in a window.

use super::Window;
use super::block::{Block, Death, entry};
use mallow_base::add_fields;

/// The metrics of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadMetrics {
    /// Its allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks that it freed, whichever thread had allocated them; frees that match no block are not counted.
    pub frees: u64,
    /// Those of the blocks it freed that another thread had allocated.
    pub frees_of_others: u64,
    /// Its own blocks that another thread freed.
    pub freed_by_others: u64,
    /// Its blocks that it freed before it allocated again, as the counting rules have it.
    pub temporary: u64,
    /// Its blocks that were live at the window's end, whenever it allocated them.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
}

impl ThreadMetrics {
    /// Adds another thread's metrics.
    pub fn add(&mut self, other: &ThreadMetrics) {
        add_fields!(
            self, other; allocations, bytes, frees, frees_of_others, freed_by_others, temporary, live_blocks,
            live_bytes
        );
    }
}

/// The metrics by thread, while events pass.
#[derive(Debug, Default)]
pub(super) struct ThreadsAggregator {
    window: Window,
    pub(super) threads: Vec<ThreadMetrics>,
}

impl ThreadsAggregator {
    pub(super) fn new(window: Window) -> ThreadsAggregator {
        ThreadsAggregator { window, ..ThreadsAggregator::default() }
    }

    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        if block.born_us >= self.window.to_us {
            return;
        }
        let inside = self.window.contains(block.born_us);
        let thread = entry(&mut self.threads, block.thread as usize);
        thread.live_blocks += 1;
        thread.live_bytes = thread.live_bytes.wrapping_add(block.size);
        if inside {
            thread.allocations += 1;
            thread.bytes = thread.bytes.wrapping_add(block.size);
        }
    }

    #[inline]
    pub(super) fn died(&mut self, block: &Block, death: &Death) {
        if death.time_us >= self.window.to_us || block.born_us >= self.window.to_us {
            return;
        }
        let inside = self.window.contains(death.time_us);
        let own = death.by_own_thread(block);
        let owner = entry(&mut self.threads, block.thread as usize);
        owner.live_blocks -= 1;
        owner.live_bytes = owner.live_bytes.wrapping_sub(block.size);
        if inside {
            owner.freed_by_others += u64::from(!own);
            owner.temporary += u64::from(own && death.allocations_since == 0);
            let freeing = entry(&mut self.threads, death.thread as usize);
            freeing.frees += 1;
            freeing.frees_of_others += u64::from(!own);
        }
    }
}

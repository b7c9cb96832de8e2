//! Which block lives at an address.
//!
//! A hash table made for this one job: the keys are block addresses, every event looks one up, and half of
//! the events remove it. Linear probing in one array of 16-byte entries, removal by shifting back, so that a
//! look-up touches one cache line in the common case and the table never fills with tombstones. Four entries
//! make a cache line, and the blocks of a 128-byte piece of the heap have their homes in one line: programs
//! allocate and free neighbours together, so most look-ups find their line in the cache. The standard map
//! cannot be told to prefetch.

use mallow_profile::BlockId;

/// A map from a block's address to its id. Address 0, which no allocator gives but a damaged ring may, is
/// never found.
#[derive(Debug)]
pub(crate) struct LiveBlocks {
    entries: Vec<Entry>,
    count: usize,
    shift: u32,
    /// Entries before the first that begins a cache line: the allocator need not align the table to lines.
    phase: usize,
}

/// An address and a block's id. A bare array, because a table of those is asked for as zeroed memory and not
/// written when it is made: only memory that nobody has touched can get large pages.
type Entry = [u64; 2];

const FREE: Entry = [0; 2];

const BITS_MIN: u32 = 10;

/// Entries in a cache line, and the logarithm of that.
const LINE_ENTRIES: usize = LINE_BYTES / size_of::<Entry>();
const LINE_BITS: u32 = LINE_ENTRIES.ilog2();
const LINE_BYTES: usize = 64;

impl LiveBlocks {
    /// An empty map.
    pub(crate) fn new() -> LiveBlocks {
        let entries = vec![FREE; 1 << BITS_MIN];
        LiveBlocks { phase: phase(&entries), entries, count: 0, shift: 64 - (BITS_MIN - LINE_BITS) }
    }

    /// Where the search for an address begins. The smallest blocks of most allocators are 32 bytes apart.
    #[inline(always)]
    fn home(&self, address: u64) -> usize {
        let line = ((address >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        let entry = (address >> 5) as usize % LINE_ENTRIES;
        (line * LINE_ENTRIES + entry + self.phase) & (self.entries.len() - 1)
    }

    /// Asks for the cache line that a look-up of `address` will want.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: u64) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let entry = &raw const self.entries[self.home(address)];
        // SAFETY: a prefetch is a hint and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(entry.cast()) };
    }

    /// Sets the block at `address`; gives the one that stood there.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, block: BlockId) -> Option<BlockId> {
        if address == 0 {
            return None;
        }
        if self.count * 2 >= self.entries.len() {
            self.grow();
        }
        let mask = self.entries.len() - 1;
        let mut at = self.home(address);
        loop {
            let [found, before] = self.entries[at];
            if found == address || found == 0 {
                self.entries[at] = [address, u64::from(block.0)];
                self.count += usize::from(found == 0);
                return (found != 0).then_some(BlockId(before as u32));
            }
            at = (at + 1) & mask;
        }
    }

    /// The block at `address`.
    #[inline]
    pub(crate) fn get(&self, address: u64) -> Option<BlockId> {
        let mask = self.entries.len() - 1;
        let mut at = self.home(address);
        loop {
            let [found, block] = self.entries[at];
            if found == 0 {
                return None;
            }
            if found == address {
                return Some(BlockId(block as u32));
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes the block at `address` out.
    #[inline]
    pub(crate) fn remove(&mut self, address: u64) -> Option<BlockId> {
        let mask = self.entries.len() - 1;
        let mut at = self.home(address);
        loop {
            let [found, block] = self.entries[at];
            if found == 0 {
                return None;
            }
            if found == address {
                self.close_gap(at, mask);
                self.count -= 1;
                return Some(BlockId(block as u32));
            }
            at = (at + 1) & mask;
        }
    }

    /// Moves entries back over a gap, as long as that brings them no nearer than home.
    #[inline]
    fn close_gap(&mut self, mut gap: usize, mask: usize) {
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry[0] == 0 {
                break;
            }
            let distance_home = at.wrapping_sub(self.home(entry[0])) & mask;
            let distance_gap = at.wrapping_sub(gap) & mask;
            if distance_home >= distance_gap {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = FREE;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![FREE; self.entries.len() * 2];
        want_huge_pages(&doubled);
        let old = std::mem::replace(&mut self.entries, doubled);
        self.shift -= 1;
        self.phase = phase(&self.entries);
        let mask = self.entries.len() - 1;
        for entry in old.into_iter().filter(|entry| entry[0] != 0) {
            let mut at = self.home(entry[0]);
            while self.entries[at][0] != 0 {
                at = (at + 1) & mask;
            }
            self.entries[at] = entry;
        }
    }
}

/// How many entries lie before the first cache line's begin.
fn phase(entries: &[Entry]) -> usize {
    entries.as_ptr().align_offset(LINE_BYTES) % LINE_ENTRIES
}

/// Asks for large pages: a table of many megabytes, looked up at random, otherwise misses the processor's
/// page table cache each time.
fn want_huge_pages(entries: &[Entry]) {
    const WORTH_BYTES: usize = 4 << 20;
    const PAGE_BYTES: usize = 4096;
    let bytes = size_of_val(entries);
    if bytes < WORTH_BYTES {
        return;
    }
    let start = (entries.as_ptr() as usize).next_multiple_of(PAGE_BYTES);
    let end = (entries.as_ptr() as usize + bytes) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: advice on whole pages of our own allocation changes how they are mapped, not what they hold.
    let _ = unsafe { rustix::mm::madvise(start as *mut _, end - start, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn agrees_with_the_standard_map(steps in prop::collection::vec((any::<bool>(), 1u64..600), 0..4000)) {
            let (mut ours, mut theirs) = (LiveBlocks::new(), HashMap::new());
            for (i, (insert, key)) in steps.into_iter().enumerate() {
                let address = key * 16;
                if insert {
                    prop_assert_eq!(ours.insert(address, BlockId(i as u32)), theirs.insert(address, BlockId(i as u32)));
                } else {
                    prop_assert_eq!(ours.get(address), theirs.get(&address).copied());
                    prop_assert_eq!(ours.remove(address), theirs.remove(&address));
                }
            }
        }
    }

    #[test]
    fn neighbours_share_a_cache_line() {
        let live = LiveBlocks::new();
        let line = |address| &raw const live.entries[live.home(address)] as usize / LINE_BYTES;
        let mut lines: Vec<usize> = (0..64u64).map(|i| line(0x5000 + i * 32)).collect();
        lines.dedup();
        assert_eq!(lines.len(), 64 / LINE_ENTRIES);
    }

    #[test]
    fn blocks_that_are_pages_find_short_ways_too() {
        let mut live = LiveBlocks::new();
        for i in 1..100_000u64 {
            live.insert(i * 4096, BlockId(i as u32));
        }
        let mask = live.entries.len() - 1;
        let way = |i: u64| {
            let home = live.home(i * 4096);
            (0..).take_while(|step| live.entries[(home + step) & mask][0] != i * 4096).count()
        };
        let ways: usize = (1..100_000).map(way).sum();
        assert!(ways < 100_000 * 4, "{ways} steps for 100,000 blocks");
    }

    #[test]
    fn address_0_is_never_found() {
        let mut live = LiveBlocks::new();
        assert_eq!((live.insert(0, BlockId(1)), live.insert(0, BlockId(2))), (None, None));
        assert_eq!(live.remove(0), None);
        assert_eq!(live.insert(16, BlockId(3)), None);
        assert_eq!(live.remove(16), Some(BlockId(3)));
    }

    #[test]
    fn many_blocks_are_all_found_again() {
        let mut live = LiveBlocks::new();
        for i in 1..200_000u64 {
            assert_eq!(live.insert(i * 48, BlockId(i as u32)), None);
        }
        for i in 1..200_000u64 {
            assert_eq!(live.remove(i * 48), Some(BlockId(i as u32)));
            assert_eq!(live.remove(i * 48), None);
        }
    }
}

//! Which block lives at an address.
//!
//! A picture of the heap: for each page of it that holds blocks a leaf with a number for every 16 bytes, where the allocator puts its
//! blocks. Every event looks one up, and half of the events remove it. Programs allocate and free neighbours together, so the leaf's
//! cache line is mostly there; a block takes a quarter of its own size here instead of a place in a table of twice as many, and
//! nothing is moved as the heap grows. The way to a leaf leads over a table for each megabyte of the heap, which the processor keeps
//! near. Blocks that do not begin at a multiple of 16, as some allocators' smallest ones, stand in a map beside it.

use crate::prefetch::prefetch;
use mallow_profile::BlockId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A map from a block's address to its id. Address 0, which no allocator returns but a damaged ring may contain, is
/// never found.
#[derive(Debug)]
pub(crate) struct LiveBlocks {
    regions: Regions,
    leaves: Vec<Leaf>,
    /// The page of each leaf.
    uses: Vec<Use>,
    /// Leaves of no page. They are empty.
    spare: Vec<u32>,
    /// How many leaves may have pages before pages without live blocks are searched for.
    limit: usize,
    /// The regions in which a block ever was.
    met: FxHashSet<u64>,
    /// Blocks between the places of the leaves.
    odd: FxHashMap<u64, BlockId>,
    /// Goes up when leaves may have got other pages. Never 0.
    epoch: u32,
}

/// An address, and where its block stands if somebody looked before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    address: u64,
    place: Place,
}

/// A place in the leaves, true for an [`LiveBlocks::epoch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    index: u32,
    epoch: u32,
}

impl Place {
    /// That of no address.
    pub(crate) const UNKNOWN: Place = Place { index: 0, epoch: 0 };

    /// With the address that it is for.
    #[inline(always)]
    pub(crate) fn of(self, address: u64) -> Located {
        Located { address, place: self }
    }
}

impl Located {
    /// The address alone.
    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        self.address
    }
}

impl From<u64> for Located {
    #[inline(always)]
    fn from(address: u64) -> Located {
        Place::UNKNOWN.of(address)
    }
}

/// By place in the page: the block's id plus 1, or 0.
type Leaf = [u32; LEAF_PLACES];

const PAGE_BITS: u32 = 12;
const PLACE_BITS: u32 = 4;
const LEAF_PLACES: usize = 1 << (PAGE_BITS - PLACE_BITS);

/// A leaf's page, and how many blocks begin on it.
#[derive(Clone, Copy, Debug)]
struct Use {
    page: u64,
    count: u32,
}

/// A heap that wandered through a terabyte was everywhere.
const MET_MAX: usize = 1 << 20;

/// How many leaves may have pages in any case.
const LEAVES_MIN: usize = 256;

#[inline(always)]
fn place_of(address: u64) -> usize {
    (address >> PLACE_BITS) as usize % LEAF_PLACES
}

#[inline(always)]
fn is_odd(address: u64) -> bool {
    !address.is_multiple_of(1 << PLACE_BITS)
}

impl LiveBlocks {
    /// An empty map.
    pub(crate) fn new() -> LiveBlocks {
        LiveBlocks {
            regions: Regions::new(),
            leaves: Vec::new(),
            uses: Vec::new(),
            spare: Vec::new(),
            limit: LEAVES_MIN,
            met: FxHashSet::default(),
            odd: FxHashMap::default(),
            epoch: 1,
        }
    }

    /// Returns its own memory in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        const ODD_BYTES: usize = 2 * size_of::<(u64, BlockId)>();
        let leaves = self.leaves.len() * (size_of::<Leaf>() + size_of::<Use>());
        let met = self.met.len() * size_of::<u64>() * 2;
        (leaves + self.regions.held_bytes() + met + self.odd.len() * ODD_BYTES) as u64
    }

    /// Returns how many bytes between two addresses lie in a megabyte in which a block ever began. Odd blocks alone do not count: whoever hands out blocks of 8
    /// bytes puts every other one at a multiple of 16.
    pub(crate) fn met_bytes_in(&self, range: &Range<u64>) -> u64 {
        const REGION_BYTES: u64 = (REGION_PAGES as u64) << PAGE_BITS;
        let bytes = range.end.saturating_sub(range.start);
        if bytes == 0 || self.met.len() == MET_MAX {
            return bytes;
        }
        let (first, last) = (range.start / REGION_BYTES, (range.end - 1) / REGION_BYTES);
        let regions = if last - first < self.met.len() as u64 {
            (first..=last).filter(|region| self.met.contains(region)).count()
        } else {
            self.met.iter().filter(|region| (first..=last).contains(region)).count()
        };
        (regions as u64 * REGION_BYTES).min(bytes)
    }

    /// Looks up where the block at `address` would stand, and prefetches that.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: u64) -> Place {
        if is_odd(address) || address == 0 {
            return Place::UNKNOWN;
        }
        let Some(leaf) = self.regions.leaf(address >> PAGE_BITS) else { return Place::UNKNOWN };
        let index = leaf as usize * LEAF_PLACES + place_of(address);
        prefetch(self.leaves.as_ptr().cast::<u32>().wrapping_add(index));
        match u32::try_from(index) {
            Ok(index) => Place { index, epoch: self.epoch },
            Err(_) => Place::UNKNOWN,
        }
    }

    /// The place of a block, if a look into the leaf is all that is left to do.
    #[inline(always)]
    fn known(&self, at: Located) -> Option<usize> {
        (at.place.epoch == self.epoch).then_some(at.place.index as usize)
    }

    /// Sets the block at an address; returns the previous one.
    #[inline(always)]
    pub(crate) fn insert(&mut self, at: impl Into<Located>, block: BlockId) -> Option<BlockId> {
        let at = at.into();
        match self.known(at) {
            Some(index) => self.set(index, block),
            None => self.insert_at(at.address, block),
        }
    }

    #[inline(never)]
    fn insert_at(&mut self, address: u64, block: BlockId) -> Option<BlockId> {
        if is_odd(address) {
            return self.odd.insert(address, block);
        }
        if address == 0 {
            return None;
        }
        let page = address >> PAGE_BITS;
        let leaf = match self.regions.leaf(page) {
            Some(leaf) => leaf,
            None => self.add_page(page),
        } as usize;
        self.set(leaf * LEAF_PLACES + place_of(address), block)
    }

    #[inline(always)]
    fn set(&mut self, index: usize, block: BlockId) -> Option<BlockId> {
        let place = &mut self.leaves.as_flattened_mut()[index];
        let before = std::mem::replace(place, block.0.wrapping_add(1));
        self.uses[index / LEAF_PLACES].count += u32::from(before == 0);
        before.checked_sub(1).map(BlockId)
    }

    /// The block at an address.
    #[inline(always)]
    pub(crate) fn get(&self, at: impl Into<Located>) -> Option<BlockId> {
        let at = at.into();
        match self.known(at) {
            Some(index) => self.leaves.as_flattened()[index].checked_sub(1).map(BlockId),
            None => self.get_at(at.address),
        }
    }

    #[inline(never)]
    fn get_at(&self, address: u64) -> Option<BlockId> {
        if is_odd(address) {
            return self.odd.get(&address).copied();
        }
        let leaf = self.regions.leaf(address >> PAGE_BITS)?;
        self.leaves[leaf as usize][place_of(address)].checked_sub(1).map(BlockId)
    }

    /// Takes the block at an address out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, at: impl Into<Located>) -> Option<BlockId> {
        let at = at.into();
        match self.known(at) {
            Some(index) => self.unset(index),
            None => self.remove_at(at.address),
        }
    }

    #[inline(never)]
    fn remove_at(&mut self, address: u64) -> Option<BlockId> {
        if is_odd(address) {
            return self.odd.remove(&address);
        }
        let leaf = self.regions.leaf(address >> PAGE_BITS)? as usize;
        self.unset(leaf * LEAF_PLACES + place_of(address))
    }

    #[inline(always)]
    fn unset(&mut self, index: usize) -> Option<BlockId> {
        let block = std::mem::take(&mut self.leaves.as_flattened_mut()[index]).checked_sub(1)?;
        self.uses[index / LEAF_PLACES].count -= 1;
        Some(BlockId(block))
    }

    /// Assigns a leaf to a page.
    #[cold]
    fn add_page(&mut self, page: u64) -> u32 {
        if self.leaves.len() - self.spare.len() >= self.limit {
            self.release_empty();
        }
        let of_page = Use { page, count: 0 };
        let leaf = match self.spare.pop() {
            Some(leaf) => {
                self.uses[leaf as usize] = of_page;
                leaf
            }
            None => {
                self.leaves.push([0; LEAF_PLACES]);
                self.uses.push(of_page);
                self.leaves.len() as u32 - 1
            }
        };
        self.regions.set(page, leaf + 1);
        if self.met.len() < MET_MAX {
            self.met.insert(page / REGION_PAGES as u64);
        }
        leaf
    }

    /// Releases the leaves of pages without live blocks. Until then a page keeps its leaf: programs come back to the
    /// pages that they emptied.
    fn release_empty(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
        for leaf in 0..self.leaves.len() as u32 {
            let Use { page, count } = self.uses[leaf as usize];
            if count == 0 && self.regions.leaf(page) == Some(leaf) {
                self.regions.set(page, 0);
                self.spare.push(leaf);
            }
        }
        self.regions.drop_empty();
        self.limit = LEAVES_MIN.max((self.leaves.len() - self.spare.len()) * 2);
    }
}

/// Which leaf belongs to a page, by regions of many pages.
#[derive(Debug)]
struct Regions {
    /// Linear probing, at most half full.
    entries: Vec<Region>,
    count: usize,
    shift: u32,
}

/// A region's number plus 1, or 0, and its table.
#[derive(Clone, Debug, Default)]
struct Region {
    number: u64,
    table: Option<Box<Table>>,
}

/// The pages of a region.
#[derive(Clone, Debug)]
struct Table {
    /// By page: its leaf's number plus 1, or 0.
    leaves: [u32; REGION_PAGES],
    /// How many pages have leaves.
    count: usize,
}

const REGION_PAGES: usize = 256;
const REGIONS_MIN: usize = 64;

impl Regions {
    fn new() -> Regions {
        Regions::with_room(REGIONS_MIN)
    }

    /// Room is a power of two.
    fn with_room(room: usize) -> Regions {
        Regions { entries: vec![Region::default(); room], count: 0, shift: 64 - room.ilog2() }
    }

    fn held_bytes(&self) -> usize {
        self.entries.len() * size_of::<Region>() + self.count * size_of::<Table>()
    }

    #[inline(always)]
    fn leaf(&self, page: u64) -> Option<u32> {
        let region = &self.entries[self.place(page / REGION_PAGES as u64)];
        region.table.as_ref()?.leaves[page as usize % REGION_PAGES].checked_sub(1)
    }

    /// Returns the index of a region, or where it would be inserted.
    #[inline(always)]
    fn place(&self, region: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = (region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let found = self.entries[at & mask].number;
            if found == region + 1 || found == 0 {
                return at & mask;
            }
            at += 1;
        }
    }

    /// Sets what a page's leaf is: its number plus 1, or 0.
    fn set(&mut self, page: u64, leaf: u32) {
        let region = page / REGION_PAGES as u64;
        let mut at = self.place(region);
        if self.entries[at].number == 0 {
            if self.count * 2 >= self.entries.len() {
                self.rebuild(self.entries.len() * 2);
                at = self.place(region);
            }
            self.count += 1;
            let table = Box::new(Table { leaves: [0; REGION_PAGES], count: 0 });
            self.entries[at] = Region { number: region + 1, table: Some(table) };
        }
        let Some(table) = &mut self.entries[at].table else { return };
        let before = std::mem::replace(&mut table.leaves[page as usize % REGION_PAGES], leaf);
        table.count = table.count + usize::from(leaf != 0) - usize::from(before != 0);
    }

    /// Forgets regions without leaves.
    fn drop_empty(&mut self) {
        let in_use = |region: &&Region| region.table.as_ref().is_some_and(|table| table.count > 0);
        let count = self.entries.iter().filter(in_use).count();
        self.rebuild(REGIONS_MIN.max((count * 4).next_power_of_two()));
    }

    fn rebuild(&mut self, room: usize) {
        let old = std::mem::replace(self, Regions::with_room(room));
        let in_use = |region: &Region| region.table.as_ref().is_some_and(|table| table.count > 0);
        for region in old.entries.into_iter().filter(in_use) {
            let at = self.place(region.number - 1);
            self.entries[at] = region;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn agrees_with_the_standard_map(
            steps in prop::collection::vec((any::<bool>(), 1u64..600), 0..4000),
            scale in prop::sample::select(vec![8u64, 16, 48, 4096, 70_000]),
        ) {
            let (mut ours, mut theirs) = (LiveBlocks::new(), HashMap::new());
            for (i, (insert, key)) in steps.into_iter().enumerate() {
                let address = key * scale;
                if insert {
                    prop_assert_eq!(ours.insert(address, BlockId(i as u32)), theirs.insert(address, BlockId(i as u32)));
                } else {
                    prop_assert_eq!(ours.get(address), theirs.get(&address).copied());
                    prop_assert_eq!(ours.remove(address), theirs.remove(&address));
                }
            }
        }
    }

    proptest! {
        /// Places that were looked up some steps before, between which pages come and leaves go to other pages.
        #[test]
        fn a_place_that_was_looked_up_early_is_as_good_as_its_address(
            steps in prop::collection::vec((0..6, 0u64..200), 0..4000),
            scale in prop::sample::select(vec![8u64, 16, 2048, 4096]),
            ahead in 0..40usize,
        ) {
            let (mut ours, mut theirs) = (LiveBlocks::new(), HashMap::new());
            let mut waiting = std::collections::VecDeque::new();
            let ends = std::iter::repeat_n(None, ahead);
            for (i, step) in steps.into_iter().map(Some).chain(ends).enumerate() {
                if let Some((what, key)) = step {
                    let address = key * scale;
                    waiting.push_back((what, ours.prefetch(address).of(address)));
                }
                if waiting.len() <= ahead && step.is_some() {
                    continue;
                }
                let Some((what, at)) = waiting.pop_front() else { continue };
                let (address, block) = (at.address(), BlockId(i as u32));
                prop_assert_eq!(ours.get(at), theirs.get(&address).copied());
                match what {
                    0 => ours.release_empty(),
                    1..3 if address != 0 => prop_assert_eq!(ours.insert(at, block), theirs.insert(address, block)),
                    1..3 => prop_assert_eq!(ours.insert(at, block), None),
                    _ => prop_assert_eq!(ours.remove(at), theirs.remove(&address)),
                }
            }
        }
    }

    #[test]
    fn where_a_block_was_is_known_when_it_is_gone() {
        const MIB: u64 = 1 << 20;
        let mut live = LiveBlocks::new();
        assert_eq!(live.met_bytes_in(&(0..u64::MAX)), 0);
        for megabyte in [4, 5, 9] {
            live.insert(megabyte * MIB + 160, BlockId(1));
            live.remove(megabyte * MIB + 160);
        }
        live.release_empty();
        assert_eq!(live.get(4 * MIB + 160), None);
        let met = |range: Range<u64>| live.met_bytes_in(&range);
        assert_eq!((met(0..4 * MIB), met(0..4 * MIB + 1), met(0..6 * MIB)), (0, MIB, 2 * MIB));
        assert_eq!((met(6 * MIB..9 * MIB), met(9 * MIB + 4096..9 * MIB + 8192)), (0, 4096));
        assert_eq!((met(10 * MIB..u64::MAX), met(6 * MIB..u64::MAX), met(5 * MIB..5 * MIB)), (0, MIB, 0));
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

    #[test]
    fn memory_is_bounded_by_the_pages_that_hold_blocks() {
        let mut live = LiveBlocks::new();
        // A heap that wanders through the address space, a thousand pages of it at a time.
        for i in 1..200_000u64 {
            live.insert(i << PAGE_BITS, BlockId(i as u32));
            if i > 1000 {
                live.remove((i - 1000) << PAGE_BITS);
            }
        }
        assert!(live.leaves.len() <= 4096, "{} leaves for 1,000 pages", live.leaves.len());
        let regions = live.regions.entries.len();
        assert!(regions <= 128, "{regions} places for the regions of 1,000 pages");
    }

    #[test]
    fn look_ups_of_a_region_take_few_probes() {
        let mut regions = Regions::new();
        let numbers: Vec<u64> = (0..5_000).flat_map(|i| [0x5_5555 + i, 0x7ff_ff00 + i * 8]).collect();
        numbers.iter().for_each(|number| regions.set(number * REGION_PAGES as u64, 1));
        let mask = regions.entries.len() - 1;
        let way = |number: &u64| {
            let home = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> regions.shift) as usize;
            (0..).take_while(|step| regions.entries[(home + step) & mask].number != number + 1).count()
        };
        let ways: usize = numbers.iter().map(way).sum();
        assert!(ways < numbers.len(), "{ways} steps for {} regions", numbers.len());
    }
}

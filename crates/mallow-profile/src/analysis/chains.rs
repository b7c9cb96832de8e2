//! Blocks that `realloc` resized, from their first size to their last.
//!
//! A chain is a block and what one or more successful calls of `realloc` made of it. It belongs to the site that
//! allocated the block first, in a window to the one whose block it was when the window began. How much `realloc` copied is not seen: it may have grown a block where it stood. At most it
//! copied what both the old and the new block hold.

use super::block::{Block, entry};
use crate::{BlockId, StackId};
use mallow_base::add_fields;

/// Metrics over chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainTotals {
    /// Blocks that were resized at least once.
    pub chains: u64,
    /// How many reallocations in all.
    pub reallocations: u64,
    /// The maximal number of resizes of one block.
    pub longest: u64,
    /// An upper bound of the copied bytes: for each call, the smaller of the old and the new size.
    pub copied_bytes_max: u64,
    /// The chain that grew most.
    pub largest_growth: Growth,
}

/// How a chain grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The first size in bytes.
    pub first_bytes: u64,
    /// The last size.
    pub last_bytes: u64,
    /// Calls of `realloc` in between.
    pub reallocations: u64,
}

/// The chains that began at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSite {
    /// The stack that allocated the blocks first; none when none was taken.
    pub origin: Option<StackId>,
    /// The metrics.
    pub totals: ChainTotals,
}

impl Growth {
    /// By how many bytes; 0 when it shrank.
    pub fn bytes(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }
}

impl ChainTotals {
    /// Adds other chains.
    pub fn add(&mut self, other: &ChainTotals) {
        add_fields!(self, other; chains, reallocations);
        self.longest = self.longest.max(other.longest);
        self.copied_bytes_max = self.copied_bytes_max.saturating_add(other.copied_bytes_max);
        self.grew(other.largest_growth);
    }

    /// Of chains that grew by as much, the one that became larger, so that their order does not matter.
    fn grew(&mut self, growth: Growth) {
        let rank = |it: &Growth| (it.bytes(), it.last_bytes, it.first_bytes, it.reallocations);
        if rank(&growth) > rank(&self.largest_growth) {
            self.largest_growth = growth;
        }
    }
}

/// A chain while its block is live.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    growth: Growth,
    copied_bytes: u64,
    origin: u32,
}

/// The chains by their live block, and finished ones by their site.
#[derive(Debug, Default)]
pub(super) struct ChainsAggregator {
    /// By block id. A chain without a reallocation is none.
    live: Vec<Chain>,
    sites: Vec<ChainTotals>,
}

impl ChainsAggregator {
    /// A block was resized, and has its old id still: it was freed last.
    pub(super) fn resized(&mut self, id: BlockId, old: &Block, size: u64) {
        let chain = entry(&mut self.live, id.0 as usize);
        if chain.growth.reallocations == 0 {
            chain.origin = old.site;
            chain.growth.first_bytes = old.size;
        }
        chain.growth.reallocations += 1;
        chain.growth.last_bytes = size;
        chain.copied_bytes = chain.copied_bytes.saturating_add(old.size.min(size));
    }

    /// A block was freed for good.
    #[inline]
    pub(super) fn ended(&mut self, id: BlockId) {
        if let Some(chain) = self.live.get_mut(id.0 as usize)
            && chain.growth.reallocations > 0
        {
            let chain = std::mem::take(chain);
            self.book(&chain);
        }
    }

    fn book(&mut self, chain: &Chain) {
        let totals = ChainTotals {
            chains: 1,
            reallocations: chain.growth.reallocations,
            longest: chain.growth.reallocations,
            copied_bytes_max: chain.copied_bytes,
            largest_growth: chain.growth,
        };
        entry(&mut self.sites, chain.origin as usize).add(&totals);
    }

    /// All chains together, and by site.
    pub(super) fn finish(
        mut self,
        stack_of: impl Fn(usize) -> Option<StackId>,
    ) -> (ChainTotals, Vec<ChainSite>) {
        for chain in std::mem::take(&mut self.live).iter().filter(|chain| chain.growth.reallocations > 0) {
            self.book(chain);
        }
        let concerned = self.sites.iter().enumerate().filter(|(_, totals)| totals.chains > 0);
        let sites: Vec<ChainSite> =
            concerned.map(|(site, totals)| ChainSite { origin: stack_of(site), totals: *totals }).collect();
        let mut all = ChainTotals::default();
        sites.iter().for_each(|site| all.add(&site.totals));
        (all, sites)
    }
}

//! Blocks that did not live long: by what their thread did meanwhile, or by the clock.

use super::block::{Block, entry};
use crate::StackId;

/// A site and how many of its blocks lived briefly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortLivedSite {
    /// The stack; none when none was taken.
    pub stack: Option<StackId>,
    /// Blocks that lived briefly.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// All blocks that the site allocated in the window.
    pub allocations: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    blocks: u64,
    bytes: u64,
    allocations: u64,
}

/// The counts by site, while events pass.
#[derive(Debug, Default)]
pub(super) struct ShortLivedAggregator {
    sites: Vec<Counts>,
}

impl ShortLivedAggregator {
    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        entry(&mut self.sites, block.site()).allocations += 1;
    }

    #[inline]
    pub(super) fn was_short_lived(&mut self, block: &Block) {
        let site = entry(&mut self.sites, block.site());
        site.blocks += 1;
        site.bytes = site.bytes.wrapping_add(block.size);
    }

    /// The sites that have such blocks.
    pub(super) fn finish(self, stack_of: impl Fn(usize) -> Option<StackId>) -> Vec<ShortLivedSite> {
        let all = self.sites.into_iter().enumerate();
        all.filter(|(_, counts)| counts.blocks > 0)
            .map(|(site, Counts { blocks, bytes, allocations })| ShortLivedSite {
                stack: stack_of(site),
                blocks,
                bytes,
                allocations,
            })
            .collect()
    }
}

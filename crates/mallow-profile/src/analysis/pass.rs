//! The events of one process, handed to every analysis that was asked for.

use super::block::{Block, Death, entry};
use super::blocks::Blocks;
use super::chains::ChainsAggregator;
use super::histogram::Histogram;
use super::part::PartAggregator;
use super::short_lived::ShortLivedAggregator;
use super::threads::ThreadsAggregator;
use super::timeline::TimelineAggregator;
use super::trend::TrendsAggregator;
use super::window::WindowAggregator;
use super::{Findings, Plan};
use crate::{Aggregator, BlockId, ReallocAttribution, StackId, ThreadIndex};

/// Which blocks are included: by the thread that allocates them, the stack, and the size.
pub type BlockChoice = Box<dyn Fn(ThreadIndex, StackId, u64) -> bool>;

/// Computes all analyses in one pass over the events of a process. Block ids are those of an [`Aggregator`], so a
/// pass can replace it.
pub struct Pass {
    plan: Plan,
    /// None for all.
    choice: Option<BlockChoice>,
    blocks: Blocks,
    sites: SiteTable,
    /// Allocations so far, by thread.
    allocations: Vec<u64>,
    window: Option<WindowAggregator>,
    part: Option<PartAggregator>,
    timeline: Option<TimelineAggregator>,
    histogram: Option<Histogram>,
    threads: Option<ThreadsAggregator>,
    chains: Option<ChainsAggregator>,
    temporary: Option<ShortLivedAggregator>,
    short_lived: Option<ShortLivedAggregator>,
    trends: Option<TrendsAggregator>,
}

impl Pass {
    /// Before the first event.
    pub fn new(plan: Plan) -> Pass {
        Pass::of(plan, None)
    }

    /// The same, with a choice of blocks: no analysis hears of others.
    pub fn of(plan: Plan, choice: Option<BlockChoice>) -> Pass {
        let window = plan.window;
        Pass {
            plan,
            choice,
            blocks: Blocks::new(),
            sites: SiteTable::default(),
            allocations: Vec::new(),
            window: plan.window_sites.then(|| WindowAggregator::new(window)),
            part: plan.part_until_us.map(|_| PartAggregator::new(window)),
            timeline: plan.timeline.map(|time| TimelineAggregator::new(window, time)),
            histogram: plan.histogram.then(Histogram::default),
            threads: plan.threads.then(|| ThreadsAggregator::new(window)),
            chains: plan.chains.then(ChainsAggregator::default),
            temporary: plan.temporary_within.map(|_| ShortLivedAggregator::default()),
            short_lived: plan.shorter_than_us.map(|_| ShortLivedAggregator::default()),
            trends: plan.trends.map(TrendsAggregator::new),
        }
    }

    /// A successful allocating call.
    #[inline]
    pub fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        let site = self.sites.index_of(stack);
        self.born(thread, site, size, time_us, false)
    }

    /// A block is freed. One that is not live is ignored by every analysis.
    #[inline]
    pub fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        let Some((gone, true, death)) = self.died(thread, block, time_us) else { return };
        if let Some(chains) = &mut self.chains {
            chains.ended(block);
        }
        if let Some(trends) = &mut self.trends {
            trends.died(&gone, &death);
        }
    }

    /// A successful `realloc` of a live block to a size above 0.
    pub fn realloc(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        let Some((old, was_wanted, death)) = self.died(thread, block, time_us) else {
            return self.realloc_unmatched(thread, stack, size, time_us);
        };
        if was_wanted
            && self.plan.window.contains(time_us)
            && let Some(chains) = &mut self.chains
        {
            chains.resized(block, &old, size);
        }
        let site = match self.plan.attribution {
            ReallocAttribution::OwnSite => self.sites.index_of(stack),
            ReallocAttribution::Origin => old.site,
        };
        let new = self.born(thread, site, size, time_us, true);
        // The old block after the new one: what is resized all the time is not gone in between.
        if let Some(trends) = &mut self.trends
            && was_wanted
        {
            trends.died(&old, &death);
        }
        new
    }

    /// A successful `realloc` of a block whose allocation was not seen. What it made is as any other block.
    pub fn realloc_unmatched(
        &mut self,
        thread: ThreadIndex,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        let site = self.sites.index_of(stack);
        self.born(thread, site, size, time_us, true)
    }

    /// A free of a block whose allocation was not seen concerns no analysis.
    pub fn free_unmatched(&mut self, _thread: ThreadIndex, _time_us: u64) {}

    /// An allocating call that failed.
    pub fn failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
        if self.wants(thread, stack, size)
            && let Some(part) = &mut self.part
        {
            part.failed(self.sites.index_of(stack), time_us);
        }
    }

    #[inline]
    fn wants(&self, thread: ThreadIndex, stack: StackId, size: u64) -> bool {
        self.choice.as_ref().is_none_or(|choice| choice(thread, stack, size))
    }

    /// Returns whether a block is live. Ids from a damaged file need not be.
    #[inline]
    pub fn is_live(&self, block: BlockId) -> bool {
        self.blocks.is_live(block)
    }

    #[inline]
    fn born(&mut self, thread: ThreadIndex, site: u32, size: u64, time_us: u64, by_realloc: bool) -> BlockId {
        let number = entry(&mut self.allocations, thread.0 as usize);
        *number += 1;
        let block = Block { size, born_us: time_us, number: *number, site, thread: thread.0 };
        let is_wanted = self.choice.is_none() || self.wants(thread, self.sites.stacks[site as usize], size);
        if let Some(part) = &mut self.part {
            part.born(&block, is_wanted, by_realloc);
        }
        if is_wanted {
            self.born_of_wanted(&block);
        }
        self.blocks.insert(block, is_wanted)
    }

    #[inline]
    fn born_of_wanted(&mut self, block: &Block) {
        let time_us = block.born_us;
        if self.plan.window.contains(time_us) {
            if let Some(histogram) = &mut self.histogram {
                histogram.born(block);
            }
            if let Some(temporary) = &mut self.temporary {
                temporary.born(block);
            }
            if let Some(short_lived) = &mut self.short_lived {
                short_lived.born(block);
            }
        }
        if let Some(window) = &mut self.window {
            window.born(block);
        }
        if let Some(threads) = &mut self.threads {
            threads.born(block);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.born(block);
        }
        if let Some(trends) = &mut self.trends {
            trends.born(block);
        }
    }

    /// Tells everybody but chains and trends, to whom a resized block is not gone. Says whether the block is wanted.
    #[inline]
    fn died(&mut self, thread: ThreadIndex, id: BlockId, time_us: u64) -> Option<(Block, bool, Death)> {
        let (block, is_wanted) = self.blocks.remove(id)?;
        let made = self.allocations.get(block.thread as usize).copied().unwrap_or(0);
        let death = Death { time_us, thread: thread.0, allocations_since: made - block.number };
        if let Some(part) = &mut self.part {
            part.died(&block, is_wanted, &death);
        }
        if !is_wanted {
            return Some((block, is_wanted, death));
        }
        if self.plan.window.contains(block.born_us) {
            self.died_of_window(&block, &death);
        }
        if let Some(window) = &mut self.window {
            window.died(&block, &death);
        }
        if let Some(threads) = &mut self.threads {
            threads.died(&block, &death);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.died(&block, &death);
        }
        Some((block, is_wanted, death))
    }

    /// Adds a block that was allocated in the window, whenever it was freed.
    #[inline]
    fn died_of_window(&mut self, block: &Block, death: &Death) {
        if let Some(histogram) = &mut self.histogram {
            histogram.died(block, death);
        }
        if let (Some(temporary), Some(within)) = (&mut self.temporary, self.plan.temporary_within)
            && death.by_own_thread(block)
            && death.allocations_since < within
        {
            temporary.was_short_lived(block);
        }
        if let (Some(short_lived), Some(shorter_than_us)) = (&mut self.short_lived, self.plan.shorter_than_us)
            && death.lifetime_us(block) < shorter_than_us
        {
            short_lived.was_short_lived(block);
        }
    }

    /// Returns the results.
    pub fn finish(mut self) -> Findings {
        if let Some(histogram) = &mut self.histogram {
            let window = self.plan.window;
            let left = self.blocks.live().filter(|block| window.contains(block.born_us));
            left.for_each(|block| histogram.lives(block));
        }
        let stack_of = |site: usize| self.sites.stack_of(site);
        let ended_us = self.plan.part_until_us.unwrap_or(0);
        let (chains, chain_sites) = self.chains.map(|it| it.finish(stack_of)).unwrap_or_default();
        Findings {
            window_sites: self.window.map(|it| it.finish(stack_of)).unwrap_or_default(),
            part: self.part.map(|it| it.finish(self.blocks.live(), ended_us, stack_of)),
            timeline: self.timeline.map(|it| it.finish(stack_of)),
            histogram: self.histogram,
            threads: self.threads.map(|it| it.threads).unwrap_or_default(),
            chains,
            chain_sites,
            temporary: self.temporary.map(|it| it.finish(stack_of)).unwrap_or_default(),
            short_lived: self.short_lived.map(|it| it.finish(stack_of)).unwrap_or_default(),
            trends: self.trends.map(|it| it.finish(stack_of)).unwrap_or_default(),
        }
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Dense numbers for the stacks that allocate.
#[derive(Debug, Default)]
struct SiteTable {
    /// By stack id; 0 for a stack that has not allocated yet, else one more than its site.
    by_stack: Vec<u32>,
    /// The site of blocks without a stack, in the same way.
    without_stack: u32,
    stacks: Vec<StackId>,
}

impl SiteTable {
    #[inline]
    fn index_of(&mut self, stack: StackId) -> u32 {
        match self.by_stack.get(stack.0 as usize) {
            Some(&known) if known > 0 => known - 1,
            _ => self.find(stack),
        }
    }

    fn find(&mut self, stack: StackId) -> u32 {
        let known = match stack {
            Aggregator::NO_STACK => &mut self.without_stack,
            StackId(id) => entry(&mut self.by_stack, id as usize),
        };
        if *known == 0 {
            self.stacks.push(stack);
            *known = self.stacks.len() as u32;
        }
        *known - 1
    }

    fn stack_of(&self, site: usize) -> Option<StackId> {
        self.stacks.get(site).copied().filter(|&stack| stack != Aggregator::NO_STACK)
    }
}

//! A program kept whole: every event and every block, and each metric worked out from all of them.

use mallow_profile::analysis::{
    ChainSite, ChainTotals, Counts, Growth, Histogram, Level, ShortLivedSite, Slice, Slices, ThreadMetrics,
    Window, WindowMetrics, WindowSite, bucket_of,
};
use mallow_profile::{Aggregator, BlockId, EventSink, StackId, Summary, ThreadIndex};
use proptest::collection::vec;
use proptest::prelude::*;

const STACKS: u32 = 4;
const THREADS: u32 = 3;

mod part;

/// Something that happened; blocks are numbered as they are born.
#[derive(Clone, Copy, Debug)]
enum Event {
    Alloc { thread: u32, block: usize, time_us: u64 },
    Free { thread: u32, block: usize, time_us: u64 },
    Realloc { thread: u32, old: usize, block: usize, time_us: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Block {
    thread: u32,
    stack: u32,
    size: u64,
    born_us: u64,
    /// What it was before `realloc`.
    before: Option<usize>,
    /// When, by which thread, and after how many further allocations of its own thread.
    died: Option<(u64, u32, u64)>,
    /// Whether `realloc` replaced it.
    replaced: bool,
}

/// Memory over time.
#[derive(Debug, PartialEq)]
pub(crate) struct OverTime {
    pub(crate) slices: Vec<Slice>,
    pub(crate) peak_us: u64,
    pub(crate) peak_bytes: u64,
    /// Each site's bytes at the peak and at the ends of slices.
    pub(crate) sites: Vec<(StackId, u64, Vec<u64>)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Twin {
    events: Vec<Event>,
    blocks: Vec<Block>,
}

/// A random program of at most 1,500 microseconds.
pub(crate) fn program() -> impl Strategy<Value = Twin> {
    let size = prop_oneof![Just(0u64), 1u64..70, Just(64u64), 1_000u64..100_000];
    let step = (0u32..10, 0..THREADS, 0..STACKS, size, any::<prop::sample::Index>(), 0u64..25);
    vec(step, 0..60).prop_map(|steps| {
        let (mut twin, mut live, mut time_us) = (Twin::default(), Vec::new(), 0);
        for (kind, thread, stack, size, choice, passed) in steps {
            time_us += passed;
            match kind {
                0..5 => live.push(twin.alloc(thread, stack, size, time_us)),
                _ if live.is_empty() => {}
                5..8 => {
                    let block = live.swap_remove(choice.index(live.len()));
                    twin.free(thread, block, time_us);
                }
                _ => {
                    let at = choice.index(live.len());
                    live[at] = twin.realloc(thread, live[at], stack, size, time_us);
                }
            }
        }
        twin
    })
}

impl Twin {
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> usize {
        let block = self.born(thread, stack, size, time_us, None);
        self.events.push(Event::Alloc { thread, block, time_us });
        block
    }

    fn born(&mut self, thread: u32, stack: u32, size: u64, born_us: u64, before: Option<usize>) -> usize {
        self.blocks.push(Block { thread, stack, size, born_us, before, died: None, replaced: false });
        self.blocks.len() - 1
    }

    fn free(&mut self, thread: u32, block: usize, time_us: u64) {
        self.dies(thread, block, time_us);
        self.events.push(Event::Free { thread, block, time_us });
    }

    fn dies(&mut self, thread: u32, block: usize, time_us: u64) {
        let own = self.blocks[block].thread;
        let since = self.blocks[block + 1..].iter().filter(|later| later.thread == own).count() as u64;
        self.blocks[block].died = Some((time_us, thread, since));
    }

    fn realloc(&mut self, thread: u32, old: usize, stack: u32, size: u64, time_us: u64) -> usize {
        self.dies(thread, old, time_us);
        self.blocks[old].replaced = true;
        let block = self.born(thread, stack, size, time_us, Some(old));
        self.events.push(Event::Realloc { thread, old, block, time_us });
        block
    }

    /// Hands the events to whoever takes them.
    pub(crate) fn feed(&self, sink: &mut impl EventSink) {
        let mut ids: Vec<BlockId> = Vec::new();
        for event in &self.events {
            match *event {
                Event::Alloc { thread, block, time_us } => {
                    let Block { stack, size, .. } = self.blocks[block];
                    ids.push(sink.alloc(ThreadIndex(thread), StackId(stack), size, time_us));
                }
                Event::Free { thread, block, time_us } => sink.free(ThreadIndex(thread), ids[block], time_us),
                Event::Realloc { thread, old, block, time_us } => {
                    let Block { stack, size, .. } = self.blocks[block];
                    let id = ids[old];
                    ids.push(sink.realloc(ThreadIndex(thread), id, StackId(stack), size, time_us));
                }
            }
        }
    }

    /// The aggregator's metrics over the same events.
    pub(crate) fn summary(&self) -> Summary {
        let mut aggregator = Aggregator::new();
        self.feed(&mut aggregator);
        aggregator.finish(self.end_us())
    }

    pub(crate) fn end_us(&self) -> u64 {
        self.events.last().map_or(0, |event| event.time_us()) + 1
    }

    /// The stacks in the order of their first allocations.
    fn stacks(&self) -> Vec<u32> {
        let mut stacks: Vec<u32> = Vec::new();
        for block in &self.blocks {
            if !stacks.contains(&block.stack) {
                stacks.push(block.stack);
            }
        }
        stacks
    }

    fn of_stack(&self, stack: u32) -> Vec<Block> {
        self.blocks.iter().copied().filter(|block| block.stack == stack).collect()
    }

    pub(crate) fn window_sites(&self, window: Window) -> Vec<WindowSite> {
        let site = |stack: u32| {
            let blocks = self.of_stack(stack);
            let sum = |of: &dyn Fn(&Block) -> bool| {
                let chosen: Vec<u64> =
                    blocks.iter().filter(|block| of(block)).map(|block| block.size).collect();
                (chosen.len() as u64, chosen.iter().sum::<u64>())
            };
            let (allocations, bytes) = sum(&|block| window.contains(block.born_us));
            let (frees, freed_bytes) = sum(&|block| block.died.is_some_and(|(at, ..)| window.contains(at)));
            let (live_blocks, live_bytes) = sum(&|block| block.is_live_at(window.to_us));
            let (kept_blocks, kept_bytes) =
                sum(&|block| window.contains(block.born_us) && block.is_live_at(window.to_us));
            let metrics = WindowMetrics {
                allocations,
                bytes,
                frees,
                freed_bytes,
                live_blocks,
                live_bytes,
                kept_blocks,
                kept_bytes,
            };
            WindowSite { stack: Some(StackId(stack)), metrics }
        };
        let sites = self.stacks().into_iter().map(site);
        sites.filter(|site| site.metrics != WindowMetrics::default()).collect()
    }

    pub(crate) fn histogram(&self, window: Window) -> Histogram {
        let mut histogram = Histogram::default();
        for block in self.blocks.iter().filter(|block| window.contains(block.born_us)) {
            let mut buckets = vec![&mut histogram.sizes[bucket_of(block.size)]];
            buckets.push(match block.died {
                Some((at, ..)) => &mut histogram.lifetimes[bucket_of(at - block.born_us)],
                None => &mut histogram.never_freed,
            });
            for bucket in buckets {
                bucket.blocks += 1;
                bucket.bytes += block.size;
            }
        }
        histogram
    }

    pub(crate) fn threads(&self, window: Window) -> Vec<ThreadMetrics> {
        let metrics = |thread: u32| {
            let own: Vec<&Block> = self.blocks.iter().filter(|block| block.thread == thread).collect();
            let allocated = own.iter().filter(|block| window.contains(block.born_us));
            let live: Vec<&&Block> = own.iter().filter(|block| block.is_live_at(window.to_us)).collect();
            let deaths = |block: &Block| block.died.filter(|(at, ..)| window.contains(*at));
            let freed: Vec<&Block> = self
                .blocks
                .iter()
                .filter(|block| deaths(block).is_some_and(|(_, by, _)| by == thread))
                .collect();
            ThreadMetrics {
                allocations: allocated.clone().count() as u64,
                bytes: allocated.map(|block| block.size).sum(),
                frees: freed.len() as u64,
                frees_of_others: freed.iter().filter(|block| block.thread != thread).count() as u64,
                freed_by_others: own
                    .iter()
                    .filter(|block| deaths(block).is_some_and(|(_, by, _)| by != thread))
                    .count() as u64,
                temporary: own
                    .iter()
                    .filter(|block| deaths(block).is_some_and(|(_, by, since)| by == thread && since == 0))
                    .count() as u64,
                live_blocks: live.len() as u64,
                live_bytes: live.iter().map(|block| block.size).sum(),
            }
        };
        (0..THREADS).map(metrics).collect()
    }

    /// Follows each block that was not replaced in the window back to what it was when the window began, or at first.
    pub(crate) fn chains(&self, window: Window) -> (ChainTotals, Vec<ChainSite>) {
        let resized = |block: &Block| block.before.filter(|_| window.contains(block.born_us));
        // Chains are over in the order of their last blocks' frees, those that live on by slot; the sums do not depend on
        // it, and of equal growths sizes may differ, so the largest is compared by its bytes.
        let mut chains: Vec<(u32, ChainTotals)> = Vec::new();
        for (at, last) in self.blocks.iter().enumerate() {
            let goes_on = self.blocks.iter().any(|block| resized(block) == Some(at));
            if resized(last).is_none() || goes_on {
                continue;
            }
            let (mut at, mut growth, mut copied) = (at, Growth::default(), 0);
            growth.last_bytes = last.size;
            while let Some(before) = resized(&self.blocks[at]) {
                growth.reallocations += 1;
                copied += self.blocks[before].size.min(self.blocks[at].size);
                at = before;
            }
            growth.first_bytes = self.blocks[at].size;
            let totals = ChainTotals {
                chains: 1,
                reallocations: growth.reallocations,
                longest: growth.reallocations,
                copied_bytes_max: copied,
                largest_growth: growth,
            };
            chains.push((self.blocks[at].stack, totals));
        }
        let mut all = ChainTotals::default();
        let mut sites = Vec::new();
        for stack in self.stacks() {
            let own: Vec<&ChainTotals> =
                chains.iter().filter(|(origin, _)| *origin == stack).map(|(_, totals)| totals).collect();
            let mut totals = ChainTotals::default();
            own.iter().for_each(|chain| totals.add(chain));
            if !own.is_empty() {
                all.add(&totals);
                sites.push(ChainSite { origin: Some(StackId(stack)), totals });
            }
        }
        (all, sites)
    }

    fn short_lived_where(
        &self,
        window: Window,
        is_short_lived: impl Fn(&Block) -> bool,
    ) -> Vec<ShortLivedSite> {
        let site = |stack: u32| {
            let mut blocks = self.of_stack(stack);
            blocks.retain(|block| window.contains(block.born_us));
            let short_lived_where: Vec<&Block> =
                blocks.iter().filter(|block| is_short_lived(block)).collect();
            ShortLivedSite {
                stack: Some(StackId(stack)),
                blocks: short_lived_where.len() as u64,
                bytes: short_lived_where.iter().map(|block| block.size).sum(),
                allocations: blocks.len() as u64,
            }
        };
        self.stacks().into_iter().map(site).filter(|site| site.blocks > 0).collect()
    }

    pub(crate) fn temporary(&self, window: Window, within: u64) -> Vec<ShortLivedSite> {
        self.short_lived_where(window, |block| {
            block.died.is_some_and(|(_, by, since)| by == block.thread && since < within)
        })
    }

    pub(crate) fn short_lived(&self, window: Window, us: u64) -> Vec<ShortLivedSite> {
        self.short_lived_where(window, |block| block.died.is_some_and(|(at, ..)| at - block.born_us < us))
    }

    /// The live blocks after each event: its time, whether it is an allocation, and the blocks.
    fn moments(&self) -> Vec<(u64, bool, Vec<usize>)> {
        let (mut live, mut moments): (Vec<usize>, _) = (Vec::new(), Vec::new());
        for event in &self.events {
            let (dies, born) = match *event {
                Event::Alloc { block, .. } => (None, Some(block)),
                Event::Free { block, .. } => (Some(block), None),
                Event::Realloc { old, block, .. } => (Some(old), Some(block)),
            };
            if let Some(dies) = dies {
                live.retain(|&block| block != dies);
                moments.push((event.time_us(), false, live.clone()));
            }
            if let Some(born) = born {
                live.push(born);
                moments.push((event.time_us(), true, live.clone()));
            }
        }
        moments
    }

    /// The same without the moment within a `realloc` when neither block is live.
    fn moments_between_events(&self) -> Vec<(u64, bool, Vec<usize>)> {
        let mut moments = self.moments().into_iter();
        let mut between = Vec::new();
        for event in &self.events {
            if matches!(event, Event::Realloc { .. }) {
                moments.next();
            }
            between.extend(moments.next());
        }
        between
    }

    fn bytes(&self, blocks: &[usize], stack: Option<u32>) -> u64 {
        let own = blocks.iter().map(|&block| &self.blocks[block]);
        own.filter(|block| stack.is_none_or(|stack| block.stack == stack)).map(|block| block.size).sum()
    }

    pub(crate) fn timeline(&self, window: Window, time: Slices) -> OverTime {
        let moments = self.moments();
        let until = |at_us: u64| {
            let mut before = moments.iter().filter(|(moment, ..)| *moment < at_us);
            before.next_back().map_or(Vec::new(), |(_, _, live)| live.clone())
        };
        let end_of = |slice: usize| {
            let end_us = if slice + 1 == time.count() { u64::MAX } else { time.begin_us(slice + 1) };
            end_us.min(window.to_us)
        };
        let start = until(window.from_us);
        let inside: Vec<&(u64, bool, Vec<usize>)> =
            moments.iter().filter(|(at, ..)| window.contains(*at)).collect();
        let slice = |at: usize| {
            let own: Vec<&&(u64, bool, Vec<usize>)> =
                inside.iter().filter(|(moment, ..)| time.of(*moment) == at).collect();
            let before = if at == 0 { start.clone() } else { until(end_of(at - 1).max(window.from_us)) };
            let born = self
                .blocks
                .iter()
                .filter(|block| window.contains(block.born_us) && time.of(block.born_us) == at);
            let end = until(end_of(at).max(window.from_us));
            let highest = |of: &dyn Fn(&[usize]) -> u64| {
                own.iter().map(|(_, _, live)| of(live)).chain([of(&before)]).max().unwrap_or(0)
            };
            Slice {
                allocations: born.clone().count() as u64,
                bytes: born.map(|block| block.size).sum(),
                frees: own.iter().filter(|(_, is_alloc, _)| !is_alloc).count() as u64,
                live_bytes: self.bytes(&end, None),
                live_blocks: end.len() as u64,
                live_bytes_max: highest(&|live| self.bytes(live, None)),
                live_blocks_max: highest(&|live| live.len() as u64),
            }
        };
        let first = (window.from_us, start.clone());
        let candidates = inside.iter().filter(|(_, is_alloc, _)| *is_alloc);
        let candidates = candidates.map(|(at, _, live)| (*at, live.clone()));
        // `max_by_key` gives the last of equal ones.
        let all: Vec<(u64, Vec<usize>)> = [first].into_iter().chain(candidates).collect();
        let none = (0, Vec::new());
        let (peak_us, peak) = all.iter().max_by_key(|(_, live)| self.bytes(live, None)).unwrap_or(&none);
        let levels: Vec<Vec<usize>> =
            (0..time.count()).map(|at| until(end_of(at).max(window.from_us))).collect();
        let site = |stack: u32| {
            let live: Vec<u64> = levels.iter().map(|live| self.bytes(live, Some(stack))).collect();
            (stack, self.bytes(peak, Some(stack)), live)
        };
        let sites = self.stacks().into_iter().filter(|&stack| self.allocates_before(stack, window.to_us));
        let sites = sites.map(site).filter(|(_, peak, live)| *peak > 0 || live.iter().any(|&live| live > 0));
        OverTime {
            slices: (0..time.count()).map(slice).collect(),
            peak_us: *peak_us,
            peak_bytes: self.bytes(peak, None),
            sites: sites.map(|(stack, peak, live)| (StackId(stack), peak, live)).collect(),
        }
    }

    fn allocates_before(&self, stack: u32, at_us: u64) -> bool {
        self.blocks.iter().any(|block| block.stack == stack && block.born_us < at_us)
    }

    /// By stack: live bytes by slice, where a block of no bytes weighs one, and what else a trend is made from.
    pub(crate) fn trends(&self, run: Slices) -> Vec<(StackId, Vec<Level>, Counts)> {
        let end_us = run.begin_us(run.count() * 98 / 100);
        let moments = self.moments_between_events();
        let weight = |live: &[usize], stack: u32| -> u64 {
            let own = live.iter().map(|&block| &self.blocks[block]).filter(|block| block.stack == stack);
            own.map(|block| block.size.max(1)).sum()
        };
        let trend = |stack: u32| {
            let mut before = 0;
            let levels = (0..run.count()).map(|slice| {
                let own = moments.iter().filter(|(at, ..)| run.of(*at) == slice);
                let weights: Vec<u64> = own.map(|(_, _, live)| weight(live, stack)).collect();
                let low = weights.iter().copied().chain([before]).min().unwrap_or(0);
                before = weights.last().copied().unwrap_or(before);
                Level { live: before, low }
            });
            let levels: Vec<Level> = levels.collect();
            let blocks = self.of_stack(stack);
            let died_at = |block: &Block| block.died.map_or(u64::MAX, |(at, ..)| at);
            let held = |block: &&Block| block.born_us < end_us && died_at(block) >= end_us;
            let counts = Counts {
                allocations: blocks.len() as u64,
                first_us: blocks.first().map_or(0, |block| block.born_us),
                last_us: blocks.last().map_or(0, |block| block.born_us),
                frees_before_end: blocks.iter().filter(|block| died_at(block) < end_us).count() as u64,
                frees_at_end: blocks.iter().filter(held).filter(|block| block.died.is_some()).count() as u64,
                live_bytes_before_end: blocks.iter().filter(held).map(|block| block.size.max(1)).sum(),
                freed_bytes_at_end: blocks
                    .iter()
                    .filter(held)
                    .filter(|block| block.died.is_some())
                    .map(|block| block.size.max(1))
                    .sum(),
            };
            (StackId(stack), levels, counts)
        };
        self.stacks().into_iter().map(trend).collect()
    }
}

impl Event {
    fn time_us(&self) -> u64 {
        match *self {
            Event::Alloc { time_us, .. } | Event::Free { time_us, .. } | Event::Realloc { time_us, .. } => {
                time_us
            }
        }
    }
}

impl Block {
    fn is_live_at(&self, at_us: u64) -> bool {
        self.born_us < at_us && self.died.is_none_or(|(died_us, ..)| died_us >= at_us)
    }
}

//! The aggregator against a naive twin that keeps every event and works each figure out from the whole list.

use mallow_profile::{
    Aggregator, BlockId, ReallocAttribution, Request, RequestTotals, SiteTotals, StackId, Summary,
    ThreadIndex, Totals,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A step of a random program. Blocks are chosen from those that are live.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc { stack: u32, size: u64 },
    Temporary { stack: u32, size: u64, lived_us: u64 },
    Free { choice: prop::sample::Index },
    Realloc { choice: prop::sample::Index, stack: u32, size: u64 },
    ReallocUnmatched { stack: u32, size: u64 },
    FreeUnmatched,
    Failed { stack: u32, size: u64 },
}

#[derive(Clone, Copy)]
struct Block {
    thread: u32,
    stack: u32,
    size: u64,
    born_us: u64,
    /// The allocation's number, over all and in its thread.
    thread_number: u64,
    died: Option<(u32, u64, u64)>,
}

/// Everything that happened; metrics are worked out by [`Twin::summary`].
#[derive(Default)]
struct Twin {
    attribution: ReallocAttribution,
    blocks: Vec<Block>,
    /// Live blocks by stack after each event: an allocation is marked with its time.
    moments: Vec<(Option<u64>, Vec<usize>)>,
    live: Vec<usize>,
    thread_counts: BTreeMap<u32, u64>,
    reallocations: Vec<u32>,
    failures: Vec<u32>,
    unmatched: u64,
}

impl Twin {
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, born_us: u64) {
        let count = self.thread_counts.entry(thread).or_default();
        *count += 1;
        self.blocks.push(Block { thread, stack, size, born_us, thread_number: *count, died: None });
        self.live.push(self.blocks.len() - 1);
        self.moments.push((Some(born_us), self.live.clone()));
    }

    fn free(&mut self, thread: u32, block: usize, time_us: u64) {
        let count = self.thread_counts.get(&thread).copied().unwrap_or(0);
        self.blocks[block].died = Some((thread, count, time_us));
        self.live.retain(|&live| live != block);
        self.moments.push((None, self.live.clone()));
    }

    fn realloc(&mut self, thread: u32, block: usize, stack: u32, size: u64, time_us: u64) {
        let stack =
            if self.attribution == ReallocAttribution::Origin { self.blocks[block].stack } else { stack };
        self.free(thread, block, time_us);
        self.reallocations.push(stack);
        self.alloc(thread, stack, size, time_us);
    }

    fn bytes(&self, blocks: &[usize]) -> u64 {
        blocks.iter().map(|&block| self.blocks[block].size).sum()
    }

    fn temporary(block: &Block) -> bool {
        block.died.is_some_and(|(thread, count, _)| thread == block.thread && count == block.thread_number)
    }

    fn site(&self, stack: u32, peak: &[usize], end_us: u64) -> SiteTotals {
        let of = |blocks: &[usize]| -> Vec<usize> {
            blocks.iter().copied().filter(|&block| self.blocks[block].stack == stack).collect()
        };
        let blocks: Vec<&Block> = self.blocks.iter().filter(|block| block.stack == stack).collect();
        let lived = |block: &&Block| block.died.map_or(end_us, |(_, _, time_us)| time_us) - block.born_us;
        SiteTotals {
            allocations: blocks.len() as u64,
            bytes: blocks.iter().map(|block| block.size).sum(),
            reallocations: self.reallocations.iter().filter(|&&site| site == stack).count() as u64,
            temporary: blocks.iter().filter(|block| Twin::temporary(block)).count() as u64,
            failed: self.failures.iter().filter(|&&site| site == stack).count() as u64,
            peak_bytes: self.bytes(&of(peak)),
            peak_blocks: of(peak).len() as u64,
            leaked_bytes: self.bytes(&of(&self.live)),
            leaked_blocks: of(&self.live).len() as u64,
            live_bytes_max: self.moments.iter().map(|(_, live)| self.bytes(&of(live))).max().unwrap_or(0),
            live_blocks_at_max: self.blocks_at_max(stack),
            lifetime_us_sum: blocks.iter().map(lived).sum(),
            first_us: blocks.first().map_or(0, |block| block.born_us),
            last_us: blocks.last().map_or(0, |block| block.born_us),
            ..SiteTotals::default()
        }
    }

    /// The stack's live blocks at the first of its allocations that brought its live bytes to their maximum.
    fn blocks_at_max(&self, stack: u32) -> u64 {
        let allocations = self.moments.iter().filter(|(time, _)| time.is_some()).zip(&self.blocks);
        let own = allocations.filter(|(_, block)| block.stack == stack).map(|((_, live), _)| {
            let own = live.iter().copied().filter(|&block| self.blocks[block].stack == stack);
            own.collect::<Vec<usize>>()
        });
        // `max_by_key` gives the last of equal ones.
        let states: Vec<Vec<usize>> = own.collect();
        states.iter().rev().max_by_key(|blocks| self.bytes(blocks)).map_or(0, |blocks| blocks.len() as u64)
    }

    fn summary(&self, end_us: u64) -> (Totals, u64, u64, BTreeMap<u32, SiteTotals>) {
        let allocations = self.moments.iter().filter(|(time, _)| time.is_some());
        let none = (Some(0), Vec::new());
        // Of equal ones the last, which is what `max_by_key` gives.
        let (peak_us, peak) = allocations.max_by_key(|(_, live)| self.bytes(live)).unwrap_or(&none);
        let stacks = self.blocks.iter().map(|block| block.stack).chain(self.failures.iter().copied());
        let sites = stacks.map(|stack| (stack, self.site(stack, peak, end_us))).collect();
        let died = self.blocks.iter().filter(|block| block.died.is_some()).count() as u64;
        let totals = Totals {
            allocations: self.blocks.len() as u64,
            bytes: self.blocks.iter().map(|block| block.size).sum(),
            frees: died + self.unmatched,
            reallocations: self.reallocations.len() as u64,
            temporary: self.blocks.iter().filter(|block| Twin::temporary(block)).count() as u64,
            failed: self.failures.len() as u64,
            peak_bytes: self.bytes(peak),
            peak_blocks: peak.len() as u64,
            leaked_bytes: self.bytes(&self.live),
            leaked_blocks: self.live.len() as u64,
        };
        (totals, peak_us.unwrap_or(0), self.unmatched, sites)
    }
}

/// Both, fed with the same steps.
struct Both {
    aggregator: Aggregator,
    twin: Twin,
    /// The aggregator's id of each live block, in the order of the twin's `live`.
    ids: BTreeMap<usize, BlockId>,
    time_us: u64,
}

impl Both {
    fn new(attribution: ReallocAttribution) -> Both {
        let twin = Twin { attribution, ..Twin::default() };
        Both {
            aggregator: Aggregator::with_attribution(attribution),
            twin,
            ids: BTreeMap::new(),
            time_us: 100,
        }
    }

    fn born(&mut self, id: BlockId) {
        self.ids.insert(self.twin.blocks.len() - 1, id);
    }

    fn step(&mut self, thread: u32, passed_us: u64, step: Step) {
        self.time_us += passed_us;
        let (at, time_us) = (ThreadIndex(thread), self.time_us);
        let choose = |choice: prop::sample::Index, live: &[usize]| live[choice.index(live.len())];
        match step {
            Step::Alloc { stack, size } => {
                self.twin.alloc(thread, stack, size, time_us);
                let id = self.aggregator.alloc(at, StackId(stack), size, time_us);
                self.born(id);
            }
            Step::Temporary { stack, size, lived_us } => {
                self.time_us += lived_us;
                self.twin.alloc(thread, stack, size, time_us);
                self.twin.free(thread, self.twin.blocks.len() - 1, self.time_us);
                self.aggregator.temporary(at, StackId(stack), size, time_us, self.time_us);
            }
            Step::Free { choice } if !self.twin.live.is_empty() => {
                let block = choose(choice, &self.twin.live);
                self.twin.free(thread, block, time_us);
                self.aggregator.free(at, self.ids[&block], time_us);
            }
            Step::Realloc { choice, stack, size } if !self.twin.live.is_empty() => {
                let block = choose(choice, &self.twin.live);
                self.twin.realloc(thread, block, stack, size, time_us);
                let id = self.aggregator.realloc(at, self.ids[&block], StackId(stack), size, time_us);
                self.born(id);
            }
            Step::ReallocUnmatched { stack, size } => {
                self.twin.unmatched += 1;
                self.twin.reallocations.push(stack);
                self.twin.alloc(thread, stack, size, time_us);
                let id = self.aggregator.realloc_unmatched(at, StackId(stack), size, time_us);
                self.born(id);
            }
            Step::Failed { stack, size } => {
                self.twin.failures.push(stack);
                self.aggregator.failed(at, StackId(stack), size, time_us);
            }
            _ => {
                self.twin.unmatched += 1;
                self.aggregator.free_unmatched(at, time_us);
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let stack = || prop_oneof![9 => 0..5u32, 1 => Just(Aggregator::NO_STACK.0)];
    let size = || prop_oneof![0..4u64, 0..1000u64];
    prop_oneof![
        6 => (stack(), size()).prop_map(|(stack, size)| Step::Alloc { stack, size }),
        4 => (stack(), size(), 0..3u64)
            .prop_map(|(stack, size, lived_us)| Step::Temporary { stack, size, lived_us }),
        5 => any::<prop::sample::Index>().prop_map(|choice| Step::Free { choice }),
        3 => (any::<prop::sample::Index>(), stack(), size())
            .prop_map(|(choice, stack, size)| Step::Realloc { choice, stack, size }),
        1 => (stack(), size()).prop_map(|(stack, size)| Step::ReallocUnmatched { stack, size }),
        1 => Just(Step::FreeUnmatched),
        1 => (stack(), size()).prop_map(|(stack, size)| Step::Failed { stack, size }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_aggregator_agrees_with_its_naive_twin(
        steps in vec((0..3u32, 0..3u64, step()), 0..100), origin in any::<bool>(),
    ) {
        let mut both = Both::new(if origin { ReallocAttribution::Origin } else { ReallocAttribution::OwnSite });
        for (thread, passed_us, step) in steps {
            both.step(thread, passed_us, step);
            let (totals, ..) = both.twin.summary(both.time_us);
            prop_assert_eq!(both.aggregator.totals(), totals);
        }
        let end_us = both.time_us + 10;
        let (totals, peak_us, unmatched, sites) = both.twin.summary(end_us);
        let Summary { totals: found, peak_us: found_us, frees_unmatched, sites: found_sites, threads, requests } =
            both.aggregator.finish(end_us);
        prop_assert_eq!((found, found_us, frees_unmatched), (totals, peak_us, unmatched));
        prop_assert_eq!(requests, None);
        let found_sites: BTreeMap<u32, SiteTotals> =
            found_sites.iter().map(|site| (site.stack.0, site.totals)).collect();
        prop_assert_eq!(found_sites, sites);
        for (index, thread) in threads.iter().enumerate() {
            let blocks = both.twin.blocks.iter().filter(|block| block.thread as usize == index);
            prop_assert_eq!(thread.allocations, blocks.clone().count() as u64);
            prop_assert_eq!(thread.bytes, blocks.map(|block| block.size).sum::<u64>());
        }
        prop_assert_eq!(threads.iter().map(|thread| thread.allocations).sum::<u64>(), totals.allocations);
    }

    #[test]
    fn requests_are_those_of_their_stacks_in_the_order_of_sites(
        steps in vec((0..6u32, 0..1000u64, 0..3u8, any::<bool>()), 0..60),
    ) {
        let mut aggregator = Aggregator::new().told_requests();
        let mut expected: BTreeMap<StackId, RequestTotals> = BTreeMap::new();
        for (stack, size, wanted, is_before) in steps {
            let stack = StackId(if stack == 5 { Aggregator::NO_STACK.0 } else { stack });
            let wanted = [None, Some(Request::Zeroed), Some(Request::Aligned)][usize::from(wanted)];
            let say = |aggregator: &mut Aggregator, is_now| {
                wanted.filter(|_| is_now).into_iter().for_each(|wanted| aggregator.requested(stack, wanted, size));
            };
            say(&mut aggregator, is_before);
            aggregator.alloc(ThreadIndex(0), stack, size, 0);
            say(&mut aggregator, !is_before);
            wanted.into_iter().for_each(|wanted| expected.entry(stack).or_default().count(wanted, size));
        }
        let Summary { sites, requests, .. } = aggregator.finish(0);
        let told = |stack: StackId| Some((stack, *expected.get(&stack)?));
        prop_assert_eq!(requests, Some(sites.iter().filter_map(|site| told(site.stack)).collect::<Vec<_>>()));
        prop_assert!(expected.keys().all(|stack| sites.iter().any(|site| site.stack == *stack)));
    }

    #[test]
    fn ids_that_are_not_live_count_as_unmatched(
        steps in vec((0..3u32, any::<bool>(), 0..6u32), 0..60),
    ) {
        let mut aggregator = Aggregator::new();
        let mut unmatched = 0;
        for (thread, resize, block) in steps {
            let (thread, block) = (ThreadIndex(thread), BlockId(block));
            unmatched += u64::from(!aggregator.is_live(block));
            if resize {
                aggregator.realloc(thread, block, StackId(0), 8, 0);
            } else {
                aggregator.free(thread, block, 0);
            }
        }
        prop_assert_eq!(aggregator.finish(0).frees_unmatched, unmatched);
    }
}

/// The reader of a trace sees two events where the collector saw one: ids must not differ.
#[test]
fn a_temporary_has_the_id_that_its_two_events_have() {
    let (mut one, mut two) = (Aggregator::new(), Aggregator::new());
    let thread = ThreadIndex(0);
    let mut live = Vec::new();
    for i in 0..40 {
        let id = one.temporary(thread, StackId(1), i, i, i);
        assert_eq!(two.alloc(thread, StackId(1), i, i), id);
        two.free(thread, id, i);
        if i % 3 == 2 {
            let oldest = live.remove(0);
            one.free(thread, oldest, i);
            two.free(thread, oldest, i);
        } else {
            let ids = [&mut one, &mut two].map(|aggregator| aggregator.alloc(thread, StackId(2), i, i));
            assert_eq!(ids[0], ids[1]);
            live.push(ids[0]);
        }
    }
    assert_eq!(one.finish(50), two.finish(50));
}

#[test]
fn block_ids_are_given_last_freed_first() {
    let mut aggregator = Aggregator::new();
    let thread = ThreadIndex(0);
    let alloc = |aggregator: &mut Aggregator| aggregator.alloc(thread, StackId(0), 1, 0).0;
    assert_eq!([alloc(&mut aggregator), alloc(&mut aggregator), alloc(&mut aggregator)], [0, 1, 2]);
    aggregator.free(thread, BlockId(0), 0);
    aggregator.free(thread, BlockId(2), 0);
    assert_eq!([alloc(&mut aggregator), alloc(&mut aggregator), alloc(&mut aggregator)], [2, 0, 3]);
    assert_eq!(aggregator.realloc(thread, BlockId(1), StackId(0), 5, 0), BlockId(1));
}

#[test]
fn of_equal_peaks_the_last_counts_and_says_what_was_live_then() {
    let mut aggregator = Aggregator::new();
    let thread = ThreadIndex(0);
    let first = aggregator.alloc(thread, StackId(0), 100, 1);
    aggregator.free(thread, first, 2);
    aggregator.alloc(thread, StackId(1), 60, 3);
    let third = aggregator.alloc(thread, StackId(0), 40, 4);
    aggregator.free(thread, third, 5);
    let summary = aggregator.finish(6);
    assert_eq!((summary.peak_us, summary.totals.peak_bytes, summary.totals.peak_blocks), (4, 100, 2));
    let peaks: Vec<(u32, u64)> =
        summary.sites.iter().map(|site| (site.stack.0, site.totals.peak_bytes)).collect();
    assert_eq!(peaks, [(0, 40), (1, 60)]);
}

#[test]
fn a_block_resized_again_and_again_stays_at_its_origin_when_asked() {
    let mut aggregator = Aggregator::with_attribution(ReallocAttribution::Origin);
    let thread = ThreadIndex(0);
    let block = aggregator.alloc(thread, StackId(7), 10, 0);
    let block = aggregator.realloc(thread, block, StackId(8), 20, 1);
    aggregator.realloc(thread, block, StackId(9), 40, 2);
    let summary = aggregator.finish(3);
    assert_eq!(summary.sites.len(), 1);
    let site = summary.sites[0];
    assert_eq!(site.stack, StackId(7));
    let totals = site.totals;
    assert_eq!((totals.allocations, totals.bytes, totals.reallocations), (3, 70, 2));
    assert_eq!((totals.leaked_bytes, totals.leaked_blocks, totals.live_bytes_max), (40, 1, 40));
}

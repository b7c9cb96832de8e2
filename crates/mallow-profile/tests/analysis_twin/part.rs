//! The metrics of a part of a run, from the sets of blocks that are live at each moment.

use super::{Block, Event, Twin};
use mallow_profile::analysis::{Part, Window};
use mallow_profile::{SiteTotals, StackId, ThreadIndex, Totals};
use std::collections::BTreeSet;

/// Whether a block of a thread, a stack and a size is wanted.
pub(crate) type Wanted = fn(ThreadIndex, StackId, u64) -> bool;

/// What was live at the moments that matter.
#[derive(Default)]
struct Moments {
    at_peak: BTreeSet<usize>,
    peak_us: u64,
    /// For each stack its highest live bytes and the blocks then.
    highest: Vec<(u64, u64)>,
    at_end: BTreeSet<usize>,
}

impl Twin {
    pub(crate) fn part(&self, window: Window, wanted: Wanted) -> Part {
        let is_wanted = |at: usize| {
            let Block { thread, stack, size, .. } = self.blocks[at];
            wanted(ThreadIndex(thread), StackId(stack), size)
        };
        let moments = self.moments_of(window, &is_wanted);
        let mut totals = Totals::default();
        let mut sites = Vec::new();
        for stack in self.stacks() {
            let of_stack = |at: &usize| self.blocks[*at].stack == stack && is_wanted(*at);
            let bytes = |blocks: &[usize]| blocks.iter().map(|at| self.blocks[*at].size).sum::<u64>();
            let inside: Vec<usize> = (0..self.blocks.len())
                .filter(|at| of_stack(at) && window.contains(self.blocks[*at].born_us))
                .collect();
            let at_peak: Vec<usize> = moments.at_peak.iter().copied().filter(of_stack).collect();
            let at_end: Vec<usize> = moments.at_end.iter().copied().filter(of_stack).collect();
            let ended_us = self.end_us();
            let count = |is: &dyn Fn(&Block) -> bool| {
                inside.iter().filter(|at| is(&self.blocks[**at])).count() as u64
            };
            let temporary =
                |block: &Block| block.died.is_some_and(|(_, by, since)| by == block.thread && since == 0);
            let lived = |at: &usize| {
                self.blocks[*at].died.map_or(ended_us, |death| death.0) - self.blocks[*at].born_us
            };
            let site = SiteTotals {
                allocations: inside.len() as u64,
                bytes: bytes(&inside),
                reallocations: count(&|block| block.before.is_some()),
                temporary: count(&temporary),
                failed: 0,
                peak_bytes: bytes(&at_peak),
                peak_blocks: at_peak.len() as u64,
                leaked_bytes: bytes(&at_end),
                leaked_blocks: at_end.len() as u64,
                live_bytes_max: moments.highest[stack as usize].0,
                live_blocks_at_max: moments.highest[stack as usize].1,
                lifetime_us_sum: inside.iter().map(lived).sum(),
                first_us: inside.first().map_or(0, |at| self.blocks[*at].born_us),
                last_us: inside.last().map_or(0, |at| self.blocks[*at].born_us),
                ..SiteTotals::default()
            };
            totals.allocations += site.allocations;
            totals.bytes += site.bytes;
            totals.reallocations += site.reallocations;
            totals.temporary += site.temporary;
            totals.peak_bytes += site.peak_bytes;
            totals.peak_blocks += site.peak_blocks;
            totals.leaked_bytes += site.leaked_bytes;
            totals.leaked_blocks += site.leaked_blocks;
            if site != SiteTotals::default() {
                sites.push((Some(StackId(stack)), site));
            }
        }
        let freed = |at: &usize| {
            let block = self.blocks[*at];
            let is_freed = block.died.is_some_and(|death| window.contains(death.0));
            is_freed && block.born_us < window.to_us && is_wanted(*at)
        };
        totals.frees = (0..self.blocks.len()).filter(freed).count() as u64;
        Part { totals, peak_us: moments.peak_us, sites }
    }

    fn moments_of(&self, window: Window, is_wanted: &dyn Fn(usize) -> bool) -> Moments {
        let mut moments = Moments { highest: vec![(0, 0); super::STACKS as usize], ..Moments::default() };
        let mut live: BTreeSet<usize> = BTreeSet::new();
        let (mut peak_bytes, mut is_begun) = (0, false);
        let mut begun = [false; super::STACKS as usize];
        let bytes = |live: &BTreeSet<usize>| live.iter().map(|at| self.blocks[*at].size).sum::<u64>();
        let of_stack = |live: &BTreeSet<usize>, stack: u32| {
            let of = |at: &&usize| self.blocks[**at].stack == stack && is_wanted(**at);
            let of: Vec<u64> = live.iter().filter(of).map(|at| self.blocks[*at].size).collect();
            (of.iter().sum::<u64>(), of.len() as u64)
        };
        let begin = |live: &BTreeSet<usize>, moments: &mut Moments, peak: &mut u64| {
            if !live.is_empty() {
                (moments.at_peak, moments.peak_us, *peak) = (live.clone(), window.from_us, bytes(live));
                for stack in 0..super::STACKS {
                    moments.highest[stack as usize] = of_stack(live, stack);
                }
            }
        };
        for event in self.events.iter().filter(|event| event.time_us() < window.to_us) {
            if event.time_us() >= window.from_us && !std::mem::replace(&mut is_begun, true) {
                begin(&live, &mut moments, &mut peak_bytes);
            }
            let (born, died) = match *event {
                Event::Alloc { block, .. } => (Some(block), None),
                Event::Free { block, .. } => (None, Some(block)),
                Event::Realloc { old, block, .. } => (Some(block), Some(old)),
            };
            if let Some(died) = died {
                live.remove(&died);
            }
            let Some(born) = born else { continue };
            live.insert(born);
            if event.time_us() < window.from_us {
                continue;
            }
            if bytes(&live) >= peak_bytes {
                (moments.at_peak, moments.peak_us, peak_bytes) =
                    (live.clone(), event.time_us(), bytes(&live));
            }
            let stack = self.blocks[born].stack as usize;
            let now = of_stack(&live, stack as u32);
            let highest = &mut moments.highest[stack];
            if is_wanted(born) && (now.0 > highest.0 || !begun[stack] && highest.0 == 0) {
                *highest = now;
            }
            begun[stack] |= is_wanted(born);
        }
        if !is_begun {
            begin(&live, &mut moments, &mut peak_bytes);
        }
        moments.at_end = live;
        moments
    }
}

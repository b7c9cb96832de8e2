//! Pairs allocations and frees, by pointer or by pair of size and stack, and passes them to the sink.

use super::fields::NotThere;
use mallow_profile::{
    Aggregator, BlockId, EventSink, LiveSample, ProcessIndex, ProfileBuilder, SiteTotals, StackId,
    ThreadIndex,
};
use rustc_hash::FxHashMap;

/// The file names no threads.
const THREAD: ThreadIndex = ThreadIndex(0);

/// The events so far, and their sink.
pub(super) struct Events<S> {
    sink: S,
    time_us: u64,
    live_bytes: u64,
    pairs: Vec<Pair>,
    blocks_by_pointer: FxHashMap<u64, (BlockId, StackId, u64)>,
    /// The pair or pointer of the last event if that was an allocation, else 0: heaptrack's own rule, which ignores pair 0.
    latest: u64,
    /// By stack number; stacks without an id have none.
    temporary: FxHashMap<StackId, u64>,
    frees_unmatched: u64,
    /// Allocations at a pointer that was live.
    overlaid: u64,
}

/// Blocks of one size and one stack. Live ones cannot be distinguished, so a free matches the newest.
struct Pair {
    size: u64,
    stack: StackId,
    live: Vec<BlockId>,
}

impl<S: EventSink> Events<S> {
    pub(super) fn new(sink: S) -> Events<S> {
        Events {
            sink,
            time_us: 0,
            live_bytes: 0,
            pairs: Vec::new(),
            blocks_by_pointer: FxHashMap::default(),
            latest: 0,
            temporary: FxHashMap::default(),
            frees_unmatched: 0,
            overlaid: 0,
        }
    }

    pub(super) fn time_us(&self) -> u64 {
        self.time_us
    }

    pub(super) fn set_time(&mut self, time_us: u64) {
        self.time_us = time_us;
    }

    pub(super) fn live_sample(&self) -> LiveSample {
        LiveSample { time_us: self.time_us, live_bytes: self.live_bytes, ..LiveSample::default() }
    }

    pub(super) fn add_pair(&mut self, size: u64, stack: StackId) {
        self.pairs.push(Pair { size, stack, live: Vec::new() });
    }

    pub(super) fn alloc_pair(&mut self, number: u64) -> Result<(), NotThere> {
        let pair = pair(&mut self.pairs, number)?;
        pair.live.push(self.sink.alloc(THREAD, pair.stack, pair.size, self.time_us));
        self.live_bytes = self.live_bytes.wrapping_add(pair.size);
        self.latest = number;
        Ok(())
    }

    pub(super) fn free_pair(&mut self, number: u64) -> Result<(), NotThere> {
        let pair = pair(&mut self.pairs, number)?;
        let is_latest = std::mem::take(&mut self.latest) == number;
        let (stack, size, block) = (pair.stack, pair.size, pair.live.pop());
        match block {
            Some(block) => self.free(block, stack, size, is_latest),
            // Changes no metric; our own export writes such a free between two events that must not be adjacent.
            None if size == 0 => {}
            None => self.free_unmatched(),
        }
        Ok(())
    }

    pub(super) fn alloc_at(&mut self, pointer: u64, size: u64, stack: StackId) {
        let block = self.sink.alloc(THREAD, stack, size, self.time_us);
        self.live_bytes = self.live_bytes.wrapping_add(size);
        self.overlaid += u64::from(self.blocks_by_pointer.insert(pointer, (block, stack, size)).is_some());
        self.latest = pointer;
    }

    pub(super) fn free_at(&mut self, pointer: u64) {
        match self.blocks_by_pointer.remove(&pointer) {
            Some((block, stack, size)) => {
                let is_latest = std::mem::take(&mut self.latest) == pointer;
                self.free(block, stack, size, is_latest);
            }
            // heaptrack skips such a free before it looks for temporaries.
            None => self.free_unmatched(),
        }
    }

    fn free(&mut self, block: BlockId, stack: StackId, size: u64, is_temporary: bool) {
        self.sink.free(THREAD, block, self.time_us);
        self.live_bytes = self.live_bytes.wrapping_sub(size);
        if is_temporary {
            *self.temporary.entry(stack).or_default() += 1;
        }
    }

    fn free_unmatched(&mut self) {
        self.frees_unmatched += 1;
        self.sink.free_unmatched(THREAD, self.time_us);
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let unmatched = (self.frees_unmatched > 0).then(|| {
            format!(
                "{} of blocks whose allocation is not in the file",
                counted(self.frees_unmatched, "free", "frees")
            )
        });
        let overlaid = (self.overlaid > 0).then(|| {
            format!(
                "{} returned an address that was still in use, so a free is missing; the older block is shown as leaked",
                counted(self.overlaid, "allocation", "allocations")
            )
        });
        unmatched.into_iter().chain(overlaid)
    }
}

impl Events<Aggregator> {
    /// Ends the process and stores its metrics.
    pub(super) fn finish(self, builder: &mut ProfileBuilder, process: ProcessIndex) {
        let folded = self.sink.finish(self.time_us);
        let state = builder.process(process);
        state.totals = folded.totals;
        state.totals.temporary = self.temporary.values().sum();
        state.peak_us = folded.peak_us;
        state.frees_unmatched = folded.frees_unmatched;
        for site in folded.sites {
            let temporary = self.temporary.get(&site.stack).copied().unwrap_or(0);
            // The clock is too coarse for lifetimes.
            let totals = SiteTotals { temporary, lifetime_us_sum: 0, ..site.totals };
            let stack = (site.stack != Aggregator::NO_STACK).then_some(site.stack);
            builder.add_site(process, stack, &totals);
        }
    }
}

fn pair(pairs: &mut [Pair], number: u64) -> Result<&mut Pair, NotThere> {
    let index = usize::try_from(number).ok();
    index.and_then(|index| pairs.get_mut(index)).ok_or(NotThere("the number of an earlier `a` line"))
}

/// Formats `1 line`, `2 lines`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

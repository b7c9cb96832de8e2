//! What single threads allocate between two marks of their own: the program asks for it, and is told.
//!
//! A thread may be counted several times at once, one within the other: the outer one has everything that the inner one has. A block
//! belongs to the counts of the thread that allocated it, whichever thread frees it. Only blocks of threads that are being counted are
//! remembered, so counting costs nothing when nobody asks, and little when other threads are busy.

use mallow_profile::{BlockId, RegionMetrics, ThreadIndex};
use rustc_hash::FxHashMap;

/// Counts that are open at a time, over all threads: each event of a counted thread is added to each of its own.
const OPEN_MAX: usize = 256;

/// The counts of a process that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    open: Vec<Open>,
    /// Blocks that were allocated in a count and are live.
    births: FxHashMap<BlockId, Birth>,
    next_serial: u64,
    /// The block that each thread allocated last, while it is counted.
    latest: FxHashMap<ThreadIndex, BlockId>,
}

#[derive(Debug)]
struct Open {
    thread: ThreadIndex,
    first_serial: u64,
    /// How many calls of the thread were lost when it began.
    lost: u64,
    metrics: RegionMetrics,
}

#[derive(Clone, Copy, Debug)]
struct Birth {
    thread: ThreadIndex,
    serial: u64,
    size: u64,
}

impl Counts {
    /// Returns whether no thread is counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        (self.births.len() * 2 * size_of::<(BlockId, Birth)>()) as u64
    }

    /// A thread is counted from now on, if not too many are.
    pub(crate) fn begin(&mut self, thread: ThreadIndex, lost: u64) {
        if self.open.len() < OPEN_MAX {
            let metrics = RegionMetrics::default();
            self.open.push(Open { thread, first_serial: self.next_serial, lost, metrics });
        }
    }

    /// Ends the thread's count that began last, and returns what it has; none when it has not all of it, or when none was open.
    pub(crate) fn end(&mut self, thread: ThreadIndex, lost: u64) -> Option<RegionMetrics> {
        let at = self.open.iter().rposition(|open| open.thread == thread)?;
        let open = self.open.remove(at);
        if !self.open.iter().any(|open| open.thread == thread) {
            self.births.retain(|_, birth| birth.thread != thread);
            self.latest.remove(&thread);
        }
        (open.lost == lost).then_some(open.metrics)
    }

    /// A block was allocated.
    pub(crate) fn born(&mut self, thread: ThreadIndex, block: BlockId, size: u64, by_realloc: bool) {
        let mut is_counted = false;
        for open in self.open.iter_mut().filter(|open| open.thread == thread) {
            is_counted = true;
            open.metrics.born(size, by_realloc);
            open.metrics.peak_bytes = open.metrics.peak_bytes.max(open.metrics.remaining_bytes);
        }
        if is_counted {
            self.births.insert(block, Birth { thread, serial: self.next_serial, size });
            self.next_serial += 1;
            self.latest.insert(thread, block);
        }
    }

    /// A block was freed by a thread.
    pub(crate) fn gone(&mut self, thread: ThreadIndex, block: BlockId) {
        let Some(birth) = self.births.remove(&block) else { return };
        let is_temporary = birth.thread == thread && self.latest.get(&thread) == Some(&block);
        let is_counted = |open: &&mut Open| open.thread == birth.thread && open.first_serial <= birth.serial;
        for open in self.open.iter_mut().filter(is_counted) {
            open.metrics.gone(birth.size, is_temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ThreadIndex = ThreadIndex(0);
    const OTHER: ThreadIndex = ThreadIndex(3);

    #[test]
    fn only_the_calls_of_the_thread_that_asked_are_counted() {
        let mut counts = Counts::default();
        counts.born(ONE, BlockId(0), 1000, false);
        counts.begin(ONE, 0);
        counts.born(OTHER, BlockId(1), 100, false);
        counts.born(ONE, BlockId(2), 10, false);
        counts.born(ONE, BlockId(3), 20, false);
        counts.gone(ONE, BlockId(3));
        // A block from before, one of another thread, and one of its own that another thread frees.
        [BlockId(0), BlockId(1)].into_iter().for_each(|block| counts.gone(ONE, block));
        counts.born(ONE, BlockId(0), 5, true);
        counts.gone(OTHER, BlockId(2));
        let expected = RegionMetrics {
            allocations: 3,
            bytes: 35,
            reallocations: 1,
            peak_bytes: 30,
            remaining_blocks: 1,
            remaining_bytes: 5,
            temporary: 1,
        };
        assert_eq!(counts.end(ONE, 0), Some(expected));
        assert!(counts.is_empty() && counts.held_bytes() == 0);
        assert_eq!(counts.end(ONE, 0), None);
    }

    #[test]
    fn an_outer_count_has_what_an_inner_one_has() {
        let mut counts = Counts::default();
        counts.begin(ONE, 0);
        counts.born(ONE, BlockId(0), 10, false);
        counts.begin(ONE, 0);
        counts.born(ONE, BlockId(1), 20, false);
        counts.gone(ONE, BlockId(0));
        let inner = counts.end(ONE, 0).unwrap_or_default();
        assert_eq!(
            (inner.allocations, inner.bytes, inner.remaining_bytes, inner.peak_bytes),
            (1, 20, 20, 20)
        );
        let outer = counts.end(ONE, 0).unwrap_or_default();
        assert_eq!(
            (outer.allocations, outer.bytes, outer.remaining_bytes, outer.peak_bytes),
            (2, 30, 20, 30)
        );
    }

    #[test]
    fn what_lost_calls_is_no_count() {
        let mut counts = Counts::default();
        counts.begin(ONE, 7);
        assert_eq!(counts.end(ONE, 8), None);
        (0..OPEN_MAX).for_each(|_| counts.begin(OTHER, 0));
        counts.begin(ONE, 0);
        assert_eq!(counts.end(ONE, 0), None);
    }
}

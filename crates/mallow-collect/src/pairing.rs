//! Events into the profile and the trace: frees find the block that they free.
//!
//! Events arrive in the order of their time stamps. For one address the truth alternates: allocated, freed,
//! allocated, freed. Two threads on two processors may still be seen the wrong way round by a few
//! nanoseconds, because a processor may read its counter early, so:
//!
//! - a free of an address where nothing lives, or the begin of its `realloc`, waits a moment for its
//!   allocation to turn up;
//! - an allocation where a block still lives sets the old block aside for a moment, and a free of that
//!   address is then the old block's.
//!
//! Either way each free meets its own block, and what never resolves is counted as a free without allocation,
//! or as a block that went unseen.

mod mappings;
mod reallocations;
mod waiting;

use crate::live::{LiveBlocks, Located, Place};
use crate::mapped::MappedRanges;
use crate::scopes::Scopes;
use mallow_profile::{Aggregator, BlockId, RegionMetrics, Regions, Request, StackId, ThreadIndex};
use mallow_trace::{EventEncoder, want_large_pages};
pub(crate) use mappings::MappingEvent;
use rustc_hash::FxHashMap;
use std::ops::Range;
use waiting::{PendingFree, Reallocating, WAITING_BYTES};

/// Pairs the events of one process.
#[derive(Debug)]
pub(crate) struct Pairing {
    live: LiveBlocks,
    fold: Aggregator,
    /// None when events are not kept.
    events: Option<Box<EventEncoder>>,
    /// `None` if the program's regions are not requested.
    regions: Option<Box<Regions>>,
    /// `None` if metrics of single threads are not requested.
    scopes: Option<Box<Scopes>>,
    last_us: u64,
    /// Per thread, the blocks whose `realloc` has begun, a handler's upon the one that it interrupted.
    reallocating: Vec<Vec<Reallocating>>,
    pending_frees: FxHashMap<u64, PendingFree>,
    /// Blocks that another one took the place of, and when.
    displaced: FxHashMap<u64, (BlockId, u64)>,
    /// Such blocks whose free did not turn up.
    freed_unseen: u64,
    /// What the program has mapped itself.
    mapped: MappedRanges,
    /// Per thread, the calls that may take mappings away and have begun, a handler's upon the one that it interrupted.
    unmapping: Vec<Vec<mappings::Begun>>,
}

impl Pairing {
    /// A process that has done nothing yet.
    pub(crate) fn new(keep_events: bool) -> Pairing {
        Pairing {
            live: LiveBlocks::new(),
            fold: Aggregator::new().advised(want_large_pages).told_requests(),
            events: keep_events.then(Box::default),
            regions: None,
            scopes: None,
            last_us: 0,
            reallocating: Vec::new(),
            pending_frees: FxHashMap::default(),
            displaced: FxHashMap::default(),
            freed_unseen: 0,
            mapped: MappedRanges::default(),
            unmapping: Vec::new(),
        }
    }

    /// Returns the sums up to now.
    pub(crate) fn fold(&self) -> &Aggregator {
        &self.fold
    }

    /// Returns about how many bytes of memory this holds while the process runs, without the aggregator's.
    pub(crate) fn held_bytes(&self) -> u64 {
        let waiting = self.pending_frees.len() + self.displaced.len();
        let threads = self.reallocating.len() * size_of::<Vec<Reallocating>>();
        let regions = self.regions.as_ref().map_or(0, |regions| regions.held_bytes());
        let counts = self.scopes.as_ref().map_or(0, |scopes| scopes.counts.held_bytes());
        let blocks = self.live.held_bytes() + self.mapped.held_bytes() + self.fold.held_bytes()
            - self.fold.kept_bytes();
        blocks + regions + counts + (waiting * WAITING_BYTES + threads) as u64
    }

    /// From now on the program's regions are counted.
    pub(crate) fn watch_regions(&mut self) {
        self.regions = Some(Box::default());
    }

    /// The program's regions, when they are counted.
    pub(crate) fn regions(&mut self) -> Option<&mut Regions> {
        self.regions.as_deref_mut()
    }

    /// Returns the metrics of single threads, which are counted from now on at the latest.
    pub(crate) fn scopes(&mut self) -> &mut Scopes {
        self.scopes.get_or_insert_default()
    }

    /// A thread is counted from now on. The argument is how many of its calls are lost.
    pub(crate) fn begin_count(&mut self, thread: ThreadIndex, lost: u64) {
        self.scopes().counts.begin(thread, lost);
    }

    /// Ends the count of a thread that began last; none when there is none, or when it is not all of it.
    pub(crate) fn end_count(&mut self, thread: ThreadIndex, lost: u64) -> Option<RegionMetrics> {
        let scopes = self.scopes.as_deref_mut()?;
        let counted = scopes.counts.end(thread, lost);
        if scopes.is_idle() {
            self.scopes = None;
        }
        counted
    }

    /// Returns the frees of blocks whose allocation was not seen. No more events may come: those that still wait are among them.
    pub(crate) fn frees_unmatched(&self) -> u64 {
        let waiting = self.pending_frees.values().filter(|free| !free.by_realloc).count() as u64;
        self.fold.frees_unmatched() + waiting
    }

    /// Returns the blocks whose free was not seen, as another one was allocated where they were. No more events may come.
    pub(crate) fn freed_unseen(&self) -> u64 {
        self.freed_unseen + self.displaced.len() as u64
    }

    /// The events that are not in the trace yet.
    pub(crate) fn events(&mut self) -> Option<&mut EventEncoder> {
        self.events.as_deref_mut()
    }

    /// The time of the last event.
    pub(crate) fn last_us(&self) -> u64 {
        self.last_us
    }

    /// Asks for the memory that an event at `address` will want, and tells where it is.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: u64) -> Place {
        self.live.prefetch(address)
    }

    /// The same one step later, for an event that ends the block at an address: prefetches the profile's entry of the
    /// block.
    #[inline(always)]
    pub(crate) fn prefetch_block(&self, at: Located) {
        if let Some(block) = self.live.get(at) {
            self.fold.prefetch(block);
        }
    }

    /// Threads report in the order of stamps, more or less: the trace's times never decrease.
    #[inline(always)]
    fn advance(&mut self, time_us: u64) -> u64 {
        self.last_us = self.last_us.max(time_us);
        self.last_us
    }

    #[inline(always)]
    pub(crate) fn alloc(
        &mut self,
        thread: ThreadIndex,
        at: impl Into<Located>,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) {
        let block = self.born(thread, stack, size, time_us);
        self.place(thread, at.into(), block);
    }

    /// The block of an allocation is requested in another way than by its size alone.
    pub(crate) fn requested(&mut self, stack: StackId, request: Request, size: u64) {
        self.fold.requested(stack, request, size);
    }

    #[inline(always)]
    fn born(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        let time_us = self.advance(time_us);
        let block = self.fold.alloc(thread, stack, size, time_us);
        if let Some(events) = &mut self.events {
            events.alloc(thread.0, block.0, stack.0, size, time_us);
        }
        if let Some(regions) = &mut self.regions {
            regions.born(block, stack, size, false);
        }
        if let Some(scopes) = &mut self.scopes {
            scopes.born(thread, block, stack, size, time_us);
        }
        block
    }

    /// Returns whether nothing is known of an address, and nothing waits that could be about it.
    #[inline(always)]
    pub(crate) fn is_free(&self, at: Located) -> bool {
        self.pending_frees.is_empty() && self.displaced.is_empty() && self.live.get(at).is_none()
    }

    /// As [`LiveBlocks::met_bytes_in`].
    pub(crate) fn met_bytes_in(&self, range: &Range<u64>) -> u64 {
        self.live.met_bytes_in(range)
    }

    /// A block of an address that [`Pairing::is_free`] is allocated, and freed by the thread's next event, at `freed_us`: it needs no place in
    /// the table.
    #[inline(always)]
    pub(crate) fn temporary(
        &mut self,
        thread: ThreadIndex,
        stack: StackId,
        size: u64,
        time_us: u64,
        freed_us: u64,
    ) {
        let time_us = self.advance(time_us);
        let freed_us = self.advance(freed_us);
        let block = self.fold.temporary(thread, stack, size, time_us, freed_us);
        if let Some(events) = &mut self.events {
            events.temporary(thread.0, block.0, stack.0, size, [time_us, freed_us]);
        }
        if let Some(regions) = &mut self.regions {
            regions.born(block, stack, size, false);
            regions.gone(block, true);
        }
        if let Some(scopes) = &mut self.scopes {
            scopes.born(thread, block, stack, size, time_us);
            scopes.gone(thread, block, freed_us);
        }
    }

    #[inline(always)]
    fn place(&mut self, thread: ThreadIndex, at: Located, block: BlockId) {
        if let Some(old) = self.live.insert(at, block) {
            self.overlap(at.address(), old);
        }
        if !self.pending_frees.is_empty() {
            self.resolve_pending(thread, at.address());
        }
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, thread: ThreadIndex, at: impl Into<Located>, time_us: u64) {
        let (at, time_us) = (at.into(), self.advance(time_us));
        match self.take(at) {
            Some(block) => self.free_block(thread, block, time_us),
            None => self.free_unknown(thread, at.address(), time_us),
        }
    }

    /// Removes and returns the block at an address.
    #[inline(always)]
    fn take(&mut self, at: Located) -> Option<BlockId> {
        if !self.displaced.is_empty()
            && let Some(block) = self.take_displaced(at.address())
        {
            return Some(block);
        }
        self.live.remove(at)
    }

    #[inline(always)]
    fn free_block(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        if let Some(regions) = &mut self.regions {
            regions.gone(block, self.fold.is_latest(thread, block));
        }
        self.fold.free(thread, block, time_us);
        if let Some(events) = &mut self.events {
            events.free(thread.0, block.0, time_us);
        }
        if let Some(scopes) = &mut self.scopes {
            scopes.gone(thread, block, time_us);
        }
    }

    pub(crate) fn failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
        let time_us = self.advance(time_us);
        self.fold.failed(thread, stack, size, time_us);
        if let Some(events) = &mut self.events {
            events.failed(thread.0, stack.0, size, time_us);
        }
    }

    fn unmatched(&mut self, thread: ThreadIndex, time_us: u64) {
        self.fold.free_unmatched(thread, time_us);
        if let Some(events) = &mut self.events {
            events.free_unmatched(thread.0, time_us);
        }
    }

    /// No more events will come: resolves pending events, and returns the profile, and what is not needed any more.
    pub(crate) fn finish(
        mut self,
        end_us: u64,
        flush: impl FnOnce(&mut EventEncoder),
    ) -> (mallow_profile::Ended, Box<dyn Send>) {
        let time_us = self.last_us;
        for (_, free) in std::mem::take(&mut self.pending_frees) {
            self.give_up(free, time_us);
        }
        for (_, (block, _)) in std::mem::take(&mut self.displaced) {
            self.free_block(ThreadIndex(0), block, time_us);
        }
        // A realloc that never ended leaves its block as it was: still live.
        if let Some(events) = &mut self.events {
            flush(events);
        }
        let (ended, counted) = self.fold.take_apart(end_us.max(time_us));
        (ended, Box::new((counted, self.live)))
    }
}

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

use crate::live::{LiveBlocks, Located, Place};
use crate::mapped::MappedRanges;
use crate::scopes::Scopes;
use mallow_profile::{Aggregator, BlockId, RegionMetrics, Regions, Request, StackId, ThreadIndex};
use mallow_trace::{EventEncoder, want_large_pages};
pub(crate) use mappings::MappingEvent;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How long a free waits for an allocation by another thread, in microseconds. CPUs disagree by nanoseconds; a longer
/// wait would mistake a later allocation at the same address for the one that was freed.
const REORDER_WINDOW_US: u64 = 3;

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

/// A free that was seen before its allocation.
#[derive(Clone, Copy, Debug)]
struct PendingFree {
    thread: ThreadIndex,
    time_us: u64,
    /// A `realloc` that has begun and will say itself what became of the block, or a free.
    by_realloc: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Reallocating {
    #[default]
    Nothing,
    Block(u64, BlockId),
    Unknown(u64),
}

/// The size of an entry in a table of pending events.
const WAITING_BYTES: usize = 64;
/// Ends of blocks that wait for their allocations, and blocks that wait for their ends. Processors disagree by nanoseconds, in which no more can happen.
const WAITING_MAX: usize = 1024;
/// Handlers within handlers that are followed; what lies deeper is damage.
const REALLOCATIONS_NESTED_MAX: usize = 64;

/// Removes entries from a full table that have waited too long; all, if that makes no room: time stands still for a
/// program that writes invalid data.
fn no_longer_waiting<T: Copy>(
    waiting: &mut FxHashMap<u64, T>,
    since_us: impl Fn(&T) -> u64,
    now_us: u64,
) -> Vec<T> {
    let is_late = |one: &T| now_us.saturating_sub(since_us(one)) > REORDER_WINDOW_US;
    let mut late: Vec<T> = waiting.extract_if(|_, one| is_late(one)).map(|(_, one)| one).collect();
    if waiting.len() > WAITING_MAX / 2 {
        late.extend(std::mem::take(waiting).into_values());
    }
    late
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

    /// A `realloc` begins; `is_nested` says that a signal handler called it during another one of the same thread.
    pub(crate) fn realloc_begin(
        &mut self,
        thread: ThreadIndex,
        at: impl Into<Located>,
        is_nested: bool,
        time_us: u64,
    ) {
        let (at, time_us) = (at.into(), self.advance(time_us));
        let address = at.address();
        let index = thread.0 as usize;
        if self.reallocating.len() <= index {
            self.reallocating.resize_with(index + 1, Vec::new);
        }
        // One before whose end was lost: its block is where it was.
        while (!is_nested && !self.reallocating[index].is_empty())
            || self.reallocating[index].len() >= REALLOCATIONS_NESTED_MAX
        {
            if let Reallocating::Block(address, block) = self.begun(thread) {
                self.place(thread, address.into(), block);
            }
        }
        let state = match self.take(at) {
            Some(block) => Reallocating::Block(address, block),
            None => {
                self.wait_for(address, PendingFree { thread, time_us, by_realloc: true });
                Reallocating::Unknown(address)
            }
        };
        self.reallocating[index].push(state);
    }

    /// Returns how the thread's innermost `realloc` began; nothing waits for its block any more.
    fn begun(&mut self, thread: ThreadIndex) -> Reallocating {
        let state = self.reallocating.get_mut(thread.0 as usize).and_then(Vec::pop).unwrap_or_default();
        if let Reallocating::Unknown(address) = state
            && self.pending_frees.get(&address).is_some_and(|free| free.by_realloc && free.thread == thread)
        {
            self.pending_frees.remove(&address);
        }
        state
    }

    pub(crate) fn realloc_done(
        &mut self,
        thread: ThreadIndex,
        at: impl Into<Located>,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) {
        let time_us = self.advance(time_us);
        let block = match self.begun(thread) {
            Reallocating::Block(_, old) => self.moved(thread, old, stack, size, time_us),
            Reallocating::Unknown(_) | Reallocating::Nothing => {
                let block = self.fold.realloc_unmatched(thread, stack, size, time_us);
                if let Some(events) = &mut self.events {
                    events.realloc_unmatched(thread.0, block.0, stack.0, size, time_us);
                }
                self.moved_to(thread, None, (block, stack, size), time_us);
                block
            }
        };
        self.place(thread, at.into(), block);
    }

    /// A live block becomes one of another size.
    fn moved(
        &mut self,
        thread: ThreadIndex,
        old: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        if let Some(regions) = &mut self.regions {
            regions.gone(old, self.fold.is_latest(thread, old));
        }
        let block = self.fold.realloc(thread, old, stack, size, time_us);
        if let Some(events) = &mut self.events {
            events.realloc(thread.0, old.0, block.0, stack.0, size, time_us);
        }
        self.moved_to(thread, Some(old), (block, stack, size), time_us);
        block
    }

    /// Tells the regions and the counts of threads of it.
    fn moved_to(
        &mut self,
        thread: ThreadIndex,
        before: Option<BlockId>,
        (block, stack, size): (BlockId, StackId, u64),
        time_us: u64,
    ) {
        if let Some(regions) = &mut self.regions {
            regions.born(block, stack, size, true);
        }
        if let Some(scopes) = &mut self.scopes {
            scopes.moved(thread, before, (block, stack, size), time_us);
        }
    }

    pub(crate) fn realloc_freed(&mut self, thread: ThreadIndex, time_us: u64) {
        let time_us = self.advance(time_us);
        match self.begun(thread) {
            Reallocating::Block(_, block) => self.free_block(thread, block, time_us),
            Reallocating::Unknown(_) => self.unmatched(thread, time_us),
            Reallocating::Nothing => {}
        }
    }

    pub(crate) fn realloc_failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
        if let Reallocating::Block(address, block) = self.begun(thread) {
            self.place(thread, address.into(), block);
        }
        self.failed(thread, stack, size, time_us);
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

    #[cold]
    fn free_unknown(&mut self, thread: ThreadIndex, address: u64, time_us: u64) {
        self.wait_for(address, PendingFree { thread, time_us, by_realloc: false });
    }

    #[cold]
    fn wait_for(&mut self, address: u64, free: PendingFree) {
        let time_us = free.time_us;
        let mut late = Vec::from_iter(self.pending_frees.insert(address, free));
        if self.pending_frees.len() > WAITING_MAX {
            let given_up = no_longer_waiting(&mut self.pending_frees, |free| free.time_us, time_us);
            late.extend(given_up);
        }
        late.into_iter().for_each(|free| self.give_up(free, time_us));
    }

    /// Nothing will turn up for this one. A `realloc` is attributed when it ends.
    fn give_up(&mut self, free: PendingFree, time_us: u64) {
        if !free.by_realloc {
            self.unmatched(free.thread, time_us);
        }
    }

    /// The allocation that an end was waiting for, unless that has waited too long to be its own.
    #[cold]
    fn resolve_pending(&mut self, allocating: ThreadIndex, address: u64) {
        let Some(free) = self.pending_frees.remove(&address) else { return };
        let now_us = self.last_us;
        if free.thread == allocating || now_us.saturating_sub(free.time_us) > REORDER_WINDOW_US {
            self.give_up(free, now_us);
        } else if let Some(block) = self.live.remove(address) {
            if free.by_realloc {
                let begun = self.reallocating.get_mut(free.thread.0 as usize).into_iter().flatten();
                let waiting =
                    |begun: &&mut Reallocating| matches!(begun, Reallocating::Unknown(at) if *at == address);
                match begun.rev().find(waiting) {
                    Some(begun) => *begun = Reallocating::Block(address, block),
                    // Its end was lost: the block is where it was.
                    None => self.place(free.thread, address.into(), block),
                }
            } else {
                self.free_block(free.thread, block, now_us);
            }
        }
    }

    /// A block is allocated where another one is live: the old one's free is still to come, or was never seen.
    #[cold]
    fn overlap(&mut self, address: u64, old: BlockId) {
        let time_us = self.last_us;
        if let Some((older, _)) = self.displaced.insert(address, (old, time_us)) {
            self.was_freed_unseen(older, time_us);
        }
        if self.displaced.len() > WAITING_MAX {
            for (block, _) in no_longer_waiting(&mut self.displaced, |(_, since_us)| *since_us, time_us) {
                self.was_freed_unseen(block, time_us);
            }
        }
    }

    fn was_freed_unseen(&mut self, block: BlockId, time_us: u64) {
        self.freed_unseen += 1;
        self.free_block(ThreadIndex(0), block, time_us);
    }

    /// Returns the block that was set aside at an address. One that has waited too long was freed unseen, and the
    /// current event belongs to its successor.
    #[cold]
    fn take_displaced(&mut self, address: u64) -> Option<BlockId> {
        let (block, since_us) = self.displaced.remove(&address)?;
        let now_us = self.last_us;
        if now_us.saturating_sub(since_us) <= REORDER_WINDOW_US {
            return Some(block);
        }
        self.was_freed_unseen(block, now_us);
        None
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

//! One process's events, added up into metrics while they pass.
//!
//! Memory is bounded by the live blocks (16 bytes each) and the distinct stacks that allocated (two cache
//! lines each); no event is kept. The collector runs an aggregator beside the program, and the trace reader runs the
//! same code over stored events, so a block has the same [`BlockId`] in both: ids are slots of a slab whose
//! free list is last in, first out.
//!
//! An aggregator never panics on events that contradict each other; a free of a block that is not live counts as
//! unmatched.

mod ended;
mod grow;
mod site;
mod slab;

use crate::{Request, RequestTotals, SiteTotals, StackId, Totals};
pub use ended::Ended;
use site::Sites;
use slab::{NO_BLOCK, Slab};

/// A thread of one process: dense, in the order of first calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadIndex(pub u32);

/// A live block's slot. The most recently freed slot is reused first, else the next new one, so the same events yield
/// the same ids wherever they are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// To which stack a `realloc` is attributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReallocAttribution {
    /// To the stack that called `realloc`: as in the counting rules.
    #[default]
    OwnSite,
    /// To the stack that allocated the block first, however often it was resized since: as in DHAT.
    Origin,
}

/// Called with the start and size of new memory, before any of it is touched: it may request large pages. This crate
/// calls no system itself.
pub type MemoryAdvice = fn(start: *mut u8, bytes: usize);

/// The running metrics of one process.
#[derive(Debug, Default)]
pub struct Aggregator {
    attribution: ReallocAttribution,
    slab: Slab,
    sites: Sites,
    threads: Vec<ThreadState>,
    /// All metrics except the leaked ones, which are the live ones below.
    totals: Totals,
    live_bytes: u64,
    live_blocks: u64,
    peak_us: u64,
    /// Goes up with each new peak; see [`site`].
    peak_serial: u64,
    frees_unmatched: u64,
    /// Of those sites that have made more than plain requests ([`Sites::request_of`]); none where the events do not tell.
    requests: Option<Vec<RequestTotals>>,
}

/// The result of an aggregator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The process's metrics.
    pub totals: Totals,
    /// When live bytes were highest, in the clock of the events.
    pub peak_us: u64,
    /// Frees of blocks whose allocation was not seen; they are among `totals.frees`.
    pub frees_unmatched: u64,
    /// One entry for each stack that made an allocating call, in the order of first calls.
    pub sites: Vec<SiteSummary>,
    /// By [`ThreadIndex`].
    pub threads: Vec<ThreadSummary>,
    /// How blocks were requested, of each stack that has made more than plain requests, in the order of `sites`; none where the events do not tell.
    pub requests: Option<Vec<(StackId, RequestTotals)>>,
}

/// What one stack allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteSummary {
    /// The stack as the events named it; [`Aggregator::NO_STACK`] when none was taken.
    pub stack: StackId,
    /// Its metrics.
    pub totals: SiteTotals,
}

/// The live blocks of one stack at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSite {
    /// The stack as the events named it; [`Aggregator::NO_STACK`] when none was taken.
    pub stack: StackId,
    /// Live bytes.
    pub bytes: u64,
    /// Live blocks.
    pub blocks: u32,
    /// Allocations so far.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
}

/// What one thread allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Its successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct ThreadState {
    metrics: ThreadSummary,
    /// The block of its latest allocation, by which temporaries are recognised. Another thread may have reused the
    /// slot since; the slab says so.
    latest: BlockId,
}

/// One allocation that succeeded.
#[derive(Clone, Copy)]
struct Allocation {
    thread: ThreadIndex,
    size: u64,
    time_us: u64,
}

impl Aggregator {
    /// The id of a missing stack in the events.
    pub const NO_STACK: StackId = StackId(u32::MAX);

    /// A process that has done nothing yet.
    pub fn new() -> Aggregator {
        Aggregator::default()
    }

    /// The same, with a choice of where reallocations are attributed.
    pub fn with_attribution(attribution: ReallocAttribution) -> Aggregator {
        Aggregator { attribution, ..Aggregator::default() }
    }

    /// The same, whose events say how blocks are requested: see [`Aggregator::requested`].
    #[must_use]
    pub fn told_requests(mut self) -> Aggregator {
        self.requests = Some(Vec::new());
        self
    }

    /// The same, with advice on its memory.
    #[must_use]
    pub fn advised(mut self, advice: MemoryAdvice) -> Aggregator {
        self.slab.advise = Some(advice);
        self.sites.advise = Some(advice);
        self
    }

    /// Returns the live blocks of each stack, in the order of first calls; stacks without live blocks are omitted.
    pub fn live_sites(&self) -> impl Iterator<Item = LiveSite> {
        self.sites.live()
    }

    /// A successful allocating call. Stack ids should be dense: a table is indexed by them.
    #[inline]
    pub fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        let site = self.sites.index_of(stack);
        self.add(site, Allocation { thread, size, time_us })
    }

    /// Says how the block of an allocation was requested that comes next, or came; plain requests are not said.
    #[inline]
    pub fn requested(&mut self, stack: StackId, request: Request, size: u64) {
        if let Some(requests) = &mut self.requests {
            let site = self.sites.index_of(stack);
            let at = self.sites.request_of(site, requests.len());
            if at == requests.len() {
                requests.push(RequestTotals::default());
            }
            requests[at].count(request, size);
        }
    }

    /// A block is freed, by `free` or by `realloc` to no size.
    #[inline]
    pub fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        if self.remove(thread, block, time_us).is_none() {
            self.free_unmatched(thread, time_us);
        }
    }

    /// An allocation whose block the same thread frees at `freed_us`, with nothing between: [`Aggregator::alloc`] and [`Aggregator::free`] in one, without the
    /// block's slot being written.
    #[inline]
    pub fn temporary(
        &mut self,
        thread: ThreadIndex,
        stack: StackId,
        size: u64,
        time_us: u64,
        freed_us: u64,
    ) -> BlockId {
        let Some(block) = self.slab.next() else {
            let block = self.alloc(thread, stack, size, time_us);
            self.free(thread, block, freed_us);
            return block;
        };
        self.count(Allocation { thread, size, time_us }, block);
        self.totals.frees += 1;
        self.totals.temporary += 1;
        let site = self.sites.index_of(stack);
        let site = self.sites.at(site);
        site.pass(size, time_us, freed_us, self.peak_serial);
        let bytes = self.live_bytes.wrapping_add(size);
        if bytes >= self.totals.peak_bytes {
            self.totals.peak_bytes = bytes;
            self.totals.peak_blocks = self.live_blocks + 1;
            self.peak_us = time_us;
            self.peak_serial += 1;
            site.passed_peak(size, self.peak_serial);
        }
        block
    }

    /// A successful `realloc` of a live block to a size above 0: a free, then an allocation.
    pub fn realloc(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        let Some(origin) = self.remove(thread, block, time_us) else {
            return self.realloc_unmatched(thread, stack, size, time_us);
        };
        let site = match self.attribution {
            ReallocAttribution::OwnSite => self.sites.index_of(stack),
            ReallocAttribution::Origin => origin,
        };
        self.totals.reallocations += 1;
        self.sites.at(site).reallocations += 1;
        self.add(site, Allocation { thread, size, time_us })
    }

    /// A free of a block whose allocation was not seen.
    pub fn free_unmatched(&mut self, _thread: ThreadIndex, _time_us: u64) {
        self.totals.frees += 1;
        self.frees_unmatched += 1;
    }

    /// A successful `realloc` of a block whose allocation was not seen.
    pub fn realloc_unmatched(
        &mut self,
        thread: ThreadIndex,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        self.free_unmatched(thread, time_us);
        let site = self.sites.index_of(stack);
        self.totals.reallocations += 1;
        self.sites.at(site).reallocations += 1;
        self.add(site, Allocation { thread, size, time_us })
    }

    /// An allocating call that failed. It has a site, but moves none of its other metrics.
    pub fn failed(&mut self, _thread: ThreadIndex, stack: StackId, _size: u64, _time_us: u64) {
        self.totals.failed += 1;
        let site = self.sites.index_of(stack);
        self.sites.at(site).failed += 1;
    }

    /// Returns the metrics so far; the leaked ones are what is live now.
    pub fn totals(&self) -> Totals {
        Totals { leaked_bytes: self.live_bytes, leaked_blocks: self.live_blocks, ..self.totals }
    }

    /// Returns the frees of blocks whose allocation was not seen, up to now.
    pub fn frees_unmatched(&self) -> u64 {
        self.frees_unmatched
    }

    /// Returns the requested bytes that are live now.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Returns the number of blocks that are live now.
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// Returns about how many bytes of memory this holds.
    pub fn held_bytes(&self) -> u64 {
        self.slab.held_bytes() + self.kept_bytes()
    }

    /// About how many bytes stay of it at the end, when blocks are no longer of interest.
    pub fn kept_bytes(&self) -> u64 {
        // Itself, and what is made of it.
        const REQUEST_BYTES: usize = size_of::<RequestTotals>() + size_of::<(StackId, RequestTotals)>();
        let requests = self.requests.as_ref().map_or(0, |requests| requests.len() * REQUEST_BYTES);
        self.sites.held_bytes() + (self.threads.len() * size_of::<ThreadState>() + requests) as u64
    }

    /// Returns whether a live block is a thread's latest allocation, so that it is temporary if the thread frees it
    /// now.
    pub fn is_latest(&self, thread: ThreadIndex, block: BlockId) -> bool {
        let latest = self.threads.get(thread.0 as usize).map_or(NO_BLOCK, |state| state.latest);
        // Ids are used again: the block may be another thread's by now.
        latest == block && self.slab.thread_of(block) == Some(thread)
    }

    /// Returns whether a block is live. Ids from a damaged file need not be.
    pub fn is_live(&self, block: BlockId) -> bool {
        self.slab.is_live(block)
    }

    /// Hints that the block will be freed soon: its slot is loaded while other events are added.
    #[inline(always)]
    pub fn prefetch(&self, block: BlockId) {
        self.slab.prefetch(block);
    }

    /// Ends the process: blocks that are live now are leaked, and have lived until `end_us`.
    pub fn finish(self, end_us: u64) -> Summary {
        self.end(end_us).into_summary()
    }

    /// As [`Aggregator::finish`], with its sites left as they were counted.
    pub fn end(self, end_us: u64) -> Ended {
        self.take_apart(end_us).0
    }

    /// As [`Aggregator::end`]. Returns also what is not needed any more: to drop its memory, tens of MB, takes milliseconds.
    pub fn take_apart(self, end_us: u64) -> (Ended, Box<dyn Send>) {
        let (totals, advise) = (self.totals(), self.slab.advise);
        let (sites, by_stack) = self.sites.end(self.peak_serial, end_us);
        let ended = Ended {
            totals,
            peak_us: self.peak_us,
            frees_unmatched: self.frees_unmatched,
            threads: self.threads.iter().map(|thread| thread.metrics).collect(),
            requests: self.requests,
            sites,
            advise,
        };
        (ended, Box::new((self.slab, by_stack)))
    }

    #[inline]
    fn add(&mut self, site: u32, allocation: Allocation) -> BlockId {
        let Allocation { thread, size, time_us } = allocation;
        let block = self.slab.insert(size, site, thread);
        self.count(allocation, block);
        self.live_blocks += 1;
        self.live_bytes = self.live_bytes.wrapping_add(size);
        self.sites.at(site).add(size, time_us, self.peak_serial);
        if self.live_bytes >= self.totals.peak_bytes {
            self.totals.peak_bytes = self.live_bytes;
            self.totals.peak_blocks = self.live_blocks;
            self.peak_us = time_us;
            self.peak_serial += 1;
        }
        block
    }

    /// Updates the metrics that only increase.
    #[inline(always)]
    fn count(&mut self, allocation: Allocation, block: BlockId) {
        let state = self.thread(allocation.thread);
        state.latest = block;
        state.metrics.allocations += 1;
        state.metrics.bytes = state.metrics.bytes.wrapping_add(allocation.size);
        self.totals.allocations += 1;
        self.totals.bytes = self.totals.bytes.wrapping_add(allocation.size);
    }

    /// Removes a block and returns the site to which it was attributed; `None` if it is not live.
    #[inline]
    fn remove(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) -> Option<u32> {
        let gone = self.slab.remove(block)?;
        let latest = self.threads.get(thread.0 as usize).map_or(NO_BLOCK, |state| state.latest);
        let temporary = gone.thread == thread.0 && latest == block;
        self.totals.frees += 1;
        self.totals.temporary += u64::from(temporary);
        self.live_blocks -= 1;
        self.live_bytes = self.live_bytes.wrapping_sub(gone.size);
        self.sites.at(gone.site).remove(gone.size, time_us, self.peak_serial, temporary);
        Some(gone.site)
    }

    #[inline]
    fn thread(&mut self, thread: ThreadIndex) -> &mut ThreadState {
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.threads
                .resize(index + 1, ThreadState { metrics: ThreadSummary::default(), latest: NO_BLOCK });
        }
        &mut self.threads[index]
    }
}

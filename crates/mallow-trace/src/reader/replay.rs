//! Stored events, folded again or handed out. Ids from a file are checked before anything is indexed by them.

use super::gather::{Parts, ProcessParts};
use super::scan::{Found, Scan};
use crate::TraceError;
use crate::{ChunkKind, EventDecoder, EventVisitor, want_large_pages};
use mallow_base::Micros;
use mallow_profile::{Aggregator, BlockId, ProcessIndex, ReallocAttribution, StackId, ThreadIndex};
use std::io::{Read, Seek};

/// Something that a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds since the recording's start.
    pub time_us: u64,
    /// Index into the process's threads.
    pub thread: ThreadIndex,
    /// What.
    pub kind: EventKind,
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "block, stack and size mean what they say; size is in requested bytes")]
pub enum EventKind {
    /// It allocated a block.
    Alloc { block: BlockId, stack: Option<StackId>, size: u64 },
    /// It freed a block.
    Free { block: BlockId },
    /// It resized a block, which was freed and allocated anew.
    Realloc { freed: BlockId, block: BlockId, stack: Option<StackId>, size: u64 },
    /// It resized a block whose allocation was not seen.
    ReallocUnmatched { block: BlockId, stack: Option<StackId>, size: u64 },
    /// It freed a block whose allocation was not seen.
    FreeUnmatched,
    /// It asked for a block and got none.
    Failed { stack: Option<StackId>, size: u64 },
}

/// What came of replaying one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replay {
    pid: u32,
    pub(super) events: u64,
    pub(super) last_us: u64,
    /// Where the events made no sense.
    stopped: Option<u64>,
}

impl Replay {
    pub(super) fn warning(&self) -> Option<String> {
        self.stopped.map(|offset| {
            format!(
                "the events of process {} make no sense from byte {offset} on; its figures hold up to there, \
                 {} events until {}",
                self.pid,
                self.events,
                Micros(self.last_us)
            )
        })
    }
}

/// Gives every process its figures: those whose sums are missing, and all of them when the sums were
/// booked in another way than is wanted.
pub(super) fn fold_missing<R: Read + Seek>(
    scan: &mut Scan<R>,
    parts: &mut Parts,
    attribution: ReallocAttribution,
) -> Result<Vec<Replay>, TraceError> {
    let mut replays = Vec::new();
    // What follows a damage may refer to what was lost there.
    let until = parts.damaged;
    for process in parts.processes.values_mut() {
        if process.folded.is_some() && attribution == ReallocAttribution::OwnSite {
            continue;
        }
        process.require_events()?;
        let mut checker = Checker::new(process, attribution, |_| {});
        let stopped = checker.run(scan, process, until)?;
        let Checker { fold, events, last_us, .. } = checker;
        if events > 0 || stopped.is_some() {
            process.last_event_us = last_us;
            process.folded = Some(fold.finish(process.end.map_or(last_us, |end| end.ended_us)));
            replays.push(Replay { pid: process.start.pid, events, last_us, stopped });
        }
    }
    Ok(replays)
}

/// See [`super::Trace::events`].
pub(super) fn events<R: Read + Seek>(
    scan: &mut Scan<R>,
    parts: &Parts,
    index: ProcessIndex,
    take: impl FnMut(Event),
) -> Result<u64, TraceError> {
    let Some(process) = parts.processes.values().nth(index.0 as usize) else { return Ok(0) };
    process.require_events()?;
    let before = parts.processes.values().take(index.0 as usize);
    let mut checker = Checker::new(process, ReallocAttribution::OwnSite, take);
    checker.stack_base = before.map(|process| process.stacks.len() as u32).sum();
    checker.run(scan, process, parts.damaged)?;
    Ok(checker.events)
}

/// Folds events whose ids are in order, and passes them on; the first that are not end it.
struct Checker<F> {
    fold: Aggregator,
    take: F,
    stack_base: u32,
    stack_count: usize,
    threads_listed: u64,
    events: u64,
    last_us: u64,
    broken: bool,
}

impl<F: FnMut(Event)> Checker<F> {
    fn new(process: &ProcessParts, attribution: ReallocAttribution, take: F) -> Checker<F> {
        Checker {
            fold: Aggregator::with_attribution(attribution).advised(want_large_pages),
            take,
            stack_base: 0,
            stack_count: process.stacks.len(),
            threads_listed: process.threads.len() as u64,
            events: 0,
            last_us: 0,
            broken: false,
        }
    }

    /// Decodes the process's events up to a place in the file; gives the place where they stop making sense.
    fn run<R: Read + Seek>(
        &mut self,
        scan: &mut Scan<R>,
        process: &ProcessParts,
        until: Option<u64>,
    ) -> Result<Option<u64>, TraceError> {
        let mut decoder = EventDecoder::new();
        for &offset in process.events.iter().take_while(|&&offset| until.is_none_or(|until| offset < until)) {
            scan.go_to(offset)?;
            let payload = match scan.next()? {
                Found::Chunk(place) if place.header.kind == ChunkKind::EVENTS => scan.payload(&place.header),
                _ => None,
            };
            let decoded = payload.is_some_and(|payload| decoder.decode(payload, self).is_ok());
            if !decoded || self.broken {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Whether an event may be folded: its ids are known, and so were those of all before it. Threads are
    /// numbered by their first call, so there are no more than events.
    #[inline]
    fn accepts(&mut self, thread: u32, stack: u32, block: Option<u32>) -> bool {
        let stack_known = stack == Aggregator::NO_STACK.0 || (stack as usize) < self.stack_count;
        let block_known = block.is_none_or(|block| self.fold.is_live(BlockId(block)));
        let thread_known = u64::from(thread) <= self.events + self.threads_listed;
        self.broken |= !(stack_known && block_known && thread_known);
        !self.broken
    }

    #[inline]
    fn pass_on(&mut self, thread: u32, time_us: u64, kind: EventKind) {
        self.events += 1;
        self.last_us = self.last_us.max(time_us);
        (self.take)(Event { time_us, thread: ThreadIndex(thread), kind });
    }

    fn stack(&self, stack: u32) -> Option<StackId> {
        (stack != Aggregator::NO_STACK.0).then(|| StackId(self.stack_base + stack))
    }
}

const NO_STACK: u32 = Aggregator::NO_STACK.0;

impl<F: FnMut(Event)> EventVisitor for Checker<F> {
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        if !self.accepts(thread, stack, None) {
            return 0;
        }
        let block = self.fold.alloc(ThreadIndex(thread), StackId(stack), size, time_us);
        self.pass_on(thread, time_us, EventKind::Alloc { block, stack: self.stack(stack), size });
        block.0
    }

    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        if self.accepts(thread, NO_STACK, Some(block)) {
            self.fold.free(ThreadIndex(thread), BlockId(block), time_us);
            self.pass_on(thread, time_us, EventKind::Free { block: BlockId(block) });
        }
    }

    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        if !self.accepts(thread, stack, Some(block)) {
            return 0;
        }
        let freed = BlockId(block);
        let block = self.fold.realloc(ThreadIndex(thread), freed, StackId(stack), size, time_us);
        self.pass_on(thread, time_us, EventKind::Realloc { freed, block, stack: self.stack(stack), size });
        block.0
    }

    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        if !self.accepts(thread, stack, None) {
            return 0;
        }
        let block = self.fold.realloc_unmatched(ThreadIndex(thread), StackId(stack), size, time_us);
        self.pass_on(thread, time_us, EventKind::ReallocUnmatched { block, stack: self.stack(stack), size });
        block.0
    }

    fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        if self.accepts(thread, NO_STACK, None) {
            self.fold.free_unmatched(ThreadIndex(thread), time_us);
            self.pass_on(thread, time_us, EventKind::FreeUnmatched);
        }
    }

    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        if self.accepts(thread, stack, None) {
            self.fold.failed(ThreadIndex(thread), StackId(stack), size, time_us);
            self.pass_on(thread, time_us, EventKind::Failed { stack: self.stack(stack), size });
        }
    }
}

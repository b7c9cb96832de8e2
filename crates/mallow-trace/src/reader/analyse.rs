//! Stored events, handed to a pass of analyses: as [`super::replay`], without folding figures that the footer has.
//!
//! The pass keeps the live blocks anyway and numbers them as a fold does, so ids are checked against it.

use super::gather::{Parts, ProcessParts};
use super::scan::{Found, Scan};
use crate::TraceError;
use crate::{ChunkKind, EventDecoder, EventVisitor};
use mallow_profile::analysis::Pass;
use mallow_profile::{Aggregator, BlockId, ProcessIndex, StackId, ThreadIndex};
use std::io::{Read, Seek};

/// See [`super::Trace::analyse`].
pub(super) fn analyse<R: Read + Seek>(
    scan: &mut Scan<R>,
    parts: &Parts,
    index: ProcessIndex,
    pass: &mut Pass,
) -> Result<u64, TraceError> {
    let Some(process) = parts.processes.values().nth(index.0 as usize) else { return Ok(0) };
    process.require_events()?;
    let before = parts.processes.values().take(index.0 as usize);
    let stack_base = before.map(|process| process.stacks.len() as u32).sum();
    let mut feed = Feed::new(process, stack_base, pass);
    feed.run(scan, process, parts.damaged)?;
    Ok(feed.events)
}

/// Checks the ids of events and feeds them to a pass; the first that make no sense end it.
struct Feed<'a> {
    pass: &'a mut Pass,
    stack_base: u32,
    stack_count: u32,
    threads_listed: u64,
    events: u64,
    broken: bool,
}

impl<'a> Feed<'a> {
    fn new(process: &ProcessParts, stack_base: u32, pass: &'a mut Pass) -> Feed<'a> {
        Feed {
            pass,
            stack_base,
            stack_count: process.stacks.len() as u32,
            threads_listed: process.threads.len() as u64,
            events: 0,
            broken: false,
        }
    }

    fn run<R: Read + Seek>(
        &mut self,
        scan: &mut Scan<R>,
        process: &ProcessParts,
        until: Option<u64>,
    ) -> Result<(), TraceError> {
        let mut decoder = EventDecoder::new();
        // What follows a damage may refer to what was lost there.
        let places = process.events.iter().take_while(|&&offset| until.is_none_or(|until| offset < until));
        for &offset in places {
            scan.go_to(offset)?;
            let payload = match scan.next()? {
                Found::Chunk(place) if place.header.kind == ChunkKind::EVENTS => scan.payload(&place.header),
                _ => None,
            };
            let decoded = payload.is_some_and(|payload| decoder.decode(payload, self).is_ok());
            if !decoded || self.broken {
                break;
            }
        }
        Ok(())
    }

    /// Counts an event, unless it or one before it has ids that cannot be. Threads are numbered by their first call, so
    /// there are no more than events.
    #[inline]
    fn accepts(&mut self, thread: u32, stack: u32) -> bool {
        let stack_known = stack == NO_STACK || stack < self.stack_count;
        let thread_known = u64::from(thread) <= self.events + self.threads_listed;
        self.broken |= !(stack_known && thread_known);
        self.events += u64::from(!self.broken);
        !self.broken
    }

    #[inline]
    fn is_live(&mut self, block: u32) -> bool {
        self.broken |= !self.pass.is_live(BlockId(block));
        !self.broken
    }

    #[inline]
    fn stack(&self, stack: u32) -> StackId {
        StackId(if stack == NO_STACK { NO_STACK } else { self.stack_base + stack })
    }
}

const NO_STACK: u32 = Aggregator::NO_STACK.0;

impl EventVisitor for Feed<'_> {
    #[inline]
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        if !self.accepts(thread, stack) {
            return 0;
        }
        self.pass.alloc(ThreadIndex(thread), self.stack(stack), size, time_us).0
    }

    #[inline]
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        if self.is_live(block) && self.accepts(thread, NO_STACK) {
            self.pass.free(ThreadIndex(thread), BlockId(block), time_us);
        }
    }

    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        if !self.is_live(block) || !self.accepts(thread, stack) {
            return 0;
        }
        self.pass.realloc(ThreadIndex(thread), BlockId(block), self.stack(stack), size, time_us).0
    }

    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        // What it freed was never seen; what it made is as any other block.
        self.alloc(thread, stack, size, time_us)
    }

    fn free_unmatched(&mut self, thread: u32, _time_us: u64) {
        self.accepts(thread, NO_STACK);
    }

    fn failed(&mut self, thread: u32, stack: u32, _size: u64, _time_us: u64) {
        self.accepts(thread, stack);
    }
}

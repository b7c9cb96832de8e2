//! Stored events of a process, with their ids checked before anything is indexed by them.

use super::gather::ProcessParts;
use super::scan::{Found, Scan};
use crate::{ChunkKind, EventDecoder, EventVisitor, TraceError};
use mallow_profile::Aggregator;
use std::io::{Read, Seek};

pub(super) const NO_STACK: u32 = Aggregator::NO_STACK.0;

/// Receives events whose stacks and blocks are valid, and knows which blocks are live.
pub(super) trait Blocks: EventVisitor {
    fn is_live(&self, block: u32) -> bool;
}

/// Hands events on whose ids are in order; the first that are not end it.
pub(super) struct Checked<V> {
    pub(super) to: V,
    stack_count: u32,
    /// Threads that the file names; most threads first appear in an event.
    threads_listed: u64,
    pub(super) events: u64,
    pub(super) last_us: u64,
    broken: bool,
}

impl<V: Blocks> Checked<V> {
    pub(super) fn new(process: &ProcessParts, to: V) -> Checked<V> {
        Checked {
            to,
            stack_count: process.stack_count(),
            threads_listed: process.threads.len() as u64,
            events: 0,
            last_us: 0,
            broken: false,
        }
    }

    /// Goes through the events up to a damage in the file, because what follows it may refer to what was lost there. Returns where
    /// they made no sense.
    pub(super) fn run<R: Read + Seek>(
        &mut self,
        scan: &mut Scan<R>,
        process: &ProcessParts,
        until: Option<u64>,
    ) -> Result<Option<u64>, TraceError> {
        // With the first events: its tables are 800 KB, and most processes of many have none.
        let mut decoder = None;
        for &offset in process.events.iter().take_while(|&&offset| until.is_none_or(|until| offset < until)) {
            scan.go_to(offset)?;
            let payload = match scan.next()? {
                Found::Chunk(place) if place.header.kind == ChunkKind::EVENTS => scan.payload(&place.header),
                _ => None,
            };
            let decoded = payload.is_some_and(|payload| {
                decoder.get_or_insert_with(EventDecoder::new).decode(payload, self).is_ok()
            });
            if !decoded || self.broken {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Returns whether an event may be handed on. A thread's index is at most the number of events before it, or was announced by name.
    #[inline]
    fn accepts(&mut self, thread: u32, stack: u32, block: Option<u32>, time_us: u64) -> bool {
        let stack_known = stack == NO_STACK || stack < self.stack_count;
        let block_known = block.is_none_or(|block| self.to.is_live(block));
        let thread_known = u64::from(thread) <= self.events + self.threads_listed;
        self.broken |= !(stack_known && block_known && thread_known);
        if !self.broken {
            self.events += 1;
            self.last_us = self.last_us.max(time_us);
        }
        !self.broken
    }
}

impl<V: Blocks> EventVisitor for Checked<V> {
    #[inline]
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let accepted = self.accepts(thread, stack, None, time_us);
        if accepted { self.to.alloc(thread, stack, size, time_us) } else { 0 }
    }

    #[inline]
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        if self.accepts(thread, NO_STACK, Some(block), time_us) {
            self.to.free(thread, block, time_us);
        }
    }

    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let accepted = self.accepts(thread, stack, Some(block), time_us);
        if accepted { self.to.realloc(thread, block, stack, size, time_us) } else { 0 }
    }

    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let accepted = self.accepts(thread, stack, None, time_us);
        if accepted { self.to.realloc_unmatched(thread, stack, size, time_us) } else { 0 }
    }

    fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        if self.accepts(thread, NO_STACK, None, time_us) {
            self.to.free_unmatched(thread, time_us);
        }
    }

    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        if self.accepts(thread, stack, None, time_us) {
            self.to.failed(thread, stack, size, time_us);
        }
    }
}

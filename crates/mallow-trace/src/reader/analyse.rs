//! Stored events, handed to whoever takes them under the numbers of the profile.

use super::checked::{Blocks, Checked, NO_STACK};
use super::gather::Parts;
use super::scan::Scan;
use crate::{EventVisitor, TraceError};
use mallow_profile::{BlockId, EventSink, ProcessIndex, StackId, ThreadIndex};
use std::io::{Read, Seek};

/// See [`super::Trace::analyse`].
pub(super) fn analyse<R: Read + Seek>(
    scan: &mut Scan<R>,
    parts: &Parts,
    index: ProcessIndex,
    sink: &mut impl EventSink,
) -> Result<u64, TraceError> {
    let Some(process) = parts.processes.values().nth(index.0 as usize) else { return Ok(0) };
    process.require_events()?;
    let before = parts.processes.values().take(index.0 as usize);
    let stack_base = before.map(|process| process.stack_count()).sum();
    let mut checked = Checked::new(process, Feed { sink, stack_base });
    checked.run(scan, process, parts.damaged)?;
    Ok(checked.events)
}

/// Renumbers stacks.
pub(super) struct Feed<'a, S> {
    pub(super) sink: &'a mut S,
    /// The offset of a process's stack ids in the whole profile.
    pub(super) stack_base: u32,
}

impl<S> Feed<'_, S> {
    #[inline]
    fn stack(&self, stack: u32) -> StackId {
        StackId(if stack == NO_STACK { NO_STACK } else { self.stack_base + stack })
    }
}

impl<S: EventSink> Blocks for Feed<'_, S> {
    #[inline]
    fn is_live(&self, block: u32) -> bool {
        self.sink.is_live(BlockId(block))
    }
}

impl<S: EventSink> EventVisitor for Feed<'_, S> {
    #[inline]
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.sink.alloc(ThreadIndex(thread), self.stack(stack), size, time_us).0
    }

    #[inline]
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        self.sink.free(ThreadIndex(thread), BlockId(block), time_us);
    }

    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.sink.realloc(ThreadIndex(thread), BlockId(block), self.stack(stack), size, time_us).0
    }

    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.sink.realloc_unmatched(ThreadIndex(thread), self.stack(stack), size, time_us).0
    }

    fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        self.sink.free_unmatched(ThreadIndex(thread), time_us);
    }

    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        self.sink.failed(ThreadIndex(thread), self.stack(stack), size, time_us);
    }
}

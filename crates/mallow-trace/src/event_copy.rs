//! Events of another file, written into a trace as they are heard of.

use crate::{ChunkKind, EVENTS_PER_CHUNK, EventEncoder, TraceWriter};
use mallow_profile::{Aggregator, BlockId, EventSink, StackId, ThreadIndex};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Takes the events of one process and writes them as chunks of it.
pub struct EventCopy<'a, 'b> {
    trace: &'a mut TraceWriter<&'b mut dyn Write>,
    process: u32,
    /// The numbers of stacks in the trace.
    stacks: &'a FxHashMap<StackId, u32>,
    /// Numbers blocks as a reader will.
    blocks: Aggregator,
    events: EventEncoder,
    failure: Option<io::Error>,
}

impl<'a, 'b> EventCopy<'a, 'b> {
    pub(crate) fn new(
        trace: &'a mut TraceWriter<&'b mut dyn Write>,
        process: u32,
        stacks: &'a FxHashMap<StackId, u32>,
    ) -> EventCopy<'a, 'b> {
        let (blocks, events) = (Aggregator::new(), EventEncoder::new());
        EventCopy { trace, process, stacks, blocks, events, failure: None }
    }

    /// Writes the last events.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write();
        self.failure.map_or(Ok(()), Err)
    }

    fn write_if_full(&mut self) {
        if self.events.len() >= EVENTS_PER_CHUNK {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.events.is_empty() || self.failure.is_some() {
            return;
        }
        let events = &mut self.events;
        let written = self.trace.put_bytes(ChunkKind::EVENTS, self.process, |out| events.take(out));
        self.failure = written.err();
    }

    fn number(&self, stack: StackId) -> u32 {
        self.stacks.get(&stack).copied().unwrap_or(Aggregator::NO_STACK.0)
    }
}

impl EventSink for EventCopy<'_, '_> {
    fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        let block = self.blocks.alloc(thread, stack, size, time_us);
        self.events.alloc(thread.0, block.0, self.number(stack), size, time_us);
        self.write_if_full();
        block
    }

    fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        self.blocks.free(thread, block, time_us);
        self.events.free(thread.0, block.0, time_us);
        self.write_if_full();
    }

    fn realloc(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        let new = self.blocks.realloc(thread, block, stack, size, time_us);
        self.events.realloc(thread.0, block.0, new.0, self.number(stack), size, time_us);
        self.write_if_full();
        new
    }

    fn realloc_unmatched(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        let block = self.blocks.realloc_unmatched(thread, stack, size, time_us);
        self.events.realloc_unmatched(thread.0, block.0, self.number(stack), size, time_us);
        self.write_if_full();
        block
    }

    fn free_unmatched(&mut self, thread: ThreadIndex, time_us: u64) {
        self.events.free_unmatched(thread.0, time_us);
        self.write_if_full();
    }

    fn failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
        self.events.failed(thread.0, self.number(stack), size, time_us);
        self.write_if_full();
    }

    fn is_live(&self, block: BlockId) -> bool {
        self.blocks.is_live(block)
    }
}

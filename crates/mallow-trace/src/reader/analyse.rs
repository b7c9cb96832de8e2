//! Stored events, handed to a pass of analyses. The pass numbers blocks as an aggregator does.

use super::checked::{Blocks, Checked, NO_STACK};
use super::gather::Parts;
use super::scan::Scan;
use crate::{EventVisitor, TraceError};
use mallow_profile::analysis::Pass;
use mallow_profile::{BlockId, ProcessIndex, StackId, ThreadIndex};
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
    let mut checked = Checked::new(process, Feed { pass, stack_base });
    checked.run(scan, process, parts.damaged)?;
    Ok(checked.events)
}

/// Feeds events to a pass.
struct Feed<'a> {
    pass: &'a mut Pass,
    /// Ids of stacks are those of the whole profile.
    stack_base: u32,
}

impl Feed<'_> {
    #[inline]
    fn stack(&self, stack: u32) -> StackId {
        StackId(if stack == NO_STACK { NO_STACK } else { self.stack_base + stack })
    }
}

impl Blocks for Feed<'_> {
    #[inline]
    fn is_live(&self, block: u32) -> bool {
        self.pass.is_live(BlockId(block))
    }
}

impl EventVisitor for Feed<'_> {
    #[inline]
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.pass.alloc(ThreadIndex(thread), self.stack(stack), size, time_us).0
    }

    #[inline]
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        self.pass.free(ThreadIndex(thread), BlockId(block), time_us);
    }

    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.pass.realloc(ThreadIndex(thread), BlockId(block), self.stack(stack), size, time_us).0
    }

    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        // What it freed was never seen; what it made is as any other block.
        self.alloc(thread, stack, size, time_us)
    }

    fn free_unmatched(&mut self, _thread: u32, _time_us: u64) {}

    fn failed(&mut self, _thread: u32, _stack: u32, _size: u64, _time_us: u64) {}
}

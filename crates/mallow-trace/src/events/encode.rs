//! Events into columns.

use super::predict::Predictor;
use super::*;
use crate::column::Column;
use crate::varint::{put, zigzag};

/// Encodes one process's events, in the order in which they happened, into the payload of a chunk.
///
/// Threads, blocks and stacks are plain indices: the dense thread index, the block id of the aggregator, the stack
/// node's id (`u32::MAX` for none). Times are microseconds since the recording's start and may decrease.
#[derive(Debug)]
pub struct EventEncoder {
    predictor: Predictor,
    events: usize,
    /// The events that the columns have room for.
    room: usize,
    ops: Column,
    times: Column,
    threads: Column,
    stacks: Column,
    sizes: Column,
    blocks: Column,
}

impl Default for EventEncoder {
    fn default() -> EventEncoder {
        EventEncoder::new()
    }
}

impl EventEncoder {
    /// An empty chunk. Takes about 800 KiB, and what the columns need.
    pub fn new() -> EventEncoder {
        /// Columns are allocated as zeroed memory, which uses only address space until it is written.
        const ROOM: usize = EVENTS_PER_CHUNK + EVENTS_PER_CHUNK / 16;
        EventEncoder {
            predictor: Predictor::new(),
            events: 0,
            room: ROOM,
            ops: Column::new(ROOM),
            times: Column::new(ROOM),
            threads: Column::new(ROOM),
            stacks: Column::new(ROOM),
            sizes: Column::new(ROOM),
            blocks: Column::new(ROOM),
        }
    }

    /// A successful allocating call that gave `block`.
    #[inline]
    pub fn alloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) {
        let time = self.begin(thread, time_us);
        let site = self.site(stack, size);
        self.predictor.channel.block = block;
        self.ops.push(ALLOC | time | site);
    }

    /// A free of a live block.
    #[inline]
    pub fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        let time = self.begin(thread, time_us);
        let channel = self.predictor.channel;
        let code = if block == channel.block {
            BLOCK_LATEST
        } else if block == channel.freed.wrapping_add(1) {
            BLOCK_FREED_ABOVE
        } else if block == channel.freed.wrapping_sub(1) {
            BLOCK_FREED_BELOW
        } else if block == channel.block.wrapping_add(*self.predictor.memory(channel.stack).distance) {
            BLOCK_AS_BEFORE
        } else if block == channel.block.wrapping_sub(1) {
            BLOCK_LATEST_BELOW
        } else {
            self.put_block(block);
            BLOCK_COLUMN
        };
        self.predictor.freed(block);
        self.ops.push(FREE | time | code << 5);
    }

    /// [`EventEncoder::alloc`] and [`EventEncoder::free`] of its block in one.
    #[inline]
    pub fn temporary(&mut self, thread: u32, block: u32, stack: u32, size: u64, times_us: [u64; 2]) {
        let time = self.begin(thread, times_us[0]);
        let site = self.site(stack, size);
        self.predictor.channel.block = block;
        self.ops.push(ALLOC | time | site);
        let time = self.begin(thread, times_us[1]);
        self.predictor.channel.freed = block;
        *self.predictor.memory(stack).distance = 0;
        self.ops.push(FREE | time | BLOCK_LATEST << 5);
    }

    /// A successful `realloc` of a live block, which returned `block_new`.
    #[inline]
    pub fn realloc(
        &mut self,
        thread: u32,
        block_old: u32,
        block_new: u32,
        stack: u32,
        size: u64,
        time_us: u64,
    ) {
        let time = self.begin(thread, time_us);
        self.put_block(block_old);
        let site = self.site(stack, size);
        self.predictor.channel.block = block_new;
        self.ops.push(REALLOC | time | site);
    }

    /// A successful `realloc` of a block whose allocation was not seen; it gave `block_new`.
    pub fn realloc_unmatched(&mut self, thread: u32, block_new: u32, stack: u32, size: u64, time_us: u64) {
        let time = self.begin(thread, time_us);
        let site = self.site(stack, size);
        self.predictor.channel.block = block_new;
        self.ops.push(REALLOC_UNMATCHED | time | site);
    }

    /// A free of a block whose allocation was not seen.
    pub fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        let time = self.begin(thread, time_us);
        self.ops.push(FREE_UNMATCHED | time);
    }

    /// An allocating call that failed.
    pub fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        let time = self.begin(thread, time_us);
        let site = self.site(stack, size);
        self.ops.push(FAILED | time | site);
    }

    /// The events gathered since the last [`EventEncoder::take`].
    #[inline]
    pub fn len(&self) -> usize {
        self.events
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// About how long the payload will be.
    pub fn raw_bytes(&self) -> usize {
        16 + self.columns().iter().map(|column| column.bytes().len()).sum::<usize>()
    }

    /// Appends the chunk's payload and begins a new chunk.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        out.reserve(self.raw_bytes() + 32);
        put(out, self.events as u64);
        self.columns().iter().for_each(|column| put(out, column.bytes().len() as u64));
        self.columns().iter().for_each(|column| out.extend_from_slice(column.bytes()));
        self.events = 0;
        self.predictor.begin();
        self.columns_mut().into_iter().for_each(Column::clear);
    }

    fn columns(&self) -> [&Column; 6] {
        [&self.ops, &self.times, &self.threads, &self.stacks, &self.sizes, &self.blocks]
    }

    fn columns_mut(&mut self) -> [&mut Column; 6] {
        [
            &mut self.ops,
            &mut self.times,
            &mut self.threads,
            &mut self.stacks,
            &mut self.sizes,
            &mut self.blocks,
        ]
    }

    /// A chunk of more events than a writer should put into one.
    #[cold]
    fn grow(&mut self) {
        self.room *= 2;
        let room = self.room;
        self.columns_mut().into_iter().for_each(|column| column.grow(room));
    }

    /// Counts an event; writes its thread if it changed; returns the op's time bits.
    #[inline(always)]
    fn begin(&mut self, thread: u32, time_us: u64) -> u8 {
        if self.events == self.room {
            self.grow();
        }
        self.events += 1;
        if self.predictor.thread != Some(thread) {
            self.switch(thread);
        }
        let passed = time_us.wrapping_sub(self.predictor.time_us);
        self.predictor.time_us = time_us;
        if passed < u64::from(TIME_COLUMN) {
            (passed as u8) << 3
        } else {
            self.times.put(zigzag(passed));
            TIME_COLUMN << 3
        }
    }

    #[inline]
    fn switch(&mut self, thread: u32) {
        self.predictor.switch(thread);
        let code = if thread < u32::from(THREAD_COLUMN) {
            thread as u8
        } else {
            self.threads.put(u64::from(thread));
            THREAD_COLUMN
        };
        self.ops.push(THREAD | code << 3);
    }

    /// The op's site bits.
    #[inline(always)]
    fn site(&mut self, stack: u32, size: u64) -> u8 {
        let before = self.predictor.memory(self.predictor.channel.stack);
        let mut code = STACK_NEXT;
        if before.next[0] != stack {
            code = if before.next[1] == stack { STACK_NEXT_OLDER } else { STACK_COLUMN };
            *before.next = [stack, before.next[0]];
            if code == STACK_COLUMN {
                self.stacks.put(u64::from(stack));
            }
        }
        self.predictor.channel.stack = stack;
        let memory = self.predictor.memory(stack);
        if *memory.size != size {
            *memory.size = size;
            code |= SIZE_COLUMN;
            self.sizes.put(size);
        }
        code << 5
    }

    #[inline]
    fn put_block(&mut self, block: u32) {
        let distance = block.wrapping_sub(self.predictor.channel.block) as i32;
        self.blocks.put(zigzag(i64::from(distance) as u64));
    }
}

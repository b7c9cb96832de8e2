//! Columns into events.

use super::predict::Predictor;
use super::*;
use crate::varint::{DecodeError, Reader};

/// Receives events as they are decoded. Indices of threads, stacks and blocks may be any number if another program
/// wrote the file: check them before use.
pub trait EventVisitor {
    /// A successful allocating call. Returns the block's id: the one freed last, or the next new one.
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32;
    /// A free of a live block.
    fn free(&mut self, thread: u32, block: u32, time_us: u64);
    /// A successful `realloc` of a live block; returns the new block's id.
    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32;
    /// A successful `realloc` of a block whose allocation was not seen; returns the new block's id.
    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32;
    /// A free of a block whose allocation was not seen.
    fn free_unmatched(&mut self, thread: u32, time_us: u64);
    /// An allocating call that failed.
    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64);
}

/// Decodes one chunk's payload and returns the number of events. For many chunks, keep an [`EventDecoder`].
pub fn decode_events(payload: &[u8], visitor: &mut impl EventVisitor) -> Result<u64, DecodeError> {
    EventDecoder::new().decode(payload, visitor)
}

/// The memory that decoding needs, about 800 KiB, kept from chunk to chunk.
#[derive(Debug)]
pub struct EventDecoder {
    predictor: Predictor,
}

impl Default for EventDecoder {
    fn default() -> EventDecoder {
        EventDecoder::new()
    }
}

impl EventDecoder {
    /// A decoder for any number of chunks.
    pub fn new() -> EventDecoder {
        EventDecoder { predictor: Predictor::new() }
    }

    /// Decodes one chunk's payload and returns the number of events. After an error the visitor has received the
    /// events before it.
    pub fn decode(&mut self, payload: &[u8], visitor: &mut impl EventVisitor) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(payload);
        let events = reader.varint("the number of events")?;
        let mut lengths = [0; 6];
        for length in &mut lengths {
            *length = reader.count(1, "a column's length")?;
        }
        let mut columns = [reader; 6];
        for (column, length) in columns.iter_mut().zip(lengths) {
            *column = reader.part(length, "a whole column")?;
        }
        self.predictor.begin();
        let [ops, times, threads, stacks, sizes, blocks] = columns;
        let mut chunk = Chunk { predictor: &mut self.predictor, ops, times, threads, stacks, sizes, blocks };
        let mut decoded = 0;
        while let Some(op) = chunk.ops.byte() {
            decoded += u64::from(chunk.step(op, visitor)?);
        }
        if decoded == events {
            Ok(decoded)
        } else {
            Err(chunk.ops.expected("as many events as were announced"))
        }
    }
}

struct Chunk<'a> {
    predictor: &'a mut Predictor,
    ops: Reader<'a>,
    times: Reader<'a>,
    threads: Reader<'a>,
    stacks: Reader<'a>,
    sizes: Reader<'a>,
    blocks: Reader<'a>,
}

impl Chunk<'_> {
    /// Decodes an op; true when it was an event.
    #[inline]
    fn step(&mut self, op: u8, visitor: &mut impl EventVisitor) -> Result<bool, DecodeError> {
        let kind = op & 7;
        if kind == THREAD {
            let thread = match op >> 3 {
                THREAD_COLUMN => self.threads.varint32("a thread's index")?,
                thread => u32::from(thread),
            };
            self.predictor.switch(thread);
            return Ok(false);
        }
        let thread = self.predictor.thread.ok_or(self.ops.expected("a thread before the first event"))?;
        let time_us = self.time(op >> 3 & 3)?;
        let code = op >> 5;
        match kind {
            ALLOC => {
                let (stack, size) = self.site(code)?;
                self.predictor.channel.block = visitor.alloc(thread, stack, size, time_us);
            }
            FREE => {
                let block = self.freed(code)?;
                visitor.free(thread, block, time_us);
            }
            REALLOC => {
                let block = self.block()?;
                let (stack, size) = self.site(code)?;
                self.predictor.channel.block = visitor.realloc(thread, block, stack, size, time_us);
            }
            REALLOC_UNMATCHED => {
                let (stack, size) = self.site(code)?;
                self.predictor.channel.block = visitor.realloc_unmatched(thread, stack, size, time_us);
            }
            FREE_UNMATCHED => visitor.free_unmatched(thread, time_us),
            FAILED => {
                let (stack, size) = self.site(code)?;
                visitor.failed(thread, stack, size, time_us);
            }
            _ => return Err(self.ops.expected("an event behind a kind from 0 to 6")),
        }
        Ok(true)
    }

    #[inline]
    fn time(&mut self, code: u8) -> Result<u64, DecodeError> {
        let passed = match code {
            TIME_COLUMN => self.times.signed("a time")?,
            passed => u64::from(passed),
        };
        self.predictor.time_us = self.predictor.time_us.wrapping_add(passed);
        Ok(self.predictor.time_us)
    }

    #[inline]
    fn site(&mut self, code: u8) -> Result<(u32, u64), DecodeError> {
        let before = self.predictor.memory(self.predictor.channel.stack);
        let stack = match code & 3 {
            STACK_NEXT => before.next[0],
            STACK_NEXT_OLDER => before.next[1],
            STACK_COLUMN => self.stacks.varint32("a stack's id")?,
            _ => return Err(self.ops.expected("a stack's code from 0 to 2 in the op before")),
        };
        if code & 3 != STACK_NEXT {
            *before.next = [stack, before.next[0]];
        }
        self.predictor.channel.stack = stack;
        let memory = self.predictor.memory(stack);
        if code & SIZE_COLUMN != 0 {
            *memory.size = self.sizes.varint("a size")?;
        }
        Ok((stack, *memory.size))
    }

    /// A free's block.
    #[inline]
    fn freed(&mut self, code: u8) -> Result<u32, DecodeError> {
        let channel = self.predictor.channel;
        let block = match code {
            BLOCK_LATEST => channel.block,
            BLOCK_FREED_ABOVE => channel.freed.wrapping_add(1),
            BLOCK_FREED_BELOW => channel.freed.wrapping_sub(1),
            BLOCK_AS_BEFORE => channel.block.wrapping_add(*self.predictor.memory(channel.stack).distance),
            BLOCK_LATEST_BELOW => channel.block.wrapping_sub(1),
            BLOCK_COLUMN => self.block()?,
            _ => return Err(self.ops.expected("a block's code in the op before")),
        };
        self.predictor.freed(block);
        Ok(block)
    }

    #[inline]
    fn block(&mut self) -> Result<u32, DecodeError> {
        Ok(self.predictor.channel.block.wrapping_add(self.blocks.signed("a block")? as u32))
    }
}

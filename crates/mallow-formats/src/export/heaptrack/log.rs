//! Single events as heaptrack's lines, in their order, with their sizes and times.

use super::PAGE_BYTES;
use super::tables::{Pair, PairLog};
use mallow_profile::{Aggregator, BlockId, EventSink, Sample, StackId, ThreadIndex};
use std::io::{self, Write};

/// Takes the events of the file's process and writes them.
pub(crate) struct EventLog<'a> {
    out: &'a mut dyn Write,
    /// Numbers blocks as whoever feeds it expects.
    blocks: Aggregator,
    pairs: PairLog,
    /// By block: heaptrack frees a pair, and not a block.
    pair_of: Vec<Pair>,
    /// Resident memory that is not written yet.
    samples: &'a [Sample],
    /// The time that was written last, in the format's milliseconds.
    time_ms: Option<u64>,
    failure: Option<io::Error>,
}

impl<'a> EventLog<'a> {
    pub(super) fn new(samples: &'a [Sample], out: &'a mut dyn Write) -> EventLog<'a> {
        EventLog {
            out,
            blocks: Aggregator::new(),
            pairs: PairLog::default(),
            pair_of: Vec::new(),
            samples,
            time_ms: None,
            failure: None,
        }
    }

    /// Writes what is left until the end.
    pub(super) fn finish(mut self, end_us: u64) -> io::Result<()> {
        self.go_to(end_us);
        self.failure.map_or(Ok(()), Err)
    }

    fn go_to(&mut self, time_us: u64) {
        while let Some((sample, rest)) = self.samples.split_first()
            && sample.time_us <= time_us
        {
            self.samples = rest;
            self.set_time(sample.time_us);
            self.put(|out| writeln!(out, "R {:x}", sample.rss_bytes.div_ceil(PAGE_BYTES)));
        }
        self.set_time(time_us);
    }

    /// Clocks of different cores may differ by a tick; heaptrack's only goes on.
    fn set_time(&mut self, time_us: u64) {
        let now_ms = time_us / 1000;
        if self.time_ms.is_none_or(|before_ms| before_ms < now_ms) {
            self.time_ms = Some(now_ms);
            self.put(|out| writeln!(out, "c {now_ms:x}"));
        }
    }

    fn put(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.failure.is_none() {
            self.failure = write(self.out).err();
        }
    }

    fn born(&mut self, block: BlockId, stack: StackId, size: u64) {
        let stack = (stack != Aggregator::NO_STACK).then_some(stack);
        let pairs = &mut self.pairs;
        let mut pair = Pair::NONE;
        if self.failure.is_none() {
            match pairs.number(size, stack, self.out) {
                Ok(number) => pair = number,
                Err(error) => self.failure = Some(error),
            }
        }
        let place = block.0 as usize;
        if self.pair_of.len() <= place {
            self.pair_of.resize(place + 1, Pair::NONE);
        }
        self.pair_of[place] = pair;
        self.put(|out| writeln!(out, "+ {:x}", pair.0));
    }

    fn died(&mut self, block: BlockId) {
        let pair = self.pair_of.get(block.0 as usize).copied().unwrap_or(Pair::NONE);
        self.put(|out| writeln!(out, "- {:x}", pair.0));
    }
}

impl EventSink for EventLog<'_> {
    fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        self.go_to(time_us);
        let block = self.blocks.alloc(thread, stack, size, time_us);
        self.born(block, stack, size);
        block
    }

    fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        self.go_to(time_us);
        if self.blocks.is_live(block) {
            self.died(block);
        }
        self.blocks.free(thread, block, time_us);
    }

    fn realloc(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        self.go_to(time_us);
        if self.blocks.is_live(block) {
            self.died(block);
        }
        let new = self.blocks.realloc(thread, block, stack, size, time_us);
        self.born(new, stack, size);
        new
    }

    fn realloc_unmatched(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
        self.go_to(time_us);
        let block = self.blocks.realloc_unmatched(thread, stack, size, time_us);
        self.born(block, stack, size);
        block
    }

    fn free_unmatched(&mut self, _: ThreadIndex, _: u64) {}

    fn failed(&mut self, _: ThreadIndex, _: StackId, _: u64, _: u64) {}

    fn is_live(&self, block: BlockId) -> bool {
        self.blocks.is_live(block)
    }
}

//! What both sides of the event columns remember within a chunk.

/// Stacks whose ids differ by this share a place. A collision costs bytes, never truth.
const PLACES: usize = 1 << 15;
/// Threads whose indices differ by this share a place.
const CHANNELS: usize = 64;

/// The history of a stack as it is kept: that of [`Memory`], and the chunk in which it was written; older ones count as empty. A tuple, because a vector
/// of tuples of zeros is taken from the allocator as zeroed memory: a short recording touches few of its pages.
type Kept = ([u32; 2], u64, u32, u32);

/// The history of a stack.
pub(super) struct Memory<'a> {
    /// The stacks that followed it, the latest first.
    pub(super) next: &'a mut [u32; 2],
    /// The last size allocated there.
    pub(super) size: &'a mut u64,
    /// The block freed last after an allocation there, less that allocation's block; wrapping.
    pub(super) distance: &'a mut u32,
}

/// The history of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Channel {
    /// The latest allocation's stack.
    pub(super) stack: u32,
    /// The latest allocation's block.
    pub(super) block: u32,
    /// The block freed last.
    pub(super) freed: u32,
}

#[derive(Debug)]
pub(super) struct Predictor {
    memories: Box<[Kept; PLACES]>,
    channels: Box<[Channel; CHANNELS]>,
    chunk: u32,
    /// The thread that the next event belongs to; none at a chunk's start.
    pub(super) thread: Option<u32>,
    /// That thread's channel, out of the table while it runs.
    pub(super) channel: Channel,
    /// The latest event's time.
    pub(super) time_us: u64,
}

/// By way of a vector, because an array of this size is too large for a stack.
fn memories() -> Box<[Kept; PLACES]> {
    match vec![Kept::default(); PLACES].into_boxed_slice().try_into() {
        Ok(memories) => memories,
        Err(_) => unreachable!("a slice of as many memories as the array has"),
    }
}

impl Predictor {
    pub(super) fn new() -> Predictor {
        Predictor {
            memories: memories(),
            channels: Box::new([Channel::default(); CHANNELS]),
            chunk: 1,
            thread: None,
            channel: Channel::default(),
            time_us: 0,
        }
    }

    /// Forgets everything: a chunk begins.
    pub(super) fn begin(&mut self) {
        self.chunk = self.chunk.wrapping_add(1);
        if self.chunk == 0 {
            self.memories.fill(Kept::default());
            self.chunk = 1;
        }
        self.channels.fill(Channel::default());
        self.channel = Channel::default();
        self.thread = None;
        self.time_us = 0;
    }

    /// The events that follow are of this thread.
    #[inline]
    pub(super) fn switch(&mut self, thread: u32) {
        if let Some(before) = self.thread {
            self.channels[before as usize % CHANNELS] = self.channel;
        }
        self.channel = self.channels[thread as usize % CHANNELS];
        self.thread = Some(thread);
    }

    #[inline(always)]
    pub(super) fn memory(&mut self, stack: u32) -> Memory<'_> {
        let kept = &mut self.memories[stack as usize % PLACES];
        if kept.3 != self.chunk {
            *kept = ([0; 2], 0, 0, self.chunk);
        }
        let (next, size, distance, _) = kept;
        Memory { next, size, distance }
    }

    /// Remembers that a block was freed.
    #[inline(always)]
    pub(super) fn freed(&mut self, block: u32) {
        let distance = block.wrapping_sub(self.channel.block);
        self.channel.freed = block;
        *self.memory(self.channel.stack).distance = distance;
    }
}

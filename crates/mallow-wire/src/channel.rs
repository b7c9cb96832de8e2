//! What belongs to a thread in the shared memory: its ring, and its counters under `stat`.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a thread's ring. At most 32,768 allocations wait for the collector.
pub const RING_BYTES: usize = 512 * 1024;
/// Words of a thread's ring, a power of two.
pub const RING_WORDS: usize = RING_BYTES / 8;

/// Threads that can be alive at once in one process. The calls of a thread beyond are counted and not recorded.
pub const CHANNEL_COUNT_MAX: usize = 4096;

/// A channel's states. In [`Channel::state`].
pub const CHANNEL_FREE: u32 = 0;
/// A thread owns the channel; [`Channel::tid`] says which.
pub const CHANNEL_OWNED: u32 = 1;

/// A thread's channel: its ring's positions, and its counters.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Channel {
    /// [`CHANNEL_FREE`] or [`CHANNEL_OWNED`]. The recorder takes, the collector gives back.
    pub state: AtomicU32,
    /// The owner's thread id; 0 in a free channel, and in one that is being taken. Written last.
    pub tid: AtomicU32,
    /// Set while the owner sleeps because the ring is full.
    pub waiting: AtomicU32,
    /// Pad.
    pub pad0: u32,
    /// Which of the process's threads, counted from 1 in the order in which they took their channels, owns the
    /// channel.
    pub taken_serial: AtomicU64,
    /// Words published by the owner.
    pub head: AtomicU64,
    /// Calls that the channel's owners did not record because the collector stood still and the ring was full.
    pub lost: AtomicU64,
    /// Pad: `head` is the owner's cache line, `tail` the collector's.
    pub pad: [u64; 3],
    /// Words consumed by the collector.
    pub tail: AtomicU64,
    /// A word that changes with `tail`, to sleep on.
    pub tail_futex: AtomicU32,
    /// Pad.
    pub pad2: u32,
    /// Pad.
    pub pad3: [u64; 6],
    /// Under [`MODE_STAT`](crate::wanted::MODE_STAT).
    pub counters: Counters,
    /// Marks that the owners of this channel wrote and that want an answer. Counted on over owners; each begins with what
    /// was answered, for its predecessor may have died before its answer.
    pub marks_asked: AtomicU32,
    /// Those of them that the collector has answered. The owner sleeps on it.
    pub marks_answered: AtomicU32,
    /// The answer to the last [`crate::event::Mark::CountEnds`].
    pub counted: Counted,
    /// Pad.
    pub pad4: [u64; 3],
}

const _: () = assert!(size_of::<Channel>() == 320);

/// How many values a [`Counted`] has.
pub const COUNTED_VALUES: usize = 7;

/// What a thread allocated between two marks. The collector writes it, before it answers the mark.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counted {
    /// How many of the values are valid: 0 if nothing was counted, or not everything.
    pub value_count: AtomicU64,
    /// Successful allocating calls of the thread, their bytes, those of them that were `realloc` of a live block, blocks that the thread freed
    /// before it allocated again, the highest sum of bytes that lived, blocks that live, their bytes. Programs get them in this order, so more may
    /// follow and none may go.
    pub values: [AtomicU64; COUNTED_VALUES],
}

/// What lives, over all threads. On a cache line of its own: many write it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Live {
    /// Bytes, once there are several threads: what they have published, see [`Counters::unpublished_bytes`].
    pub bytes: AtomicU64,
    /// Blocks, likewise.
    pub blocks: AtomicU64,
    /// The highest sum of live bytes.
    pub peak_bytes: AtomicU64,
    /// The live blocks at that moment.
    pub peak_blocks: AtomicU64,
}

/// A thread's counters under [`MODE_STAT`](crate::wanted::MODE_STAT). Only its owner writes them. What busy threads write at each call is on one cache line, and what others read
/// while they publish on the next.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    /// Successful allocating calls.
    pub allocations: AtomicU64,
    /// Requested bytes of those.
    pub bytes: AtomicU64,
    /// Blocks freed of those that were counted when they were allocated, those that `realloc` replaced included.
    pub frees: AtomicU64,
    /// Blocks freed of which nothing is known.
    pub frees_unmatched: AtomicU64,
    /// Successful `realloc` calls on a live block.
    pub reallocations: AtomicU64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: AtomicU64,
    /// Failed calls.
    pub failed: AtomicU64,
    /// What the channel's owners added to the live bytes, less what they freed, and have not put into [`Live`]; wraps below zero.
    pub unpublished_bytes: AtomicU64,
    /// Live bytes, kept by the first thread while it is alone. May pass below zero in no moment.
    pub live_bytes: AtomicU64,
    /// What they have put into [`Live`] of their live blocks, which are their allocations less their frees; wraps below zero.
    pub published_blocks: AtomicU64,
    /// From so many unpublished bytes on, more or less than zero, the owner publishes. Never becomes less.
    pub slack_bytes: AtomicU64,
    /// How often something was published.
    pub publications: AtomicU64,
}

//! What a live session tells: what lives now, and what the allocator says of itself.

use crate::heap::{HeapMetrics, HeapSource};
use mallow_profile::LiveSite;

/// The live blocks at a moment.
#[derive(Clone, Debug, Default)]
pub struct LiveHeap {
    /// The processes that were recorded then.
    pub processes: Vec<LiveProcess>,
    /// Those that had ended by then.
    pub ended: EndedProcesses,
}

/// Processes of a recording that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedProcesses {
    /// How many.
    pub processes: u64,
    /// Their allocations, as of the last pass before each one's end.
    pub allocations: u64,
}

/// The live blocks of one process.
#[derive(Clone, Debug)]
pub struct LiveProcess {
    /// Its number in this recording; an `exec` makes a new one.
    pub index: u32,
    /// Its process id.
    pub pid: u32,
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Blocks of those.
    pub live_blocks: u64,
    /// Allocations so far.
    pub allocations: u64,
    /// A thread of ours is among its threads.
    pub has_helper_thread: bool,
    /// The live blocks of each stack.
    pub sites: Vec<LiveSite>,
    /// How much memory it has that could be a heap, and how much of it was recorded.
    pub heap: HeapMetrics,
    /// Where that memory comes from, as far as it is known.
    pub source: HeapSource,
}

/// A request to an allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// To trim: release what it does not use.
    pub trim: bool,
    /// To report how much it holds.
    pub account: bool,
}

/// The report of the allocator of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorAccount {
    /// The process.
    pub pid: u32,
    /// `glibc`, `jemalloc`, `mimalloc`, `tcmalloc`.
    pub allocator: &'static str,
    /// What it holds from the kernel; `None` if it has no statistics.
    pub held_bytes: Option<u64>,
    /// How much of that is in use.
    pub used_bytes: Option<u64>,
}

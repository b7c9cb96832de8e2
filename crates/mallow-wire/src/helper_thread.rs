//! How the collector asks the allocator of a process.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Orders to the thread in the process that speaks to its allocator, and its answers.
///
/// The collector writes `order`, then raises `asked` and wakes who sleeps on it; the helper thread carries the order out, writes
/// what it found, and sets `answered` to what it had read from `asked`.
#[repr(C)]
#[derive(Debug)]
pub struct HelperThread {
    /// The helper thread's thread id; 0 while there is none.
    pub tid: AtomicU32,
    /// What is wanted: [`REQUEST_TRIM`], [`REQUEST_ACCOUNT`].
    pub order: AtomicU32,
    /// How often something was asked.
    pub asked: AtomicU32,
    /// The last question that was answered.
    pub answered: AtomicU32,
    /// Which allocator answered: one of the `ALLOCATOR_` numbers.
    pub allocator: AtomicU32,
    /// Pad.
    pub pad: u32,
    /// Bytes that the allocator holds from the kernel.
    pub held_bytes: AtomicU64,
    /// Those of them that are in use.
    pub used_bytes: AtomicU64,
}

/// In [`HelperThread::order`]: give memory that is not used back to the kernel.
pub const REQUEST_TRIM: u32 = 1;
/// In [`HelperThread::order`]: say how much is held and used.
pub const REQUEST_ACCOUNT: u32 = 2;

/// In [`HelperThread::allocator`]: one that cannot be asked.
pub const ALLOCATOR_UNKNOWN: u32 = 0;
/// glibc's.
pub const ALLOCATOR_GLIBC: u32 = 1;
/// jemalloc.
pub const ALLOCATOR_JEMALLOC: u32 = 2;
/// mimalloc, which gives back but keeps no account.
pub const ALLOCATOR_MIMALLOC: u32 = 3;
/// gperftools' tcmalloc.
pub const ALLOCATOR_TCMALLOC: u32 = 4;

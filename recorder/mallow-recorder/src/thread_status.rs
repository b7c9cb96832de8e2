//! What a thread is doing: two words at the start of its state.
//!
//! They stand apart from the rest of [`crate::thread`], so that whoever finds that something is wrong can end the recording of the
//! calling thread.

use crate::tls;
use core::sync::atomic::{AtomicU32, Ordering};

/// Not known; also after a fork.
pub const ABSENT: u32 = 0;
/// Between calls that are recorded.
pub const RECORDING: u32 = 1;
/// Between calls that are counted.
pub const COUNTING: u32 = 2;
/// The allocator runs.
pub const IN_REAL: u32 = 3;
/// We are at work.
pub const IN_HOOK: u32 = 4;
/// Its calls pass by.
pub const OFF: u32 = 5;
/// There was no channel for it.
pub const PARKED: u32 = 6;
/// The collector did not respond while the thread's ring was full: the thread goes on unrecorded until there is room.
pub const STALLED: u32 = 7;

/// The status of one thread.
#[derive(Debug)]
#[repr(C)]
pub struct ThreadStatus {
    /// What it is doing.
    pub state: AtomicU32,
    /// What it is doing between calls.
    pub home: AtomicU32,
}

impl ThreadStatus {
    /// The calling thread's; none before its first call.
    pub fn current() -> Option<&'static ThreadStatus> {
        let thread = tls::get().cast::<ThreadStatus>();
        // SAFETY: a word that is not null points at this thread's state, which begins with its standing and stays mapped.
        (!thread.is_null()).then(|| unsafe { &*thread })
    }

    /// Returns whether its calls pass by, or will from the end of the one at hand.
    pub fn is_off(&self) -> bool {
        self.home.load(Ordering::Relaxed) == OFF
    }

    /// The thread's calls pass by from the end of the one at hand.
    pub fn switch_off(&self) {
        self.home.store(OFF, Ordering::Relaxed);
    }
}

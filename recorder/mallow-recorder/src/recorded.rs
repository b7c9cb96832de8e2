//! Calls that are recorded: the short way in.

use crate::Caller;
use crate::thread::{Recording, Thread, begin_call};
use core::sync::atomic::{Ordering, compiler_fence};

/// A hooked call that is recorded, of a thread that was between calls: nearly every one under `record`. Cheaper than a
/// [`Guard`](crate::thread::Guard), because it interrupts nothing to which it would return.
#[derive(Debug)]
pub struct Recorded {
    thread: *mut Thread,
}

/// A thread that is between calls that are recorded.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Recordable {
    thread: *mut Thread,
}

impl Recordable {
    /// The calling thread, in whose state that was read.
    #[inline(always)]
    pub(crate) fn of(thread: *mut Thread) -> Recordable {
        Recordable { thread }
    }

    /// Begins a hooked call.
    ///
    /// # Safety
    /// As [`enter`](crate::thread::enter), at once behind [`way_in`](crate::way_in::way_in).
    #[inline(always)]
    pub unsafe fn begin(self, caller: Caller) -> Recorded {
        // SAFETY: this thread's state.
        unsafe { begin_call(self.thread, caller) };
        Recorded { thread: self.thread }
    }
}

impl Recording for Recorded {
    #[inline(always)]
    fn thread(&self) -> *mut Thread {
        self.thread
    }

    #[inline(always)]
    fn uses_memo(&self) -> bool {
        true
    }
}

impl Drop for Recorded {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread's state. What was to be lost for good has changed where it returns to.
        unsafe {
            compiler_fence(Ordering::SeqCst);
            let home = (*self.thread).status.home.load(Ordering::Relaxed);
            (*self.thread).status.state.store(home, Ordering::Relaxed);
        }
    }
}

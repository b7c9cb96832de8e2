//! Calls that are only counted: the short way in, for hooks that have nothing to keep.

use crate::Caller;
use crate::thread::{Thread, begin_call, current};
use crate::thread_status::COUNTING;
use core::sync::atomic::Ordering;

/// A hooked call that is only counted, of a thread that does nothing else of ours meanwhile: nearly every call under
/// `stat`. Cheaper than a [`Guard`](crate::thread::Guard), because there is nothing to return to but counting.
#[derive(Debug)]
pub struct Counted {
    thread: *mut Thread,
}

/// A thread that is between calls that are only counted.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Counting {
    thread: *mut Thread,
}

impl Counting {
    /// The calling thread, in whose state that was read.
    #[inline(always)]
    pub(crate) fn of(thread: *mut Thread) -> Counting {
        Counting { thread }
    }

    /// Begins a hooked call.
    ///
    /// # Safety
    /// As [`enter`](crate::thread::enter), at once behind [`way_in`](crate::way_in::way_in).
    #[inline(always)]
    pub unsafe fn begin(self, caller: Caller) -> Counted {
        // SAFETY: this thread's state.
        unsafe { begin_call(self.thread, caller) };
        Counted { thread: self.thread }
    }
}

impl Counted {
    /// This thread's state.
    #[inline(always)]
    pub fn thread(&self) -> *mut Thread {
        self.thread
    }

    /// The call is still in progress when this is gone.
    #[inline(always)]
    pub(crate) fn go_on(self) {
        core::mem::forget(self);
    }

    /// The call that went on.
    ///
    /// # Safety
    /// Behind [`Counted::go_on`], on the same thread.
    #[inline(always)]
    pub(crate) unsafe fn gone_on() -> Counted {
        Counted { thread: current() }
    }
}

impl Drop for Counted {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread's state.
        unsafe { (*self.thread).status.state.store(COUNTING, Ordering::Relaxed) };
    }
}

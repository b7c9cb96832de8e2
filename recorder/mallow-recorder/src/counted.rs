//! Calls that are only counted: the short way in, for hooks that have nothing to keep.

use crate::Caller;
use crate::thread::{Thread, current};
use crate::thread_status::{COUNTING, IN_REAL};
use core::sync::atomic::{Ordering, compiler_fence};

/// A hooked call that is only counted, of a thread that does nothing else of ours meanwhile: nearly every call under
/// `stat`. Cheaper than a [`Guard`](crate::thread::Guard), because there is nothing to return to but counting.
#[derive(Debug)]
pub struct Counted {
    thread: *mut Thread,
}

/// Begins a hooked call if it is of that kind; the others go through [`enter`](crate::thread::enter).
///
/// # Safety
/// As [`enter`](crate::thread::enter).
#[inline(always)]
pub unsafe fn enter_counting(caller: Caller) -> Option<Counted> {
    let thread = current();
    if thread.is_null() {
        return None;
    }
    // SAFETY: as in `enter`.
    unsafe {
        if (*thread).status.state.load(Ordering::Relaxed) != COUNTING {
            return None;
        }
        (*thread).status.state.store(IN_REAL, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        (*thread).outer_sp = caller.sp;
    }
    Some(Counted { thread })
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

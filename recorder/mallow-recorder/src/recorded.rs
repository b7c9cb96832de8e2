//! Calls that are recorded: the short way in.

use crate::Caller;
use crate::thread::{Recording, Thread, begin_call, current};
use crate::thread_status::RECORDING;
use core::sync::atomic::{Ordering, compiler_fence};

/// A hooked call that is recorded, of a thread that was between calls: nearly every one under `record`. Cheaper than a
/// [`Guard`](crate::thread::Guard), because it interrupts nothing to which it would return.
#[derive(Debug)]
pub struct Recorded {
    thread: *mut Thread,
}

/// Begins a hooked call if it is of that kind; the others go through [`enter`](crate::thread::enter).
///
/// # Safety
/// As [`enter`](crate::thread::enter).
#[inline(always)]
pub unsafe fn enter_recording(caller: Caller) -> Option<Recorded> {
    let thread = current();
    if thread.is_null() {
        return None;
    }
    // SAFETY: as in `enter`.
    unsafe {
        if (*thread).status.state.load(Ordering::Relaxed) != RECORDING {
            return None;
        }
        begin_call(thread, caller);
    }
    Some(Recorded { thread })
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

//! By which way a hooked call goes on: one look at the thread's state decides.

use crate::Caller;
use crate::counted::{Counted, Counting};
use crate::recorded::{Recordable, Recorded};
use crate::thread::current;
use crate::thread_status::{COUNTING, RECORDING};
use core::sync::atomic::Ordering;

/// How the next call of the calling thread goes on.
#[derive(Clone, Copy, Debug)]
pub enum WayIn {
    /// It is only counted.
    Counting(Counting),
    /// It is recorded.
    Recordable(Recordable),
    /// As [`enter`](crate::thread::enter) finds out: it is the thread's first, interrupts another one, or passes by.
    Other,
}

/// Returns how the next call goes on.
#[inline(always)]
pub fn way_in() -> WayIn {
    let thread = current();
    if thread.is_null() {
        return WayIn::Other;
    }
    // SAFETY: as in `enter`.
    let state = unsafe { (*thread).status.state.load(Ordering::Relaxed) };
    // In this order: two instructions are more for who only counts.
    if state == COUNTING {
        return WayIn::Counting(Counting::of(thread));
    }
    if state == RECORDING { WayIn::Recordable(Recordable::of(thread)) } else { WayIn::Other }
}

/// Begins a hooked call if it is only counted.
///
/// # Safety
/// As [`enter`](crate::thread::enter).
#[inline(always)]
pub unsafe fn enter_counting(caller: Caller) -> Option<Counted> {
    match way_in() {
        // SAFETY: by contract.
        WayIn::Counting(thread) => Some(unsafe { thread.begin(caller) }),
        _ => None,
    }
}

/// Begins a hooked call if it is recorded.
///
/// # Safety
/// As [`enter`](crate::thread::enter).
#[inline(always)]
pub unsafe fn enter_recording(caller: Caller) -> Option<Recorded> {
    match way_in() {
        // SAFETY: by contract.
        WayIn::Recordable(thread) => Some(unsafe { thread.begin(caller) }),
        _ => None,
    }
}

//! What is done before a thread loses the right to system calls that ours need.

use super::entering::enter;
use super::unrecorded::become_ours;
use super::{Entry, Recording};
use crate::Caller;
use crate::filters;
use crate::process;
use core::sync::atomic::Ordering;

/// The calling thread, and those that it starts, will be under a filter of system calls: what needs others than an allocator
/// does is done now, and left out from now on. `program` is the filter's, as [`crate::filters::note`] takes it.
///
/// # Safety
/// As [`enter`].
pub unsafe fn before_filter(caller: Caller, program: usize) {
    // SAFETY: by contract. The call that begins and ends here makes the thread known.
    drop(unsafe { enter(caller) });
    filters::note(program);
    process::note_filter();
}

/// The calling thread will not be able to make any call of ours, or to read the time: it is recorded up to here.
///
/// # Safety
/// As [`enter`].
pub unsafe fn before_closing(caller: Caller) {
    // SAFETY: by contract.
    unsafe { before_dispatch(caller) };
    filters::note_closed();
}

/// Calls of ours will be signals of the program's in the calling thread: it is recorded up to here.
///
/// # Safety
/// As [`enter`].
pub unsafe fn before_dispatch(caller: Caller) {
    // SAFETY: by contract.
    unsafe {
        if let Entry::Record(guard) | Entry::Count(guard) = enter(caller) {
            (*guard.thread()).status.switch_off();
            process::header().threads_locked_in.fetch_add(1, Ordering::Relaxed);
        } else {
            become_ours();
        }
    }
    process::note_filter();
}

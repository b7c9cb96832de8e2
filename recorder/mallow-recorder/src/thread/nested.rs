//! Calls during another call of ours: of signal handlers, of the allocator, or after a jump.

use super::{Entry, Thread, begin, go_without};
use crate::Caller;
use crate::from_scratch;
use crate::memo::Memo;
use crate::objects;
use crate::thread_status::{COUNTING, IN_REAL, RECORDING, STALLED};
use crate::walk::{UnwindContext, is_guessed as is_guessed_way};
use core::sync::atomic::{AtomicUsize, Ordering};

/// A call during another call of ours on the same thread.
#[inline(never)]
pub(super) unsafe fn enter_nested(thread: *mut Thread, state: u32, caller: Caller) -> Entry {
    // SAFETY: as in `enter`.
    unsafe {
        let home = (*thread).status.home.load(Ordering::Relaxed);
        let outer_sp = (*thread).outer_sp;
        // A patched function called by one that the loader resolves to us: the stack need not be checked.
        if state == IN_REAL && is_called_by_us(caller) {
            return Entry::Pass;
        }
        let cx = &(*thread).cx;
        // What is called by the outer call is called from below its own return address.
        let is_above = cx.stack.holds(caller.sp) && cx.stack.holds(outer_sp) && caller.sp >= outer_sp;
        let back = match way_out(caller, outer_sp, cx) {
            Reached::OuterCall if state == IN_REAL => return Entry::Pass,
            Reached::Neither if is_above => {
                // The outer call's frame is gone: it was left by a jump.
                if home == RECORDING {
                    Memo::forget((*thread).memo);
                    if let Err(why) = (*thread).ring.close_hole() {
                        go_without(thread, why);
                    }
                }
                home
            }
            _ => state,
        };
        let guard = begin(thread, caller, back);
        match home {
            RECORDING => Entry::Record(guard),
            COUNTING => Entry::Count(guard),
            STALLED => {
                (*thread).ring.note_lost();
                Entry::Pass
            }
            _ => Entry::Pass,
        }
    }
}

/// What a stack walk from a call during another one reaches first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// The other call: it called this one.
    OuterCall,
    /// A signal frame: a handler called this one.
    SignalFrame,
    /// The end, or code that cannot be walked through.
    Neither,
}

/// Walks out from `caller` to the hooked call whose stack pointer was `outer_sp`.
unsafe fn way_out(caller: Caller, outer_sp: usize, cx: &UnwindContext) -> Reached {
    /// The minimal size of a signal frame: the red zone, the registers, and those of the floating point unit.
    const SIGNAL_FRAME_BYTES_MIN: usize = 128 + 440 + 512;
    let mut met = Reached::Neither;
    let mut callee_is_ours = false;
    let mut is_guessed = false;
    // SAFETY: as in `enter`.
    unsafe {
        from_scratch::walk_each(caller, cx, |_, frame, _| {
            is_guessed |= frame.slot < outer_sp && is_guessed_way(frame);
            if frame.exact {
                met = Reached::SignalFrame;
            } else if frame.slot == outer_sp && callee_is_ours {
                met = Reached::OuterCall;
            }
            callee_is_ours = is_of_our_library(frame.ra);
            met == Reached::Neither
        })
    };
    // Code without tables, such as musl's: too close below the other call for a signal to have come between.
    let is_close = outer_sp.wrapping_sub(caller.sp) < SIGNAL_FRAME_BYTES_MIN;
    if met == Reached::Neither && is_guessed && is_close { Reached::OuterCall } else { met }
}

/// The addresses of our library; none while they are not known.
static LIBRARY_START: AtomicUsize = AtomicUsize::new(0);
static LIBRARY_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Stores where the library with the hooks is mapped, by an address in it. A call in progress is recognised by its
/// return address. If an exception or a jump has left it, another call's may be there; but only our hook's callee
/// returns to our library.
pub fn note_library(own: usize) {
    if let Some(object) = objects::find(own) {
        LIBRARY_START.store(object.start, Ordering::Relaxed);
        LIBRARY_BYTES.store(object.end.wrapping_sub(object.start), Ordering::Release);
    }
}

/// Returns whether the caller of a hooked function is one of our hooks.
///
/// # Safety
/// As [`super::enter`].
unsafe fn is_called_by_us(caller: Caller) -> bool {
    // SAFETY: by contract the return address is there.
    let is_ours = || is_of_our_library(unsafe { *(caller.sp as *const usize) });
    LIBRARY_BYTES.load(Ordering::Acquire) != 0 && is_ours()
}

fn is_of_our_library(address: usize) -> bool {
    let bytes = LIBRARY_BYTES.load(Ordering::Acquire);
    bytes == 0 || address.wrapping_sub(LIBRARY_START.load(Ordering::Relaxed)) < bytes
}

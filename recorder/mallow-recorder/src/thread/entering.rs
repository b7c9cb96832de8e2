//! A call begins: at once where its thread is between calls, slowly where it is not known, or in another call.

use super::nested::enter_nested;
use super::unrecorded::{WITHOUT_CHANNEL, become_ours};
use super::{Entry, Thread, begin, code_generation, current};
use crate::Caller;
use crate::channels::{self, NoChannel};
use crate::memo::Memo;
use crate::process;
use crate::ring::Writer;
use crate::stack_range::StackRange;
use crate::stamps::Stamps;
use crate::thread_status::{ABSENT, COUNTING, IN_HOOK, IN_REAL, PARKED, RECORDING, STALLED, ThreadStatus};
use crate::tls;
use core::sync::atomic::{AtomicU32, Ordering};

/// Begins a hooked call.
///
/// # Safety
/// `caller` holds the registers at the hooked function's entry.
#[inline(always)]
pub unsafe fn enter(caller: Caller) -> Entry {
    let thread = current();
    if !thread.is_null() {
        // SAFETY: a non-null word points at this thread's state, which stays mapped for the process's life.
        unsafe {
            let state = (*thread).status.state.load(Ordering::Relaxed);
            if state == RECORDING {
                return Entry::Record(begin(thread, caller, RECORDING));
            }
            if state == COUNTING {
                return Entry::Count(begin(thread, caller, COUNTING));
            }
        }
    }
    // SAFETY: by contract.
    unsafe { enter_slowly(caller) }
}

#[cold]
#[inline(never)]
unsafe fn enter_slowly(caller: Caller) -> Entry {
    // Read again: a handler that ran since may have been this thread's first call.
    let thread = current();
    // SAFETY: as in `enter`.
    unsafe {
        let state = if thread.is_null() { ABSENT } else { (*thread).status.state.load(Ordering::Relaxed) };
        match state {
            ABSENT if process::is_early() => Entry::Pass,
            ABSENT => enter_first(caller),
            RECORDING | COUNTING => enter_known(thread, state, caller),
            IN_REAL | IN_HOOK => enter_nested(thread, state, caller),
            PARKED if channels::wants_another_try() => enter_first(caller),
            STALLED if (*thread).ring.resume() => {
                Memo::forget((*thread).memo);
                (*thread).status.home.store(RECORDING, Ordering::Relaxed);
                enter_known(thread, RECORDING, caller)
            }
            STALLED => {
                (*thread).ring.note_lost();
                Entry::Pass
            }
            _ => Entry::Pass,
        }
    }
}

/// A call of a thread that is between calls.
unsafe fn enter_known(thread: *mut Thread, home: u32, caller: Caller) -> Entry {
    // SAFETY: as in `enter`.
    let guard = unsafe { begin(thread, caller, home) };
    if home == COUNTING { Entry::Count(guard) } else { Entry::Record(guard) }
}

/// The first call of a thread, or of a process.
#[inline(never)]
unsafe fn enter_first(caller: Caller) -> Entry {
    // A handler that left by a jump would leave a channel without an owner.
    let _undisturbed = process::undisturbed();
    // SAFETY: as in `enter`.
    unsafe {
        let place = match channels::take_channel() {
            Ok(place) => place,
            Err(NoChannel::Full) => {
                WITHOUT_CHANNEL.take();
                return Entry::Pass;
            }
            Err(NoChannel::Hidden) => {
                process::header().threads_locked_in.fetch_add(1, Ordering::Relaxed);
                become_ours();
                return Entry::Pass;
            }
            Err(NoChannel::NotRecorded) => return Entry::Pass,
        };
        let thread = place.thread.cast::<Thread>();
        let home = if place.counts { COUNTING } else { RECORDING };
        let memo = if place.counts { core::ptr::null_mut() } else { place.memo };
        if !place.counts && memo.is_null() {
            // The address space is limited. As with channels, what is not recorded is counted.
            channels::release(place.channel);
            WITHOUT_CHANNEL.take();
            return Entry::Pass;
        }
        if !memo.is_null() {
            Memo::forget(memo);
        }
        // From the moment at which the thread is known, a handler interrupts a call in progress. Field by field,
        // because a whole one on the stack would be a good part of a call's stack usage.
        let (state, home_word) = (AtomicU32::new(IN_HOOK), AtomicU32::new(home));
        (&raw mut (*thread).status).write(ThreadStatus { state, home: home_word });
        (&raw mut (*thread).outer_sp).write(caller.sp);
        (&raw mut (*thread).channel).write(place.channel);
        (&raw mut (*thread).ring).write(Writer::new(place.channel, place.ring));
        (&raw mut (*thread).memo).write(memo);
        (&raw mut (*thread).cx.generation).write(code_generation());
        (&raw mut (*thread).cx.pid).write(place.pid);
        (&raw mut (*thread).stamps).write(Stamps::of_channel(place.index));
        (&raw mut (*thread).last_address).write(0);
        (&raw mut (*thread).tag).write(place.index as u8);
        let stack = if process::is_filtered() {
            StackRange::default()
        } else {
            StackRange::of_this_thread(caller.sp)
        };
        (&raw mut (*thread).cx.stack).write(stack);
        tls::set(thread.cast());
        enter_known(thread, home, caller)
    }
}

/// Has the calling thread take a channel, unless it has one, so that its number is known before it allocates.
pub fn make_known() {
    let (sp, bp): (usize, usize);
    // SAFETY: reads two registers.
    unsafe {
        core::arch::asm!("mov {}, rsp", "mov {}, rbp", out(reg) sp, out(reg) bp, options(nomem, nostack))
    };
    // SAFETY: the registers of a call that begins and ends here.
    drop(unsafe { enter(Caller { sp, bp }) });
}

//! The state of the calling thread: may its call be recorded?
//!
//! A thread's state lies in memory that a forked child sees as zeros. So one word tells at once whether
//! this thread is known, whether the process was forked, and whether this call interrupts another one of ours:
//!
//! ```text
//! ABSENT ──first call──> RECORDING or COUNTING ──hooked call──> IN_REAL (the allocator runs) ──> IN_HOOK (we write) ──> back
//! ```
//!
//! A call that finds IN_HOOK comes from a signal handler: nothing that we call while IN_HOOK allocates. A
//! call that finds IN_REAL comes from a signal handler or from the allocator itself (its `calloc` may call
//! the exported `malloc`). The stack between the two calls decides, because only a handler has a signal frame
//! there. Calls of handlers are recorded, calls of allocators are not.
//!
//! A call that was left by `longjmp` or an exception never returns. It is detected because the stack pointer is now above it,
//! and the walk finds neither it nor a signal frame. The height alone is not enough: an alternate signal stack may be a local
//! array of `main`, and lie above everything. Until the stack pointer has been above that call, calls are recorded like those of
//! handlers, each with a walk of its own.
//!
//! The state is written before everything that it protects, and reset after it: a handler that runs between two
//! instructions finds either a call that has not begun or one that is in progress.
//!
//! A thread that finds no channel is parked in a state of its own, so that its further calls cost a count and not a search.
//!
//! Known limit: threads of execution that share one thread-local word (a raw `clone(CLONE_VM)` without one, a fiber that a
//! signal handler moves to another thread) share this state, and their calls are attributed to each other.

mod closing;
mod entering;
mod nested;
mod unrecorded;

use crate::Caller;
use crate::from_scratch;
use crate::memo::Memo;
use crate::process::{self, THREAD_BYTES};
use crate::ring::{Unwritten, Writer};
use crate::script::{code_log, with_script};
use crate::stamps::Stamps;
use crate::thread_status::{IN_HOOK, IN_REAL, RECORDING, STALLED, ThreadStatus};
use crate::tls;
use crate::unloads;
use crate::walk::UnwindContext;
pub use closing::{before_closing, before_dispatch, before_filter};
use core::sync::atomic::{Ordering, compiler_fence};
pub use entering::{enter, make_known};
use mallow_wire::shared::{Channel, NODE_ROOT};
pub use nested::note_library;
pub use unrecorded::{become_ours, unrecorded};

/// A thread's state.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Thread {
    pub(crate) status: ThreadStatus,
    /// The stack pointer of the hooked call in progress.
    pub(crate) outer_sp: usize,
    /// This thread's channel.
    pub channel: *const Channel,
    /// The channel's ring.
    pub ring: Writer,
    /// The last stack.
    pub memo: *mut Memo,
    /// The inputs of stack walks.
    pub cx: UnwindContext,
    /// Decides which events get a time stamp.
    pub stamps: Stamps,
    /// The block that this thread allocated last, for counting temporary ones.
    pub last_address: usize,
    /// Marks this thread's blocks among others'.
    pub tag: u8,
}

const _: () = assert!(
    size_of::<Thread>() <= THREAD_BYTES && align_of::<Thread>() <= align_of::<process::ForkCleared>()
);

/// How often code was removed that kept frames may refer to: unloaded, or freed by a JVM.
#[inline(always)]
fn code_generation() -> u64 {
    unloads::generation().wrapping_add(code_log::deaths_behind_stacks())
}

/// The calling thread's state; null before its first call.
#[inline(always)]
pub(crate) fn current() -> *mut Thread {
    tls::get().cast()
}

/// A hooked call that will be recorded. Its owner may use the thread's state; dropping it ends the call.
#[derive(Debug)]
pub struct Guard {
    thread: *mut Thread,
    /// The state to return to, with the outer call's stack pointer when this one interrupts it.
    back: u32,
    back_sp: usize,
}

/// A hooked call in progress, whose owner may use the thread's state.
pub trait Recording {
    /// This thread's state.
    fn thread(&self) -> *mut Thread;

    /// Returns whether the memo is this call's: not if the call interrupts another one that may be using it.
    fn uses_memo(&self) -> bool;

    /// From here on we are at work, not the allocator.
    #[inline(always)]
    fn in_hook(&self) {
        // SAFETY: the call's thread is this thread.
        unsafe { (*self.thread()).status.state.store(IN_HOOK, Ordering::Relaxed) };
    }

    /// From here on the allocator is at work.
    #[inline(always)]
    fn in_real(&self) {
        // SAFETY: the call's thread is this thread.
        unsafe { (*self.thread()).status.state.store(IN_REAL, Ordering::Relaxed) };
    }

    /// Writes a record, with its time if it needs one ([`crate::stamps`]); returns false if it is lost. To be called
    /// after the allocator has returned a block, or before it gets a block to free.
    #[inline(always)]
    fn push<const N: usize>(&self, words: [u64; N]) -> bool {
        let thread = self.thread();
        // SAFETY: the call's thread is this thread, and owns a channel.
        unsafe {
            match (*thread).ring.push((*thread).stamps.next(), words) {
                Ok(()) => true,
                Err(why) => go_without(thread, why),
            }
        }
    }

    /// The stack node of the caller.
    ///
    /// # Safety
    /// `caller` holds the registers at the hooked function's entry, and the call has not returned.
    #[inline(always)]
    unsafe fn node(&self, caller: Caller) -> u32 {
        // What the memo keeps meanwhile is compared with the stack before it is used, as ever.
        if process::header().order.without_stacks.load(Ordering::Relaxed) != 0 {
            return NODE_ROOT;
        }
        let thread = self.thread();
        // SAFETY: the call is the proof that nobody else uses this thread's memo, unless it interrupts another one.
        unsafe {
            let cx = &mut (*thread).cx;
            cx.generation = code_generation();
            let node = if self.uses_memo() {
                Memo::node((*thread).memo, caller, cx)
            } else {
                from_scratch::node_from_scratch(caller, cx)
            };
            #[cfg(feature = "verify")]
            crate::verify::compare(node, caller, cx);
            if self.uses_memo() { with_script(node, &raw mut (*(*thread).memo).script) } else { node }
        }
    }
}

/// What to do with a hooked call.
#[derive(Debug)]
pub enum Entry {
    /// Call the allocator and record it.
    Record(Guard),
    /// Call the allocator and count it.
    Count(Guard),
    /// Call the allocator.
    Pass,
}

#[inline(always)]
unsafe fn begin(thread: *mut Thread, caller: Caller, back: u32) -> Guard {
    // SAFETY: the caller passes this thread's state.
    Guard { thread, back, back_sp: unsafe { begin_call(thread, caller) } }
}

/// Notes that a call is in progress. Returns the stack pointer of the one before it.
///
/// # Safety
/// `thread` is this thread's state.
#[inline(always)]
pub(crate) unsafe fn begin_call(thread: *mut Thread, caller: Caller) -> usize {
    // SAFETY: by contract.
    unsafe {
        // The state first: otherwise a handler between the two would count as a first call, and leave its own stack
        // pointer behind.
        (*thread).status.state.store(IN_REAL, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        core::mem::replace(&mut (*thread).outer_sp, caller.sp)
    }
}

impl Guard {
    /// Returns whether this call interrupts another one of the same thread.
    #[inline(always)]
    pub fn is_nested(&self) -> bool {
        self.back == IN_REAL || self.back == IN_HOOK
    }
}

impl Recording for Guard {
    #[inline(always)]
    fn thread(&self) -> *mut Thread {
        self.thread
    }

    #[inline(always)]
    fn uses_memo(&self) -> bool {
        self.back == RECORDING
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard's thread is this thread.
        unsafe {
            let thread = self.thread;
            let nested = self.is_nested();
            if nested {
                (*thread).outer_sp = self.back_sp;
            }
            compiler_fence(Ordering::SeqCst);
            let back = if nested { self.back } else { (*thread).status.home.load(Ordering::Relaxed) };
            (*thread).status.state.store(back, Ordering::Relaxed);
        }
    }
}

/// A record of the calling thread could not be written: its further calls are counted as lost until there is room again, or pass by for
/// good. Always false.
///
/// # Safety
/// `thread` is this thread's state.
#[cold]
#[inline(never)]
unsafe fn go_without(thread: *mut Thread, why: Unwritten) -> bool {
    // SAFETY: by contract.
    unsafe {
        match why {
            Unwritten::Silent => (*thread).status.home.store(STALLED, Ordering::Relaxed),
            Unwritten::Left => {
                process::end();
                (*thread).status.switch_off();
            }
        }
    }
    false
}

/// Ends recording: on this thread now, on others when their rings are full.
pub fn stop() {
    process::end();
    if let Some(thread) = ThreadStatus::current() {
        thread.switch_off();
    }
}

/// Returns whether the calling thread is the one that began the process, as far as it is known. Makes no system call.
pub fn is_main() -> bool {
    let thread = current();
    // SAFETY: as above; a channel that is not null stays mapped.
    unsafe {
        !thread.is_null()
            && !(*thread).channel.is_null()
            && (*(*thread).channel).tid.load(Ordering::Relaxed) == process::header().pid
    }
}

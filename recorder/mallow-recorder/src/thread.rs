//! Who is calling, and may the call be recorded?
//!
//! A thread's state lives in memory that a forked child sees as zeros, so one word answers at once whether
//! this thread is known, whether we were forked, and whether this call interrupts another one of ours:
//!
//! ```text
//! ABSENT ──first call──> RECORDING or COUNTING ──hooked call──> IN_REAL (the allocator runs) ──> IN_HOOK (we write) ──> back
//! ```
//!
//! A call that finds IN_HOOK comes from a signal handler: nothing that we call while IN_HOOK allocates. A
//! call that finds IN_REAL comes from a signal handler or from the allocator itself (its `calloc` may call
//! the exported `malloc`): the stack between the two calls tells, because only a handler has a signal frame
//! there. Handlers are recorded, allocators are not. A call that was left by `longjmp` never comes back; it
//! is recognised because the stack is now above it.

use crate::Caller;
use crate::memo::{self, Memo};
use crate::process;
use crate::stack_range::StackRange;
use crate::tls;
use crate::walk::Surroundings;
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::shared::Lane;

/// What the thread is doing. 0 after a fork.
const ABSENT: u32 = 0;
const RECORDING: u32 = 1;
const COUNTING: u32 = 2;
const IN_REAL: u32 = 3;
const IN_HOOK: u32 = 4;
const OFF: u32 = 5;

/// A thread's state.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Thread {
    state: AtomicU32,
    /// The state between calls.
    home: AtomicU32,
    /// The stack pointer of the hooked call under way.
    outer_sp: usize,
    /// This thread's lane.
    pub lane: *const Lane,
    /// The lane's ring.
    pub ring: *mut u64,
    /// The value of the lane's head up to which the ring is known to have room.
    pub head_limit: u64,
    /// The last stack.
    pub memo: *mut Memo,
    /// What walks need to know.
    pub around: Surroundings,
    /// The block that this thread allocated last, for counting temporary ones.
    pub last_address: usize,
    /// Marks this thread's blocks among others'.
    pub tag: u8,
}

/// A hooked call that will be recorded. Whoever holds it may use the thread's state; dropping it is leaving.
#[derive(Debug)]
pub struct Guard {
    thread: *mut Thread,
    /// The state to return to, with the outer call's stack pointer when this one interrupts it.
    back: u32,
    back_sp: usize,
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

/// Begins a hooked call.
///
/// # Safety
/// `caller` holds the registers at the hooked function's entry.
#[inline(always)]
pub unsafe fn enter(caller: Caller) -> Entry {
    let thread = tls::get();
    if !thread.is_null() {
        // SAFETY: a non-null word points at this thread's state, which stays mapped for the process's life.
        unsafe {
            let state = (*thread).state.load(Ordering::Relaxed);
            if state == RECORDING {
                return Entry::Record(begin(thread, caller, RECORDING));
            }
            if state == COUNTING {
                return Entry::Count(begin(thread, caller, COUNTING));
            }
        }
    }
    // SAFETY: by contract.
    unsafe { enter_slowly(thread, caller) }
}

/// A hooked call that is only counted, of a thread that does nothing else of ours meanwhile: nearly every call under
/// `stat`. Cheaper than a [`Guard`], because there is nothing to return to but counting.
#[derive(Debug)]
pub struct Counted {
    thread: *mut Thread,
}

/// Begins a hooked call if it is of that kind; the others go through [`enter`].
///
/// # Safety
/// As [`enter`].
#[inline(always)]
pub unsafe fn enter_counting(caller: Caller) -> Option<Counted> {
    let thread = tls::get();
    if thread.is_null() {
        return None;
    }
    // SAFETY: as in `enter`.
    unsafe {
        if (*thread).state.load(Ordering::Relaxed) != COUNTING {
            return None;
        }
        (*thread).outer_sp = caller.sp;
        (*thread).state.store(IN_REAL, Ordering::Relaxed);
    }
    Some(Counted { thread })
}

impl Counted {
    /// This thread's state.
    #[inline(always)]
    pub fn thread(&self) -> *mut Thread {
        self.thread
    }
}

impl Drop for Counted {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread's state.
        unsafe { (*self.thread).state.store(COUNTING, Ordering::Relaxed) };
    }
}

#[inline(always)]
unsafe fn begin(thread: *mut Thread, caller: Caller, back: u32) -> Guard {
    // SAFETY: the caller passes this thread's state.
    unsafe {
        let back_sp = (*thread).outer_sp;
        (*thread).outer_sp = caller.sp;
        (*thread).state.store(IN_REAL, Ordering::Relaxed);
        Guard { thread, back, back_sp }
    }
}

impl Guard {
    /// This thread's state.
    #[inline(always)]
    pub fn thread(&self) -> *mut Thread {
        self.thread
    }

    /// From here on we are at work, not the allocator.
    #[inline(always)]
    pub fn in_hook(&self) {
        // SAFETY: the guard's thread is this thread.
        unsafe { (*self.thread).state.store(IN_HOOK, Ordering::Relaxed) };
    }

    /// From here on the allocator is at work.
    #[inline(always)]
    pub fn in_real(&self) {
        // SAFETY: the guard's thread is this thread.
        unsafe { (*self.thread).state.store(IN_REAL, Ordering::Relaxed) };
    }

    /// The stack node of the caller.
    ///
    /// # Safety
    /// `caller` holds the registers at the hooked function's entry, and the call has not returned.
    #[inline(always)]
    pub unsafe fn node(&self, caller: Caller) -> u32 {
        // SAFETY: the guard is the proof that nobody else uses this thread's memo, unless it interrupts
        // another call.
        unsafe {
            let around = &mut (*self.thread).around;
            around.generation = process::generation();
            let node = if self.back == RECORDING {
                Memo::node((*self.thread).memo, caller, around)
            } else {
                memo::node_from_scratch(caller, around)
            };
            #[cfg(feature = "verify")]
            crate::verify::compare(node, caller, around);
            node
        }
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard's thread is this thread.
        unsafe {
            let thread = self.thread;
            let nested = self.back == IN_REAL || self.back == IN_HOOK;
            if nested {
                (*thread).outer_sp = self.back_sp;
            }
            let back = if nested { self.back } else { (*thread).home.load(Ordering::Relaxed) };
            (*thread).state.store(back, Ordering::Relaxed);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn enter_slowly(thread: *mut Thread, caller: Caller) -> Entry {
    // SAFETY: as in `enter`.
    unsafe {
        let state = if thread.is_null() { ABSENT } else { (*thread).state.load(Ordering::Relaxed) };
        match state {
            ABSENT => enter_first(caller),
            IN_REAL | IN_HOOK => enter_nested(thread, state, caller),
            _ => Entry::Pass,
        }
    }
}

/// The first call of a thread, or of a process.
unsafe fn enter_first(caller: Caller) -> Entry {
    // SAFETY: as in `enter`.
    unsafe {
        let Some(place) = process::take_lane() else { return Entry::Pass };
        let thread = place.thread;
        let home = if place.counts { COUNTING } else { RECORDING };
        let memo = if place.counts { core::ptr::null_mut() } else { place.memo };
        if !place.counts && memo.is_null() {
            return Entry::Pass;
        }
        thread.write(Thread {
            state: AtomicU32::new(OFF),
            home: AtomicU32::new(home),
            outer_sp: 0,
            lane: place.lane,
            ring: place.ring,
            head_limit: 0,
            memo,
            around: Surroundings {
                stack: StackRange::of_this_thread(caller.sp),
                generation: process::generation(),
                pid: place.pid,
            },
            last_address: 0,
            tag: place.tag,
        });
        if !memo.is_null() {
            Memo::reset(memo);
        }
        tls::set(thread);
        let guard = begin(thread, caller, home);
        if place.counts { Entry::Count(guard) } else { Entry::Record(guard) }
    }
}

/// A call during another call of ours on the same thread.
unsafe fn enter_nested(thread: *mut Thread, state: u32, caller: Caller) -> Entry {
    // SAFETY: as in `enter`.
    unsafe {
        let home = (*thread).home.load(Ordering::Relaxed);
        let outer_sp = (*thread).outer_sp;
        let around = &(*thread).around;
        let both_on_own_stack = around.stack.holds(caller.sp) && around.stack.holds(outer_sp);
        let back = if both_on_own_stack && caller.sp > outer_sp {
            // The outer call's frame is gone: it was left by a jump.
            if !(*thread).memo.is_null() {
                Memo::reset((*thread).memo);
            }
            home
        } else if state == IN_REAL && called_by_allocator(caller, outer_sp, around) {
            return Entry::Pass;
        } else {
            state
        };
        let guard = begin(thread, caller, back);
        match home {
            RECORDING => Entry::Record(guard),
            COUNTING => Entry::Count(guard),
            _ => Entry::Pass,
        }
    }
}

/// Whether the stack leads from `caller` to the outer hooked call without a signal frame between them.
unsafe fn called_by_allocator(caller: Caller, outer_sp: usize, around: &Surroundings) -> bool {
    let mut reached = false;
    // SAFETY: as in `enter`.
    unsafe {
        memo::walk_each(caller, around, |_, frame| {
            reached = frame.slot == outer_sp;
            !reached && !frame.exact
        })
    };
    reached
}

/// The state of threads of ours in the program: their calls pass by.
static OURS: Unrecorded = Unrecorded(Thread {
    state: AtomicU32::new(OFF),
    home: AtomicU32::new(OFF),
    outer_sp: 0,
    lane: core::ptr::null(),
    ring: core::ptr::null_mut(),
    head_limit: 0,
    memo: core::ptr::null_mut(),
    around: Surroundings { stack: StackRange { start: 0, end: 0 }, generation: 0, pid: 0 },
    last_address: 0,
    tag: 0,
});

struct Unrecorded(Thread);

// SAFETY: nobody writes a state that is OFF, and its pointers are null.
unsafe impl Sync for Unrecorded {}

/// Makes the calling thread one of ours: it is never recorded.
pub fn become_ours() {
    tls::set((&raw const OURS.0).cast_mut());
}

/// Does something on the program's own thread that is not to be recorded.
pub fn unrecorded(work: impl FnOnce()) {
    let own = tls::get();
    become_ours();
    work();
    tls::set(own);
}

/// Ends recording on the calling thread for good.
///
/// # Safety
/// `thread` is this thread's state.
pub unsafe fn switch_off(thread: *mut Thread) {
    // SAFETY: by contract.
    unsafe { (*thread).home.store(OFF, Ordering::Relaxed) };
}

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

use crate::Caller;
use crate::channels::{self, NoChannel};
use crate::filters;
use crate::from_scratch;
use crate::memo::Memo;
use crate::objects;
use crate::process::{self, THREAD_BYTES};
use crate::ring::{Unwritten, Writer};
use crate::script::{code_log, with_script};
use crate::stack_range::StackRange;
use crate::stamps::Stamps;
use crate::thread_status::{
    ABSENT, COUNTING, IN_HOOK, IN_REAL, OFF, PARKED, RECORDING, STALLED, ThreadStatus,
};
use crate::tls;
use crate::unloads;
use crate::walk::{UnwindContext, is_guessed as is_guessed_way};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};
use mallow_wire::shared::{Channel, NODE_ROOT};

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
                tls::set((&raw const WITHOUT_CHANNEL.0).cast_mut().cast());
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
            tls::set((&raw const WITHOUT_CHANNEL.0).cast_mut().cast());
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

/// A call during another call of ours on the same thread.
#[inline(never)]
unsafe fn enter_nested(thread: *mut Thread, state: u32, caller: Caller) -> Entry {
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
/// As [`enter`].
unsafe fn is_called_by_us(caller: Caller) -> bool {
    // SAFETY: by contract the return address is there.
    let is_ours = || is_of_our_library(unsafe { *(caller.sp as *const usize) });
    LIBRARY_BYTES.load(Ordering::Acquire) != 0 && is_ours()
}

fn is_of_our_library(address: usize) -> bool {
    let bytes = LIBRARY_BYTES.load(Ordering::Acquire);
    bytes == 0 || address.wrapping_sub(LIBRARY_START.load(Ordering::Relaxed)) < bytes
}

/// The state of threads of ours in the program: their calls pass by.
static OURS: Unrecorded = Unrecorded::new(OFF);
/// The state of the program's threads for which there was no channel: their calls are counted as lost.
static WITHOUT_CHANNEL: Unrecorded = Unrecorded::new(PARKED);

struct Unrecorded(Thread);

impl Unrecorded {
    const fn new(state: u32) -> Unrecorded {
        Unrecorded(Thread {
            status: ThreadStatus { state: AtomicU32::new(state), home: AtomicU32::new(state) },
            outer_sp: 0,
            channel: core::ptr::null(),
            ring: Writer::none(),
            memo: core::ptr::null_mut(),
            cx: UnwindContext { stack: StackRange { start: 0, end: 0 }, generation: 0, pid: 0 },
            stamps: Stamps::of_channel(0),
            last_address: 0,
            tag: 0,
        })
    }
}

// SAFETY: nobody writes a state that is OFF or PARKED, and its pointers are null.
unsafe impl Sync for Unrecorded {}

/// Makes the calling thread one of ours: it is never recorded.
pub fn become_ours() {
    tls::set((&raw const OURS.0).cast_mut().cast());
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

/// Does something on the program's own thread that is not to be recorded.
pub fn unrecorded(work: impl FnOnce()) {
    let own = current();
    become_ours();
    work();
    tls::set(own.cast());
}

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

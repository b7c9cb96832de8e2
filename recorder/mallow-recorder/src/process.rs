//! Global state of the recorder in its process: the shared memory, and whether recording has ended.
//!
//! All state that must not survive a fork is in one mapping that the kernel clears in the child (`ForkCleared`, and the
//! threads' states behind it). Statics are inherited, and hold what is true of the child as well.

use crate::own_limits;
use crate::sys;
use crate::thread_status::ThreadStatus;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use mallow_wire::shared::*;

/// The state that a fork clears, before the states of all threads.
#[repr(C, align(64))]
pub(crate) struct ForkCleared {
    /// 0: not started; the id of the thread that is starting us; or [`READY`].
    pub(crate) stage: AtomicU32,
    /// The shared memory of this process; null before there is one.
    pub(crate) shared: AtomicPtr<u8>,
}

/// No thread has this id: the kernel's are below 2^22.
pub(crate) const READY: u32 = u32::MAX;
/// The room for a thread's state.
pub(crate) const THREAD_BYTES: usize = 256;
const FORK_CLEARED_BYTES: usize =
    (size_of::<ForkCleared>() + CHANNEL_COUNT_MAX * THREAD_BYTES).next_multiple_of(PAGE_BYTES);

static FORK_CLEARED: AtomicPtr<ForkCleared> = AtomicPtr::new(core::ptr::null_mut());
static SHARED: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// As it was when the process registered: later a filter may forbid reading it.
static ADDRESS_LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// A filter of system calls was set, in this process or one that it was forked from.
static FILTERED: AtomicBool = AtomicBool::new(false);
/// The program has locked its memory.
static LOCKED: AtomicBool = AtomicBool::new(false);
/// How much private memory this process may have that it can write.
static DATA_LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// How much of that is ours.
static DATA_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Recording has ended, or never began: no session requested it, or the collector has ended.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Returns the mapping that forks clear, created by whichever thread comes first. Without it recording ends.
pub(crate) fn fork_cleared() -> Option<&'static ForkCleared> {
    let known = FORK_CLEARED.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: mapped for the process's life; zeros are a valid value.
        return Some(unsafe { &*known });
    }
    let fresh = sys::map_private(FORK_CLEARED_BYTES);
    // SAFETY: the mapping is ours.
    if fresh.is_null() || unsafe { sys::wipe_on_fork(fresh, FORK_CLEARED_BYTES) } != 0 {
        end();
        return None;
    }
    // SAFETY: as above.
    unsafe { sys::keep_small(fresh, FORK_CLEARED_BYTES, sys::Sharing::Private) };
    match FORK_CLEARED.compare_exchange(
        core::ptr::null_mut(),
        fresh.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        // SAFETY: as above. A mapping that lost the race stays unused: it costs address space only.
        Ok(_) => Some(unsafe { &*fresh.cast() }),
        // SAFETY: as above.
        Err(other) => Some(unsafe { &*other }),
    }
}

/// The room for the state of the thread that owns a channel. Zeros at first, and in a forked child.
///
/// # Safety
/// The process has started, and `index` is one of its channels.
pub(crate) unsafe fn thread_room(index: usize) -> *mut u8 {
    // SAFETY: by contract; there is room for each channel's thread behind `ForkCleared`.
    unsafe { FORK_CLEARED.load(Ordering::Relaxed).add(1).cast::<u8>().add(index * THREAD_BYTES) }
}

/// Makes the shared memory that was installed the one that everybody finds; false when there is none.
pub(crate) fn use_installed(fork_cleared: &ForkCleared) -> bool {
    let shared = fork_cleared.shared.load(Ordering::Acquire);
    if !shared.is_null() {
        SHARED.store(shared, Ordering::Release);
    }
    !shared.is_null()
}

/// Logs scripts' code in a memory of its own, where nothing is recorded: for `mallow cpu`. In a forked child again.
///
/// # Safety
/// The memory begins with a header's page, has a log of code where shared memory has one, and stays mapped.
pub unsafe fn log_scripts_in(shared: *mut u8) {
    // SAFETY: by contract; nobody else in this process writes there yet.
    unsafe { (*shared.cast::<Header>()).pid = sys::getpid() };
    SHARED.store(shared, Ordering::Release);
}

/// Returns whether the memory of scripts is that of the parent, as in a child of `vfork`.
pub fn is_of_parent() -> bool {
    !shared().is_null() && header().pid != sys::getpid()
}

/// Returns the shared memory. Only after `take_channel` returned a channel, or [`is_ready`] true.
#[inline(always)]
pub fn shared() -> *mut u8 {
    SHARED.load(Ordering::Relaxed)
}

/// Its header.
#[inline(always)]
pub fn header() -> &'static Header {
    // SAFETY: set before any thread can record, and mapped from then on.
    unsafe { &*shared().cast::<Header>() }
}

/// Its node table.
#[inline(always)]
pub fn nodes() -> *const Node {
    // SAFETY: within the shared memory.
    unsafe { shared().add(NODES_OFFSET).cast() }
}

/// Returns whether this process, not one that it was forked from, has shared memory.
pub fn is_ready() -> bool {
    let fork_cleared = FORK_CLEARED.load(Ordering::Acquire);
    // SAFETY: mapped for the process's life.
    !fork_cleared.is_null() && unsafe { !(*fork_cleared).shared.load(Ordering::Acquire).is_null() }
}

/// Returns whether this process has registered and it is not yet time to record it. Without a system call, as all calls of a program may
/// come before its time.
pub(crate) fn is_early() -> bool {
    is_ready() && header().is_early.load(Ordering::Relaxed) != 0
}

/// Says how the process is about to end.
pub fn will_exit(status: i32) {
    if is_ready() {
        header().exit_status.store(status as u32, Ordering::Relaxed);
        header().exit_kind.store(EXIT_STATUS, Ordering::Release);
    }
}

/// Ends recording: threads notice it at their next first call, or when their rings are full.
pub fn end() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Recording begins again, where it ended before there was anybody to record for.
pub(crate) fn resume() {
    STOPPED.store(false, Ordering::Relaxed);
}

/// Ends recording; whether this was the first to do so.
pub(crate) fn end_first() -> bool {
    !STOPPED.swap(true, Ordering::Relaxed)
}

/// An invariant is broken: a bug of ours. Recording ends, on this thread with the current call, and the header says
/// why. The program goes on.
#[cold]
#[inline(never)]
pub(crate) fn invariant_broke() {
    end();
    if let Some(thread) = ThreadStatus::current() {
        thread.switch_off();
    }
    if is_ready() {
        header().invariants_broken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns whether recording has ended.
pub fn has_ended() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Returns how much address space the process may have.
pub fn address_limit_bytes() -> usize {
    ADDRESS_LIMIT_BYTES.load(Ordering::Relaxed)
}

/// Asks how much address space the process may have, and how much private memory in it.
pub fn note_memory_limits() {
    ADDRESS_LIMIT_BYTES.store(own_limits::soft_bytes(own_limits::ADDRESSES), Ordering::Relaxed);
    DATA_LIMIT_BYTES.store(own_limits::soft_bytes(own_limits::DATA), Ordering::Relaxed);
}

/// Returns whether so much more private memory of ours leaves the program most of what limits allow for both; it is ours then. `part` is how small a part we take
/// of its address space.
pub(crate) fn takes_private(bytes: usize, part: usize) -> bool {
    let most = (DATA_LIMIT_BYTES.load(Ordering::Relaxed) / 4).min(address_limit_bytes() / part);
    let has_room = DATA_BYTES.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most;
    if !has_room {
        DATA_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }
    has_room
}

/// Maps private memory for tables of a thread; null if the program needs it, or the kernel has none. It takes address space until it is used.
pub(crate) fn map_table(bytes: usize) -> *mut u8 {
    // The program keeps most of a limited address space.
    if !takes_private(bytes, 8) {
        return core::ptr::null_mut();
    }
    let table = sys::map_private(bytes);
    if !table.is_null() && !is_filtered() {
        // SAFETY: the mapping is ours.
        unsafe { sys::keep_small(table, bytes, sys::Sharing::Private) };
    }
    table
}

/// The program locks its memory: what is resident is not what is in use.
pub fn note_locked() {
    LOCKED.store(true, Ordering::Relaxed);
    if is_ready() && !is_filtered() && !is_borrowed() {
        header().is_locked.store(1, Ordering::Relaxed);
    }
}

/// Returns whether it did, or a process that this one was forked from.
pub(crate) fn is_locked() -> bool {
    LOCKED.load(Ordering::Relaxed)
}

/// A filter of system calls is about to be set: no file is opened from here on, and no forked child is registered.
pub fn note_filter() {
    FILTERED.store(true, Ordering::Relaxed);
    sys::note_filter();
}

/// Blocks signals while the guard lives, so that no handler leaves the code in progress by a jump. After a seccomp
/// filter was set, unnecessary system calls are avoided.
pub fn undisturbed() -> Option<sys::Undisturbed> {
    (!is_filtered()).then(sys::Undisturbed::begin)
}

/// Returns whether the caller is a `vfork` child, which has its parent's memory: what it does to itself does not become of the parent.
pub fn is_borrowed() -> bool {
    is_ready() && header().pid != sys::getpid()
}

/// Returns whether there is one.
pub fn is_filtered() -> bool {
    FILTERED.load(Ordering::Relaxed)
}

/// Copies pieces of memory that may not be mapped, one after the other; returns false unless all of them could be
/// read. After a seccomp filter was set it checks each page instead, as a filter may forbid the system call that
/// copies. Known limit: another thread may unmap a page in that moment.
///
/// # Safety
/// `into` has room for them.
pub unsafe fn copy_checked(pieces: &[[usize; 2]], into: *mut u8) -> bool {
    if !is_filtered() {
        // Before it is registered a process has no header.
        let pid = if is_ready() { header().pid } else { sys::getpid() };
        // SAFETY: by contract.
        return unsafe { sys::copy_checked(pid, pieces, into) };
    }
    let mut into = into;
    for [address, bytes] in pieces {
        let Some(end) = address.checked_add(*bytes) else { return false };
        let pages = (*address & !(PAGE_BYTES - 1)..end).step_by(PAGE_BYTES);
        if !pages.clone().all(sys::is_readable) {
            return false;
        }
        // SAFETY: readable by the check; by contract there is room.
        unsafe {
            core::ptr::copy_nonoverlapping(*address as *const u8, into, *bytes);
            into = into.add(*bytes);
        }
    }
    true
}

/// A word that may not be mapped.
pub fn word_checked(address: usize) -> Option<usize> {
    let mut word = 0;
    // SAFETY: there is room for a word.
    unsafe { copy_checked(&[[address, 8]], (&raw mut word).cast()) }.then_some(word)
}

//! What each kind of call records: a record in the ring, or sums in the channel.
//!
//! The hooks call this module: the preloaded library for the functions of C and C++, `mallow-alloc` for a
//! program's own allocator. The real allocator is a closure, called at most once on every path.

use crate::Caller;
use crate::counted::Counted;
use crate::recorded::Recordable;
use crate::shadow::{self, Heap};
use crate::stat::{self, Rest};
use crate::thread::{Entry, Guard, Recording, Thread, enter};
use crate::way_in::{WayIn, enter_recording, way_in};
pub use mallow_wire::event::Kind;
use mallow_wire::event::{size_saturated, word0, word1};

/// An allocating call: `call` returns the block, or null. `kind` is that of its record when there is a block.
///
/// # Safety
/// `caller` holds the registers at the hooked function's entry.
#[inline(always)]
pub unsafe fn allocating(
    heap: Heap,
    kind: Kind,
    caller: Caller,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: by contract.
    unsafe {
        match way_in() {
            WayIn::Counting(thread) => allocating_counted(thread.begin(caller), heap, size, call),
            WayIn::Recordable(thread) => allocating_out_of_line(thread, kind, caller, size, call),
            WayIn::Other => allocating_slowly(heap, kind, caller, size, call),
        }
    }
}

/// An allocating call that is only counted.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn allocating_counted(
    counted: Counted,
    heap: Heap,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    let block = call();
    // SAFETY: the allocator has given the block.
    unsafe {
        match stat::allocated_at_once(counted.thread(), heap, block as usize, size) {
            Rest::Nothing => block,
            Rest::Everything => count_after(counted, heap, block, size),
            Rest::Publish => publish_after(counted, block),
        }
    }
}

/// What a hook ends with when a few instructions did not do: a jump, so that it has nothing to keep meanwhile.
#[cold]
#[inline(never)]
unsafe fn count_after(counted: Counted, heap: Heap, block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: by contract of the hook.
    unsafe { count_allocation(counted.thread(), heap, block, size) };
    block
}

#[cold]
#[inline(never)]
unsafe fn publish_after(counted: Counted, block: *mut u8) -> *mut u8 {
    // SAFETY: as above.
    unsafe { stat::publish_balance(counted.thread()) };
    block
}

#[inline(always)]
unsafe fn count_allocation(thread: *mut Thread, heap: Heap, block: *mut u8, size: usize) {
    // SAFETY: this thread's state.
    unsafe {
        if block.is_null() {
            stat::failed(thread);
        } else {
            stat::allocated(thread, heap, block as usize, size);
        }
    }
}

/// So that a call that is only counted does not save the registers that recording needs.
#[inline(never)]
unsafe fn allocating_out_of_line(
    thread: Recordable,
    kind: Kind,
    caller: Caller,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { allocating_recorded(&thread.begin(caller), kind, caller, size, call) }
}

/// An allocating call that is recorded, or counted beside other work of ours, or passed on.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn allocating_guarded(
    heap: Heap,
    kind: Kind,
    caller: Caller,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: by contract; the guards prove that the thread's state is ours to use.
    unsafe {
        match enter_recording(caller) {
            Some(recorded) => allocating_recorded(&recorded, kind, caller, size, call),
            None => allocating_slowly(heap, kind, caller, size, call),
        }
    }
}

/// An allocating call that is recorded.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn allocating_recorded(
    recording: &impl Recording,
    kind: Kind,
    caller: Caller,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    let block = call();
    recording.in_hook();
    // SAFETY: by contract of the hook.
    unsafe {
        if block.is_null() {
            write_failed(recording, size, caller);
        } else {
            write_sized(recording, kind, block, size, caller);
        }
    }
    block
}

/// A call that gave no block. Out of line: elsewhere the kind of a record is known when this is compiled.
#[cold]
#[inline(never)]
unsafe fn write_failed(recording: &impl Recording, size: usize, caller: Caller) {
    // SAFETY: by contract of the hook.
    unsafe { write_sized(recording, Kind::Failed, core::ptr::null_mut(), size, caller) };
}

/// A thread's first call, one that interrupts another, and those that are not recorded.
///
/// # Safety
/// As [`allocating`].
#[cold]
#[inline(never)]
pub unsafe fn allocating_slowly(
    heap: Heap,
    kind: Kind,
    caller: Caller,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: by contract of the hook; the guards prove that the thread's state is ours to use.
    unsafe {
        match enter(caller) {
            Entry::Record(guard) => allocating_recorded(&guard, kind, caller, size, call),
            Entry::Count(guard) => {
                let block = call();
                guard.in_hook();
                count_allocation(guard.thread(), heap, block, size);
                block
            }
            Entry::Pass => call(),
        }
    }
}

/// A call that frees `block`, which is not null.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn freeing(heap: Heap, caller: Caller, block: *mut u8, call: impl FnOnce()) {
    // SAFETY: by contract.
    unsafe {
        match way_in() {
            WayIn::Counting(thread) => match freeing_at_once(thread.begin(caller), heap, block, call) {
                Ok(()) => {}
                Err((Rest::Publish, call)) => published_out_of_line(call),
                Err((_, call)) => freeing_slowly(heap, caller, block, call),
            },
            WayIn::Recordable(thread) => freeing_out_of_line(thread, caller, block, call),
            WayIn::Other => freeing_slowly(heap, caller, block, call),
        }
    }
}

/// Counts and calls, if a few instructions do. Otherwise gives the call back; a hook ends with [`freeing_guarded`] or, if the balance is to be
/// published before the call, with [`freeing_published`], and has nothing to keep meanwhile.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn freeing_at_once<F: FnOnce()>(
    counted: Counted,
    heap: Heap,
    block: *mut u8,
    call: F,
) -> Result<(), (Rest, F)> {
    // SAFETY: the block is the caller's to free.
    unsafe {
        match stat::freed_at_once(counted.thread(), heap, block as usize) {
            Rest::Nothing => {
                call();
                Ok(())
            }
            Rest::Everything => Err((Rest::Everything, call)),
            Rest::Publish => {
                counted.go_on();
                Err((Rest::Publish, call))
            }
        }
    }
}

/// What is left of a call that was counted.
///
/// # Safety
/// Behind [`freeing_at_once`], on the same thread.
#[inline(always)]
pub unsafe fn freeing_published(call: impl FnOnce()) {
    // SAFETY: by contract.
    unsafe {
        let counted = Counted::gone_on();
        stat::publish_balance(counted.thread());
        call();
    }
}

/// As [`allocating_out_of_line`].
#[cold]
#[inline(never)]
unsafe fn published_out_of_line(call: impl FnOnce()) {
    // SAFETY: by contract.
    unsafe { freeing_published(call) };
}

/// As [`allocating_out_of_line`].
#[inline(never)]
unsafe fn freeing_out_of_line(thread: Recordable, caller: Caller, block: *mut u8, call: impl FnOnce()) {
    // SAFETY: by contract.
    unsafe { freeing_recorded(&thread.begin(caller), block, call) };
}

/// As [`allocating_guarded`].
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn freeing_guarded(heap: Heap, caller: Caller, block: *mut u8, call: impl FnOnce()) {
    // SAFETY: as in `allocating`.
    unsafe {
        match enter_recording(caller) {
            Some(recorded) => freeing_recorded(&recorded, block, call),
            None => freeing_slowly(heap, caller, block, call),
        }
    }
}

/// A freeing call that is recorded.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn freeing_recorded(recording: &impl Recording, block: *mut u8, call: impl FnOnce()) {
    recording.in_hook();
    recording.push([word0(Kind::Free, block as u64, 0)]);
    recording.in_real();
    call();
}

/// As [`allocating_slowly`].
///
/// # Safety
/// As [`allocating`].
#[cold]
#[inline(never)]
pub unsafe fn freeing_slowly(heap: Heap, caller: Caller, block: *mut u8, call: impl FnOnce()) {
    // SAFETY: as in `allocating_slowly`.
    unsafe {
        match enter(caller) {
            Entry::Record(guard) => freeing_recorded(&guard, block, call),
            Entry::Count(guard) => {
                guard.in_hook();
                stat::freed(guard.thread(), heap, block as usize);
                guard.in_real();
                call();
            }
            Entry::Pass => call(),
        }
    }
}

/// `realloc` of a live block. `call` returns the new block, or null: then the block was freed if `size` is 0, and is
/// still live if not.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn reallocating(
    heap: Heap,
    caller: Caller,
    block: *mut u8,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe {
        match enter_recording(caller) {
            Some(recorded) => reallocating_recorded(&recorded, 0, caller, block, size, call),
            None => reallocating_slowly(heap, caller, block, size, call),
        }
    }
}

/// `nested` is 1 if the call interrupts another one.
#[inline(always)]
unsafe fn reallocating_recorded(
    recording: &impl Recording,
    nested: u64,
    caller: Caller,
    block: *mut u8,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    recording.in_hook();
    // The old block is announced first: once the allocator has freed it, another thread may get its address.
    recording.push([word0(Kind::ReallocBegin, block as u64, nested)]);
    recording.in_real();
    let new = call();
    recording.in_hook();
    // SAFETY: by contract of the hook.
    unsafe {
        match (new.is_null(), size) {
            (true, 0) => _ = recording.push([word0(Kind::ReallocFreed, 0, 0)]),
            (true, _) => write_sized(recording, Kind::ReallocFailed, new, size, caller),
            (false, _) => write_sized(recording, Kind::ReallocDone, new, size, caller),
        }
    }
    new
}

/// As [`allocating_slowly`].
#[cold]
#[inline(never)]
unsafe fn reallocating_slowly(
    heap: Heap,
    caller: Caller,
    block: *mut u8,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: as in `allocating_slowly`.
    unsafe {
        match enter(caller) {
            Entry::Record(guard) => {
                reallocating_recorded(&guard, guard.is_nested() as u64, caller, block, size, call)
            }
            Entry::Count(guard) => count_realloc(heap, &guard, block, size, call),
            Entry::Pass => call(),
        }
    }
}

/// A reallocation that fails leaves the block as it was, so its size is remembered until the answer is known.
unsafe fn count_realloc(
    heap: Heap,
    guard: &Guard,
    block: *mut u8,
    size: usize,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    // SAFETY: as in `allocating`.
    unsafe {
        guard.in_hook();
        let before = shadow::set_aside(heap, block as usize);
        guard.in_real();
        let new = call();
        guard.in_hook();
        let thread = guard.thread();
        if new.is_null() && size > 0 {
            shadow::put_back(heap, block as usize, before);
            stat::failed(thread);
            return new;
        }
        stat::freed_aside(thread, block as usize, before);
        if !new.is_null() {
            stat::reallocated(thread);
            stat::allocated(thread, heap, new as usize, size);
        }
        new
    }
}

/// Writes a record with a size and the caller's stack.
///
/// # Safety
/// As [`allocating`].
#[inline(always)]
pub unsafe fn write_sized(
    recording: &impl Recording,
    kind: Kind,
    block: *mut u8,
    size: usize,
    caller: Caller,
) {
    // SAFETY: as in `allocating`.
    unsafe {
        let node = recording.node(caller);
        let size = size_saturated(size as u64);
        recording.push([word0(kind, block as u64, size), word1(size, node)]);
    }
}

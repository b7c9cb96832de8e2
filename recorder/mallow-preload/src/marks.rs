//! The functions by which a program says where a region begins and ends.
//!
//! Programs reference them weakly, so that they are null when nobody watches (`markers/c/mallow.h`). Without a session
//! that wants marks they do nothing.

use core::ffi::{CStr, c_char};
use mallow_family::export;
use mallow_recorder::thread::{Entry, Recording, enter};
use mallow_recorder::{Caller, bootstrap, marks};
use mallow_wire::event::Mark;
use mallow_wire::shared::{COUNTED_VALUES, FEATURE_MARKS};

export!(mallow_region_begin => work_begin, "rsi", "rdx");
export!(mallow_region_end => work_end, "rsi", "rdx");
export!(mallow_ops => work_operations, "rsi", "rdx");
export!(mallow_quiesce => work_settle, "rsi", "rdx");
export!(mallow_tell => work_tell, "rdx", "rcx");

unsafe extern "C" fn work_begin(name: *const c_char, sp: usize, bp: usize) {
    // SAFETY: the exported function passed its caller's registers; the program passed a name.
    unsafe { mark(Caller { sp, bp }, Mark::Begin, text(name), 0) };
}

unsafe extern "C" fn work_end(name: *const c_char, sp: usize, bp: usize) {
    // SAFETY: as in `work_begin`.
    unsafe { mark(Caller { sp, bp }, Mark::End, text(name), 0) };
}

unsafe extern "C" fn work_operations(count: u64, sp: usize, bp: usize) {
    // SAFETY: as in `work_begin`.
    unsafe { mark(Caller { sp, bp }, Mark::Operations, b"", count) };
}

unsafe extern "C" fn work_settle(_: usize, sp: usize, bp: usize) {
    // SAFETY: as in `work_begin`.
    unsafe { mark(Caller { sp, bp }, Mark::Settle, b"", 0) };
}

unsafe extern "C" fn work_tell(what: *const c_char, value: u64, sp: usize, bp: usize) {
    // SAFETY: as in `work_begin`.
    unsafe { mark(Caller { sp, bp }, Mark::Reported, text(what), value) };
}

export!(mallow_count_begin => work_count_begin, "rdi", "rsi");
export!(mallow_count_end => work_count_end, "rdx", "rcx");

/// Returns 0, or -1 when nothing will be counted.
unsafe extern "C" fn work_count_begin(sp: usize, bp: usize) -> i32 {
    // SAFETY: as in `work_begin`.
    if unsafe { begin_count(Caller { sp, bp }) } { 0 } else { -1 }
}

/// Returns how many values were written; 0 when nothing was counted, or not everything.
unsafe extern "C" fn work_count_end(values: *mut u64, count: usize, sp: usize, bp: usize) -> usize {
    if values.is_null() {
        return 0;
    }
    // SAFETY: as in `work_begin`; the program passed room for so many values.
    unsafe {
        end_count(Caller { sp, bp }, core::slice::from_raw_parts_mut(values, count.min(COUNTED_VALUES)))
    }
}

/// From here on the calling thread is counted, under whichever command records events; returns false if it will not be.
///
/// # Safety
/// As [`mark`].
pub(crate) unsafe fn begin_count(caller: Caller) -> bool {
    // SAFETY: by contract.
    unsafe {
        match enter(caller) {
            Entry::Record(guard) => {
                guard.in_hook();
                marks::begin_count(&guard)
            }
            Entry::Count(_) | Entry::Pass => false,
        }
    }
}

/// Ends that; returns how many values were written.
///
/// # Safety
/// As [`mark`].
pub(crate) unsafe fn end_count(caller: Caller, values: &mut [u64]) -> usize {
    // SAFETY: by contract.
    unsafe {
        match enter(caller) {
            Entry::Record(guard) => {
                guard.in_hook();
                marks::end_count(&guard, values)
            }
            Entry::Count(_) | Entry::Pass => 0,
        }
    }
}

unsafe fn text<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return b"";
    }
    // SAFETY: by the functions' contract.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

/// Writes a mark, when somebody wants it.
///
/// # Safety
/// `caller` holds the registers at the exported function's entry.
pub(crate) unsafe fn mark(caller: Caller, what: Mark, name: &[u8], value: u64) {
    if bootstrap::watches(FEATURE_MARKS) != Some(true) {
        return;
    }
    // SAFETY: by contract.
    unsafe {
        if let Entry::Record(guard) = enter(caller) {
            guard.in_hook();
            marks::mark(&guard, what, name, value);
        }
    }
}

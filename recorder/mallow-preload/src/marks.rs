//! The functions by which a program says where a region begins and ends.
//!
//! Programs reference them weakly, so that they are null when nobody watches (`markers/c/mallow.h`). Without a session
//! that wants marks they do nothing.

use core::ffi::{CStr, c_char};
use mallow_family::export;
use mallow_recorder::thread::{Entry, enter};
use mallow_recorder::{Caller, bootstrap, marks};
use mallow_wire::event::Mark;
use mallow_wire::shared::FEATURE_MARKS;

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

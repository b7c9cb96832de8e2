//! The moment before a thread locks itself in.
//!
//! A seccomp filter kills who makes a call that it does not list, and ours are not on anybody's list: shared memory is made, the
//! collector spoken to, `/proc` read. All of that is done before the restriction closes, for the thread that closes it. Strict mode
//! allows four calls, and forbids the time stamp instruction with them, as does `PR_SET_TSC`: such a thread is not recorded any
//! further. Who goes on with rights that other threads do not have is left by the thread of ours, and
//! so is who wants namespaces that only a process of one thread may have. Programs come here through functions of the C library, or through `syscall` where that has
//! none.

use crate::{helper_thread, locking, starts};
use mallow_recorder::export_before;
use mallow_recorder::real::Real;
use mallow_recorder::sandbox::{Restriction, is_exit, of_prctl, of_setns, of_syscall, of_unshare};
use mallow_recorder::{Caller, process, thread};

static PRCTL: Real = Real::named(c"prctl");
static SYSCALL: Real = Real::named(c"syscall");
static UNSHARE: Real = Real::named(c"unshare");
static SETNS: Real = Real::named(c"setns");

/// Finds the real functions. Early, because that takes the loader's lock, which in a forked child, where these are mostly called, may be held by a thread
/// that the child does not have.
pub(crate) fn find_real() {
    for real in [&PRCTL, &SYSCALL, &UNSHARE, &SETNS] {
        let _ = real.address();
    }
}

export_before!(prctl => before_prctl);
export_before!(unshare => before_unshare);
export_before!(setns => before_setns);
export_before!(syscall => before_syscall);

unsafe extern "C" fn before_prctl(
    option: u64,
    value: u64,
    pointer: u64,
    fourth: u64,
    sp: usize,
    bp: usize,
) -> usize {
    // SAFETY: the registers of the call.
    unsafe { prepare(of_prctl(option, value, pointer, fourth), Caller { sp, bp }) };
    PRCTL.address()
}

unsafe extern "C" fn before_unshare(
    flags: u64,
    _second: u64,
    _third: u64,
    _fourth: u64,
    sp: usize,
    bp: usize,
) -> usize {
    // SAFETY: as above.
    unsafe { prepare(of_unshare(flags), Caller { sp, bp }) };
    UNSHARE.address()
}

unsafe extern "C" fn before_setns(
    _file: u64,
    kinds: u64,
    _third: u64,
    _fourth: u64,
    sp: usize,
    bp: usize,
) -> usize {
    // SAFETY: as above.
    unsafe { prepare(of_setns(kinds), Caller { sp, bp }) };
    SETNS.address()
}

unsafe extern "C" fn before_syscall(
    number: u64,
    first: u64,
    second: u64,
    third: u64,
    sp: usize,
    bp: usize,
) -> usize {
    // SAFETY: as above.
    unsafe { prepare(of_syscall(number, first, second, third), Caller { sp, bp }) };
    if is_exit(number, thread::is_main) {
        process::will_exit(first as i32);
    }
    let in_its_place = starts::by_syscall(number).or_else(|| locking::done_by_syscall(number, first));
    in_its_place.unwrap_or_else(|| SYSCALL.address())
}

unsafe fn prepare(restriction: Restriction, caller: Caller) {
    // SAFETY: by contract.
    unsafe {
        match restriction {
            Restriction::Open => {}
            _ if process::is_borrowed() => {}
            Restriction::Filtered(program) => {
                thread::before_filter(caller, program as usize);
            }
            Restriction::Closed => thread::before_closing(caller),
            Restriction::Dispatched => thread::before_dispatch(caller),
            Restriction::Rights | Restriction::Alone => helper_thread::end(),
        }
    }
}

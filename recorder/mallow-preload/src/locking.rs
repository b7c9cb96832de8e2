//! A program that locks its memory locks nothing of the recorder's ([`mallow_recorder::locking`]).

use core::ffi::c_int;
use core::mem::transmute;
use mallow_recorder::locking;
use mallow_recorder::real::Real;

static MLOCKALL: Real = Real::named(c"mlockall");

/// `mlockall`, without the recorder's memory.
///
/// # Safety
/// As `mlockall`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if locking::lock_all(flags) {
        return 0;
    }
    match MLOCKALL.address() {
        0 => -1,
        // SAFETY: the symbol has this type by POSIX.
        real => unsafe { transmute::<usize, unsafe extern "C" fn(c_int) -> c_int>(real)(flags) },
    }
}

/// Does the same where `syscall` asks for it. Returns the address of a function that goes on, if it is done.
pub(crate) fn done_by_syscall(number: u64, flags: u64) -> Option<usize> {
    const SYS_MLOCKALL: u64 = 151;
    extern "C" fn success() -> isize {
        0
    }
    (number == SYS_MLOCKALL && locking::lock_all(flags as c_int)).then_some(success as *const () as usize)
}

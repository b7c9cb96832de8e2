//! Exits, which the header remembers, and unloads, after which addresses mean something else.

use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use mallow_recorder::real::Real;
use mallow_recorder::unloads::Unload;
use mallow_recorder::{process, resident, rules, script, sys};

global_asm!(".weak on_exit");

static ON_EXIT: Real = Real::named(c"on_exit");
static DLCLOSE: Real = Real::named(c"dlclose");
static EXIT_NOW: Real = Real::named(c"_exit");

/// Has libc tell us the status when the program ends in the ordinary way. Handlers run in reverse order, so
/// ours runs late.
pub(crate) fn watch() {
    extern "C" fn exiting(status: c_int, _: *mut c_void) {
        resident::note();
        process::will_exit(status);
    }
    // That of a library: an executable's own, which a sanitizer's runtime brings, cannot be called yet. A static executable has no other.
    let mut on_exit = ON_EXIT.address();
    // SAFETY: reads the global offset table; the entry is 0 when libc has no `on_exit` (musl).
    unsafe {
        if on_exit == 0 {
            asm!("mov {}, qword ptr [rip + on_exit@GOTPCREL]", out(reg) on_exit, options(nostack, preserves_flags, pure, readonly));
        }
        if on_exit != 0 {
            type OnExit = unsafe extern "C" fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;
            transmute::<usize, OnExit>(on_exit)(exiting, core::ptr::null_mut());
        }
    }
}

/// `_exit`, which runs no handlers.
///
/// # Safety
/// As `_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    resident::note();
    process::will_exit(status);
    let real = EXIT_NOW.address();
    if real != 0 {
        // SAFETY: the symbol has this type by POSIX.
        unsafe { transmute::<usize, unsafe extern "C" fn(c_int)>(real)(status) };
    }
    sys::exit_group(status)
}

/// `_exit` and `_Exit` of a static executable, where one of them may be the other one's name.
pub(crate) unsafe extern "C" fn exit_at_once(status: c_int) -> ! {
    resident::note();
    process::will_exit(status);
    sys::exit_group(status)
}

/// `_Exit`, the same in C.
///
/// # Safety
/// As `_Exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the two are one function.
    unsafe { _exit(status) }
}

/// `dlclose`. When it unloads code, what is known about its addresses is forgotten.
///
/// # Safety
/// As `dlclose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let real = DLCLOSE.address();
    if real == 0 {
        return -1;
    }
    script::before_unload();
    let unload = Unload::begin();
    // SAFETY: the symbol has this type by POSIX.
    let answer = unsafe { transmute::<usize, unsafe extern "C" fn(*mut c_void) -> c_int>(real)(handle) };
    unload.finish(rules::forget_vacated);
    script::after_unload();
    answer
}

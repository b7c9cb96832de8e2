//! Limits of the program's own, which hold for its memory and not for the recorder's ([`mallow_recorder::own_limits`]).

use core::ffi::c_int;
use core::mem::transmute;
use mallow_recorder::own_limits::{self, Pair};
use mallow_recorder::real::Real;
use mallow_recorder::{process, sys};

static SETRLIMIT: Real = Real::named(c"setrlimit");
static GETRLIMIT: Real = Real::named(c"getrlimit");
static PRLIMIT: Real = Real::named(c"prlimit");

/// Finds the real functions, early: in a forked child the loader's lock may be held by a thread that the child does not have.
pub(crate) fn find_real() {
    for real in [&SETRLIMIT, &GETRLIMIT, &PRLIMIT] {
        let _ = real.address();
    }
}

type Set = unsafe extern "C" fn(u32, *const Pair) -> c_int;
type Get = unsafe extern "C" fn(u32, *mut Pair) -> c_int;
type Both = unsafe extern "C" fn(c_int, u32, *const Pair, *mut Pair) -> c_int;

/// `setrlimit`.
///
/// # Safety
/// As `setrlimit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: u32, limits: *const Pair) -> c_int {
    // SAFETY: by contract; the symbol has this type by POSIX.
    unsafe {
        set(resource, limits, |limits| match SETRLIMIT.address() {
            0 => -1,
            real => transmute::<usize, Set>(real)(resource, limits),
        })
    }
}

/// The same, for files of any size.
///
/// # Safety
/// As `setrlimit64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: u32, limits: *const Pair) -> c_int {
    // SAFETY: by contract.
    unsafe { setrlimit(resource, limits) }
}

/// `getrlimit`.
///
/// # Safety
/// As `getrlimit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrlimit(resource: u32, limits: *mut Pair) -> c_int {
    // SAFETY: by contract; the symbol has this type by POSIX.
    unsafe {
        let answer = match GETRLIMIT.address() {
            0 => -1,
            real => transmute::<usize, Get>(real)(resource, limits),
        };
        tell(answer, resource, limits)
    }
}

/// The same, for files of any size.
///
/// # Safety
/// As `getrlimit64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrlimit64(resource: u32, limits: *mut Pair) -> c_int {
    // SAFETY: by contract.
    unsafe { getrlimit(resource, limits) }
}

/// `prlimit`, of this process or another one.
///
/// # Safety
/// As `prlimit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(pid: c_int, resource: u32, new: *const Pair, old: *mut Pair) -> c_int {
    let real = match PRLIMIT.address() {
        0 => return -1,
        // SAFETY: the symbol has this type.
        real => unsafe { transmute::<usize, Both>(real) },
    };
    let is_own = !process::is_filtered() && (pid == 0 || pid as u32 == sys::getpid());
    if !is_own {
        // SAFETY: by contract.
        return unsafe { real(pid, resource, new, old) };
    }
    let before = own_limits::asked(resource).filter(|_| !process::is_borrowed());
    // SAFETY: by contract.
    unsafe {
        let answer = set(resource, new, |new| real(pid, resource, new, old));
        if answer == 0
            && !old.is_null()
            && let Some(before) = before
        {
            *old = before;
        }
        answer
    }
}

/// The same, for files of any size.
///
/// # Safety
/// As `prlimit64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(pid: c_int, resource: u32, new: *const Pair, old: *mut Pair) -> c_int {
    // SAFETY: by contract.
    unsafe { prlimit(pid, resource, new, old) }
}

/// Has limits set, those of memory with what is ours.
unsafe fn set(resource: u32, limits: *const Pair, go: impl FnOnce(*const Pair) -> c_int) -> c_int {
    // Behind a filter of system calls those of ours may not be allowed. The child of a `vfork` has its parent's memory and limits of its own.
    if limits.is_null() || process::is_filtered() || process::is_borrowed() {
        return go(limits);
    }
    // SAFETY: by contract.
    let wanted = unsafe { *limits };
    let Some(wide) = own_limits::widened(resource, wanted) else { return go(limits) };
    let answer = go(&wide);
    if answer == 0 {
        own_limits::note(resource, wanted);
        process::note_memory_limits();
    }
    answer
}

/// Tells of a limit what the program has set.
unsafe fn tell(answer: c_int, resource: u32, limits: *mut Pair) -> c_int {
    let asked = own_limits::asked(resource).filter(|_| process::is_filtered() || !process::is_borrowed());
    if answer == 0
        && !limits.is_null()
        && let Some(asked) = asked
    {
        // SAFETY: by contract.
        unsafe { *limits = asked };
    }
    answer
}

/// A program takes the place of this one, unless that fails: it has the limits as they were set.
pub(crate) fn in_place<T>(go: impl FnOnce() -> T) -> T {
    if process::is_filtered() { go() } else { own_limits::as_asked(go) }
}

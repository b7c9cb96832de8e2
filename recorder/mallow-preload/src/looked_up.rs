//! `dlsym` and `dlvsym`: who looks `malloc` or `free` up in libc itself, by its handle, would go past what is preloaded. So does every
//! language that calls C by names: `ctypes.CDLL("libc.so.6").free` in Python, `DllImport("libc")` in C#, JNA in Java.
//!
//! The answer is ours where libc's function is the next one behind ours. Where it is another one (a library in between has a `malloc` of its
//! own, which goes on to libc's like this), calls of it are recorded on their way already.

use crate::deep_binding::{self, or_nothing};
use core::ffi::{CStr, c_char};
use core::mem::transmute;
use mallow_family::hook_of;
use mallow_recorder::real::Real;

static DLSYM: Real = Real::named(c"dlsym");
static DLVSYM: Real = Real::named(c"dlvsym");

/// Exports a function that returns what `$work` finds, and otherwise jumps to the real one: that looks at who has called it
/// (`RTLD_NEXT`).
macro_rules! export_look_up {
    ($name:ident => $work:ident) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "call {work}",
                "mov r11, rdx",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz 2f",
                "ret",
                "2: jmp r11",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

export_look_up!(dlsym => look_up);
export_look_up!(dlvsym => look_up_version);

/// Finds the real functions. Early, because that takes the loader's lock.
pub(crate) fn find_real() {
    for real in [&DLSYM, &DLVSYM] {
        let _ = real.address();
    }
}

/// In `rax` and `rdx`.
#[repr(C)]
struct Answer {
    /// What was looked up; 0 when the real function is to be asked.
    found: usize,
    /// The real function.
    real: usize,
}

unsafe extern "C" fn look_up(handle: usize, name: *const c_char) -> Answer {
    type DlSym = unsafe extern "C" fn(usize, *const c_char) -> usize;
    let real = or_nothing(DLSYM.address());
    // SAFETY: the function has this type by POSIX; the arguments are the caller's.
    let ask = || unsafe { transmute::<usize, DlSym>(real)(handle, name) };
    // SAFETY: by contract.
    Answer { found: unsafe { found(handle, name, ask) }, real }
}

unsafe extern "C" fn look_up_version(handle: usize, name: *const c_char, version: *const c_char) -> Answer {
    type DlVSym = unsafe extern "C" fn(usize, *const c_char, *const c_char) -> usize;
    let real = or_nothing(DLVSYM.address());
    // SAFETY: the function has this type in every libc that has it; the arguments are the caller's.
    let ask = || unsafe { transmute::<usize, DlVSym>(real)(handle, name, version) };
    // SAFETY: by contract.
    Answer { found: unsafe { found(handle, name, ask) }, real }
}

/// Returns the hook of a function of the malloc family, if `ask` finds what is behind the hook.
unsafe fn found(handle: usize, name: *const c_char, ask: impl FnOnce() -> usize) -> usize {
    deep_binding::lead_to_hooks(handle);
    const RTLD_DEFAULT: usize = 0;
    const RTLD_NEXT: usize = usize::MAX;
    if matches!(handle, RTLD_DEFAULT | RTLD_NEXT) || name.is_null() {
        return 0;
    }
    // SAFETY: by contract a string.
    let Some((hook, real)) = hook_of(unsafe { CStr::from_ptr(name) }.to_bytes()) else { return 0 };
    let found = ask();
    if found != 0 && found == real.address() { hook } else { 0 }
}

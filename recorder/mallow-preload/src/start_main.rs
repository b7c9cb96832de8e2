//! The moment at which `main` is called, for those who count from there, for the helper_thread, which begins there, and for runtimes that are
//! asked for something.
//!
//! libc's start function is given the address of `main`. It is given one of ours instead, which leaves its mark and goes
//! on by a jump, so no frame of ours stands below `main`. Sessions that want nothing of this never see it.

use crate::helper_thread;
use crate::marks;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_recorder::real::Real;
use mallow_recorder::runtimes::{self, MainArguments};
use mallow_recorder::{Caller, bootstrap};
use mallow_wire::event::Mark;
use mallow_wire::shared::{FEATURE_HELPER_THREAD, FEATURE_MARKS};

static START: Real = Real::named(c"__libc_start_main");
/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// `__libc_start_main`: all of its arguments go on, the first one perhaps exchanged.
///
/// # Safety
/// As the function that it stands for, which is called by the program's entry alone.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main() {
    naked_asm!(
        // An odd number of words: the stack is aligned at the call, as it was before ours.
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {exchange}",
        // In place of the first argument.
        "mov qword ptr [rsp + 48], rax",
        "call {real}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
        exchange = sym exchange, real = sym real
    )
}

/// Gives the address to call as `main`.
unsafe extern "C" fn exchange(main: usize) -> usize {
    if bootstrap::watches(FEATURE_MARKS | FEATURE_HELPER_THREAD) != Some(true) && !runtimes::is_concerned() {
        return main;
    }
    MAIN.store(main, Ordering::Relaxed);
    entered as *const () as usize
}

/// libc's start function. Without one nothing can be started.
unsafe extern "C" fn real() -> usize {
    match START.address() {
        0 => mallow_recorder::sys::exit_group(127),
        address => address,
    }
}

/// Stands for `main`.
#[unsafe(naked)]
unsafe extern "C" fn entered() {
    naked_asm!(
        "push rdi", "push rsi", "push rdx",
        "lea rdi, [rsp + 24]", "mov rsi, rbp", "mov rdx, rsp",
        "call {work}",
        "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
        work = sym work
    )
}

/// `main` points at the words that were pushed, which are what it is called with.
unsafe extern "C" fn work(sp: usize, bp: usize, main: &mut MainArguments) -> usize {
    // SAFETY: the registers of libc's call.
    unsafe { marks::mark(Caller { sp, bp }, Mark::Main, b"", 0) };
    helper_thread::begin();
    // SAFETY: libc's arguments, before the program's first instruction.
    unsafe { runtimes::ask(main) };
    MAIN.load(Ordering::Relaxed)
}

//! The moment before a thread locks itself in.
//!
//! A seccomp filter kills who makes a call that it does not list, and ours are not on anybody's list: shared memory is made, the
//! collector spoken to, `/proc` read. All of that is done before the door closes, for the thread that closes it. Strict mode
//! allows four calls, and forbids the time stamp instruction with them, as does `PR_SET_TSC`: such a thread is not recorded any
//! further. Programs come here through `prctl` or, as the C library has no function for it, through `syscall`.

use crate::real::Real;
use core::arch::naked_asm;
use mallow_recorder::sandbox::{Door, is_exit, of_prctl, of_syscall};
use mallow_recorder::{Caller, process, thread};

static PRCTL: Real = Real::named(c"prctl");
static SYSCALL: Real = Real::named(c"syscall");

/// Exports a function that tells `$work` its first four arguments and its caller's registers, and goes on by a jump to the address
/// that it gives.
macro_rules! export_before {
    ($name:ident => $work:ident) => {
        #[doc = concat!("`", stringify!($name), "`, passed on.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "push r9", ".cfi_adjust_cfa_offset 8",
                // How many vector registers hold arguments.
                "push rax", ".cfi_adjust_cfa_offset 8",
                "lea r8, [rsp + 56]", "mov r9, rbp",
                "call {work}",
                "mov r11, rax",
                "pop rax", ".cfi_adjust_cfa_offset -8",
                "pop r9", ".cfi_adjust_cfa_offset -8",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "jmp r11",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

export_before!(prctl => before_prctl);
export_before!(syscall => before_syscall);

unsafe extern "C" fn before_prctl(
    option: u64,
    value: u64,
    pointer: u64,
    _fourth: u64,
    sp: usize,
    bp: usize,
) -> usize {
    // SAFETY: the registers of the call.
    unsafe { prepare(of_prctl(option, value, pointer), Caller { sp, bp }) };
    PRCTL.address()
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
    SYSCALL.address()
}

unsafe fn prepare(door: Door, caller: Caller) {
    // SAFETY: by contract.
    unsafe {
        match door {
            Door::Open => {}
            _ if process::is_borrowed() => {}
            Door::Filtered => thread::before_filter(caller),
            Door::Closed => thread::before_closing(caller),
        }
    }
}

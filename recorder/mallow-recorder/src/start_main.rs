//! The moment at which `main` is called, for those who have something to do then.
//!
//! libc's start function is given the address of `main`. It is given one of ours instead, which does the work and goes on by a jump, so no frame of ours
//! stands below `main`. Who has nothing to do never sees it.

use crate::real::Real;
use core::sync::atomic::{AtomicUsize, Ordering};

static START: Real = Real::named(c"__libc_start_main");
/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// libc's start function. Without one nothing can be started.
pub fn real() -> usize {
    match START.address() {
        0 => crate::sys::exit_group(127),
        address => address,
    }
}

/// Keeps the address of `main`.
pub fn keep(main: usize) {
    MAIN.store(main, Ordering::Relaxed);
}

/// The program's `main`.
pub fn main() -> usize {
    MAIN.load(Ordering::Relaxed)
}

/// Exports `__libc_start_main`. `$is_wanted` returns whether there is something to do, `$work` does it: it gets the
/// stack and frame pointers of libc's call, and the arguments of `main`, which it may change.
#[macro_export]
macro_rules! export_start_main {
    ($is_wanted:path, $work:path) => {
        /// `__libc_start_main`: all of its arguments are passed on, the first one possibly replaced.
        ///
        /// # Safety
        /// As the function that it stands for, which is called by the program's entry alone.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __libc_start_main() {
            ::core::arch::naked_asm!(
                // An odd number of words: the stack is aligned at the call, as it was before ours.
                ".cfi_startproc",
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
                ".cfi_adjust_cfa_offset 56",
                "call {exchange}",
                // In place of the first argument.
                "mov qword ptr [rsp + 48], rax",
                "call {real}",
                "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                ".cfi_adjust_cfa_offset -56",
                "jmp rax",
                ".cfi_endproc",
                exchange = sym exchange_main, real = sym real_start
            )
        }

        /// Returns the address to call as `main`.
        unsafe extern "C" fn exchange_main(main: usize) -> usize {
            if !$is_wanted() {
                return main;
            }
            $crate::start_main::keep(main);
            entered_main as *const () as usize
        }

        unsafe extern "C" fn real_start() -> usize {
            $crate::start_main::real()
        }

        /// Called instead of `main`.
        #[unsafe(naked)]
        unsafe extern "C" fn entered_main() {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi", "push rsi", "push rdx",
                ".cfi_adjust_cfa_offset 24",
                "lea rdi, [rsp + 24]", "mov rsi, rbp", "mov rdx, rsp",
                "call {work}",
                "pop rdx", "pop rsi", "pop rdi",
                ".cfi_adjust_cfa_offset -24",
                "jmp rax",
                ".cfi_endproc",
                work = sym work_before_main
            )
        }

        /// `main` points at the words that were pushed, which are what it is called with.
        unsafe extern "C" fn work_before_main(
            sp: usize,
            bp: usize,
            main: &mut $crate::runtimes::MainArguments,
        ) -> usize {
            // SAFETY: libc's arguments, before the program's first instruction.
            unsafe { $work($crate::Caller { sp, bp }, main) };
            $crate::start_main::main()
        }
    };
}

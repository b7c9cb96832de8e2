//! `execl`, `execlp` and `execle`: their words are arguments, as many as there are. They become a list, as libc makes one, and go on
//! as `execv`, `execvp` and `execve`.
//!
//! libc's own go on inside of it, where nobody would note them.

use crate::starts;
use core::ffi::{c_char, c_int};
use mallow_recorder::session::Strings;

/// Words that are in registers: behind the path's, in `rsi`, `rdx`, `rcx`, `r8` and `r9`.
const IN_REGISTERS: usize = 5;

/// Exports a function whose words are arguments. It copies them to a list on its stack, whose length is theirs, and calls `$work`
/// with the path, the list, and where what is behind the words is: in registers, which are saved, and on the caller's stack.
macro_rules! export_list {
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
                "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "push r9", "push r8", "push rcx", "push rdx", "push rsi",
                // Words on the stack, with the null pointer behind them: none where that is in a register.
                "xor eax, eax",
                "test rsi, rsi", "jz 3f",
                "test rdx, rdx", "jz 3f",
                "test rcx, rcx", "jz 3f",
                "test r8, r8", "jz 3f",
                "test r9, r9", "jz 3f",
                "2: mov r10, [rbp + 16 + 8 * rax]",
                "inc rax",
                "test r10, r10", "jnz 2b",
                // The list. Above it is an odd number of words, so one more makes the call's stack even.
                "3: lea r10, [8 * rax + 8 * {in_registers} + 15]",
                "and r10, -16",
                "add r10, 8",
                "sub rsp, r10",
                "mov r11, rdi",
                "cld",
                "mov rdi, rsp", "lea rsi, [rbp - 8 * {in_registers}]", "mov ecx, {in_registers}", "rep movsq",
                "mov rcx, rax", "lea rsi, [rbp + 16]", "rep movsq",
                "mov rdi, r11", "mov rsi, rsp", "lea rdx, [rbp - 8 * {in_registers}]", "lea rcx, [rbp + 16]",
                "call {work}",
                "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                work = sym $work, in_registers = const IN_REGISTERS
            )
        }
    };
}

export_list!(execl => at_path);
export_list!(execlp => in_folders);
export_list!(execle => with_environment);

unsafe extern "C" fn at_path(path: *const c_char, words: Strings) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { starts::execv(path, words) }
}

unsafe extern "C" fn in_folders(name: *const c_char, words: Strings) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { starts::execvp(name, words) }
}

unsafe extern "C" fn with_environment(
    path: *const c_char,
    words: Strings,
    in_registers: Strings,
    on_stack: *const Strings,
) -> c_int {
    let mut count = 0;
    // SAFETY: the words end with a null pointer, and behind that is the environment.
    unsafe {
        while !(*words.add(count)).is_null() {
            count += 1;
        }
        let environment = match count + 1 {
            behind if behind < IN_REGISTERS => *in_registers.add(behind).cast::<Strings>(),
            behind => *on_stack.add(behind - IN_REGISTERS),
        };
        starts::execve(path, words, environment)
    }
}

//! What the library's exported functions consist of: a few instructions that leave no frame of ours and no register of the
//! caller's changed.

/// Exports a function that passes its arguments on, followed by the caller's stack pointer and frame pointer,
/// to the function that works. `$sp` and `$bp` are the registers of the next two arguments.
///
/// Code made by hand may call with a stack that is 8 bytes off. Allocators seldom notice, and our code would: such a call gets a
/// frame of ours that sets it right.
macro_rules! export {
    ($name:ident => $work:ident, $sp:literal, $bp:literal) => {
        #[doc = concat!("`", stringify!($name), "`, hooked.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                // A signal may strike here too, and its handler's stack be walked.
                ".cfi_startproc",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $bp, ", rbp"),
                "test spl, 8",
                "jz 2f",
                "jmp {work}",
                "2: push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "and rsp, -16",
                "call {work}",
                "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

/// Exports a function that jumps to its target, the entry `$index` of the table `$targets`. While that is 0, the target is
/// what `$resolve` gives for the index. Functions of up to five arguments.
macro_rules! export_by_target {
    ($name:ident, $index:literal of $targets:ident, $resolve:ident) => {
        #[doc = concat!("`", stringify!($name), "`, passed on or hooked.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rax, qword ptr [rip + {targets} + 8 * {index}]",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2: push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "mov edi, {index}",
                "call {resolve}",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                targets = sym $targets, resolve = sym $resolve, index = const $index
            )
        }
    };
}

pub(crate) use {export, export_by_target};

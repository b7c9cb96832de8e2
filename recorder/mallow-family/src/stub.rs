//! The machine code of exported functions: a few instructions that add no frame to the stack and change no register of the
//! caller.

#[cfg(feature = "gated")]
use mallow_recorder::{real::Real, watchers};

/// Exports a function that passes its arguments on, followed by the caller's stack pointer and frame pointer,
/// to the function that works. `$sp` and `$bp` are the registers of the next two arguments.
///
/// Code made by hand may call with a stack that is 8 bytes off. Allocators seldom notice, and our code would: such a call gets a
/// frame of ours that sets it right.
#[macro_export]
macro_rules! export {
    ($name:ident => $work:ident, $sp:literal, $bp:literal) => {
        #[doc = concat!("`", stringify!($name), "`, hooked.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
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
#[macro_export]
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
            ::core::arch::naked_asm!(
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

/// A function of the family that works through `$work` whenever it is called.
#[cfg(not(feature = "gated"))]
macro_rules! hooked {
    ($name:ident => $work:ident, $sp:literal, $bp:literal, $real:ident) => {
        $crate::export!($name => $work, $sp, $bp);
    };
}

/// A function of the family that goes on to the real one by a jump while nobody watches, and works through `$work` while somebody does.
/// Functions of up to five arguments.
#[cfg(feature = "gated")]
macro_rules! hooked {
    ($name:ident => $work:ident, $sp:literal, $bp:literal, $real:ident) => {
        #[doc = concat!("`", stringify!($name), "`, passed on or hooked.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[cfg_attr(not(feature = "wrapped"), unsafe(no_mangle))]
        #[cfg_attr(feature = "wrapped", unsafe(export_name = concat!("__wrap_", stringify!($name))))]
        pub unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                "2: test dword ptr [rip + {watched}], {watchers}",
                "jnz 3f",
                "mov rax, qword ptr [rip + {real}]",
                "test rax, rax",
                "jz 5f",
                "jmp rax",
                "3: test dword ptr [rip + {watched}], {unknown}",
                "jnz 5f",
                "4:",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $bp, ", rbp"),
                "test spl, 8",
                "jz 6f",
                "jmp {work}",
                "6: push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "and rsp, -16",
                "call {work}",
                "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
                "ret",
                "5: push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "lea rdi, [rip + {real}]",
                "call {prepare}",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jnz 2b",
                // Without a real one the work says so.
                "jmp 4b",
                ".cfi_endproc",
                watched = sym mallow_recorder::watchers::WATCHED,
                watchers = const $crate::stub::WATCHERS, unknown = const mallow_recorder::watchers::UNKNOWN,
                real = sym $real, prepare = sym $crate::stub::prepare, work = sym $work
            )
        }
    };
}

/// An operator that goes where the entry `$index` of `$targets` says, or `$resolve` while that is 0.
#[cfg(not(feature = "gated"))]
macro_rules! hooked_by_target {
    ($name:ident, $index:literal of $targets:ident, $resolve:ident, $reals:ident) => {
        $crate::export_by_target!($name, $index of $targets, $resolve);
    };
}

/// The same while somebody watches; while nobody does, the entry of `$reals`, if there is one.
#[cfg(all(feature = "gated", not(feature = "wrapped")))]
macro_rules! hooked_by_target {
    ($name:ident, $index:literal of $targets:ident, $resolve:ident, $reals:ident) => {
        #[doc = concat!("`", stringify!($name), "`, passed on or hooked.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                "2: test dword ptr [rip + {watched}], {watchers}",
                "jnz 3f",
                "mov rax, qword ptr [rip + {reals} + {real_bytes} * {index}]",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                "3: test dword ptr [rip + {watched}], {unknown}",
                "jnz 5f",
                "4: mov rax, qword ptr [rip + {targets} + 8 * {index}]",
                "test rax, rax",
                "jz 5f",
                "jmp rax",
                "5: push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "lea rdi, [rip + {reals} + {real_bytes} * {index}]",
                "call {prepare}",
                "mov edi, {index}",
                "call {resolve}",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "jmp 2b",
                ".cfi_endproc",
                watched = sym mallow_recorder::watchers::WATCHED,
                watchers = const $crate::stub::WATCHERS, unknown = const mallow_recorder::watchers::UNKNOWN,
                targets = sym $targets, reals = sym $reals, real_bytes = const size_of::<Real>(),
                prepare = sym $crate::stub::prepare, resolve = sym $resolve, index = const $index
            )
        }
    };
}

/// Those who are told of calls. Where a library is preloaded, the real function is its.
#[cfg(feature = "gated")]
pub(crate) const WATCHERS: u32 = watchers::OWN | watchers::UNKNOWN;

/// Finds out who watches, and the function's address; 0 when nobody defines it. The stack may be 8 bytes off.
#[cfg(feature = "gated")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn prepare() {
    ::core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
        "mov rbp, rsp", ".cfi_def_cfa_register rbp",
        "and rsp, -16",
        "call {work}",
        "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        work = sym find_both
    )
}

#[cfg(feature = "gated")]
unsafe extern "C" fn find_both(real: &Real) -> usize {
    watchers::watchers();
    real.address()
}

/// A function's name, its hook, and the real function.
#[cfg(not(any(feature = "wrapped", feature = "gated")))]
pub(crate) type NamedHook = (&'static str, unsafe extern "C" fn(), &'static mallow_recorder::real::Real);

/// Functions of the family, as for [`hooked`], and the list of their names, by which a program may look them up.
macro_rules! hooks {
    ($($name:ident => $work:ident, $sp:literal, $bp:literal, $real:ident;)*) => {
        $($crate::stub::hooked!($name => $work, $sp, $bp, $real);)*

        #[cfg(not(any(feature = "wrapped", feature = "gated")))]
        pub(crate) static HOOKS: &[$crate::stub::NamedHook] = &[$((stringify!($name), $name, &$real)),*];
    };
}

pub(crate) use hooked;
#[cfg(not(feature = "wrapped"))]
pub(crate) use hooked_by_target;
pub(crate) use hooks;

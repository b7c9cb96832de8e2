//! C++'s operators `new` and `delete`.
//!
//! libstdc++'s operators call `malloc` and `free`, where they are recorded like any other caller, so here
//! they are only passed on, by a jump. Allocators such as jemalloc, tcmalloc and mimalloc bring operators of
//! their own that never come by `malloc`: those are hooked. Which of the two it is is found out at each
//! operator's first call: the library that defines the next operator either defines `malloc` too, or it does
//! not.
//!
//! `operator new` may throw, and an exception must not pass through our frames. The hook therefore calls the
//! operator that does not throw, and when that gives nothing it jumps to the throwing one, which then throws
//! from its caller's point of view.
//!
//! Linked into a program, these may be its only operators: where libstdc++ is static, the linker takes them in place of its own. They give what
//! `malloc` gives then, and who can throw says so himself (`on_failure`).

use crate::family::{real_aligned_alloc, real_free, real_malloc};
use crate::stub::hooked_by_target;
use core::arch::naked_asm;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_recorder::bounds::at;
use mallow_recorder::calls::{Kind, allocating, freeing};
use mallow_recorder::real::Real;
use mallow_recorder::shadow::Heap;
#[cfg(feature = "gated")]
use mallow_recorder::watchers;
use mallow_recorder::{Caller, elf};

/// Exports operators. Each gets a target, found at its first call, and a hook, which the target may be.
macro_rules! operators {
    ($($index:literal $name:ident $text:literal $hook:ident = $kind:ident;)*) => {
        /// Where calls of each operator go; 0 before its first call.
        static TARGETS: [AtomicUsize; 20] = [const { AtomicUsize::new(0) }; 20];
        static REALS: [Real; 20] = [$(Real::named($text)),*];
        static HOOKS: [unsafe extern "C" fn(); 20] = [$($hook),*];

        $(
            hooked_by_target!($name, $index of TARGETS, resolve, REALS);
            $kind!($hook, $index);
        )*
    };
}

/// A hook for an operator that throws: arguments size and, if it takes one, alignment. Its frame is described
/// to unwinders: the walk that tells a signal handler's call from the allocator's own leads through it.
macro_rules! throwing {
    ($hook:ident, $index:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $hook() {
            naked_asm!(
                ".cfi_startproc",
                "push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
                "lea rcx, [rsp + 24]", "mov r8, rbp", "mov edx, {index}",
                "call {work}",
                "test rax, rax", "jnz 2f",
                "mov edi, {index}", "call {real}",
                "mov r11, rax", "xor eax, eax",
                "2: add rsp, 8", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "test rax, rax", "jz 3f",
                "ret",
                "3: jmp r11",
                ".cfi_endproc",
                work = sym work_new, real = sym real_operator, index = const $index
            )
        }
    };
}

/// A hook for an operator that gives null.
macro_rules! quiet {
    ($hook:ident, $index:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $hook() {
            naked_asm!("mov rcx, rsp", "mov r8, rbp", "mov edx, {index}", "jmp {work}", work = sym work_new, index = const $index)
        }
    };
}

/// A hook for an operator that frees, with up to two arguments after the block.
macro_rules! deleting {
    ($hook:ident, $index:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $hook() {
            naked_asm!("mov rcx, rsp", "mov r8, rbp", "mov r9d, {index}", "jmp {work}", work = sym work_delete, index = const $index)
        }
    };
}

operators! {
    0 _Znwm c"_Znwm" hook_new = throwing;
    1 _Znam c"_Znam" hook_new_array = throwing;
    2 _ZnwmSt11align_val_t c"_ZnwmSt11align_val_t" hook_new_aligned = throwing;
    3 _ZnamSt11align_val_t c"_ZnamSt11align_val_t" hook_new_array_aligned = throwing;
    4 _ZnwmRKSt9nothrow_t c"_ZnwmRKSt9nothrow_t" hook_new_nothrow = quiet;
    5 _ZnamRKSt9nothrow_t c"_ZnamRKSt9nothrow_t" hook_new_array_nothrow = quiet;
    6 _ZnwmSt11align_val_tRKSt9nothrow_t c"_ZnwmSt11align_val_tRKSt9nothrow_t" hook_new_aligned_nothrow = quiet;
    7 _ZnamSt11align_val_tRKSt9nothrow_t c"_ZnamSt11align_val_tRKSt9nothrow_t" hook_new_array_aligned_nothrow = quiet;
    8 _ZdlPv c"_ZdlPv" hook_delete = deleting;
    9 _ZdaPv c"_ZdaPv" hook_delete_array = deleting;
    10 _ZdlPvm c"_ZdlPvm" hook_delete_sized = deleting;
    11 _ZdaPvm c"_ZdaPvm" hook_delete_array_sized = deleting;
    12 _ZdlPvSt11align_val_t c"_ZdlPvSt11align_val_t" hook_delete_aligned = deleting;
    13 _ZdaPvSt11align_val_t c"_ZdaPvSt11align_val_t" hook_delete_array_aligned = deleting;
    14 _ZdlPvmSt11align_val_t c"_ZdlPvmSt11align_val_t" hook_delete_sized_aligned = deleting;
    15 _ZdaPvmSt11align_val_t c"_ZdaPvmSt11align_val_t" hook_delete_array_sized_aligned = deleting;
    16 _ZdlPvRKSt9nothrow_t c"_ZdlPvRKSt9nothrow_t" hook_delete_nothrow = deleting;
    17 _ZdaPvRKSt9nothrow_t c"_ZdaPvRKSt9nothrow_t" hook_delete_array_nothrow = deleting;
    18 _ZdlPvSt11align_val_tRKSt9nothrow_t c"_ZdlPvSt11align_val_tRKSt9nothrow_t" hook_delete_aligned_nothrow = deleting;
    19 _ZdaPvSt11align_val_tRKSt9nothrow_t c"_ZdaPvSt11align_val_tRKSt9nothrow_t" hook_delete_array_aligned_nothrow = deleting;
}

/// Returns whether calls are recorded by this copy of the recorder.
#[cfg(feature = "gated")]
fn is_recorded() -> bool {
    watchers::watchers() & watchers::OWN != 0
}

#[cfg(not(feature = "gated"))]
const fn is_recorded() -> bool {
    true
}

/// The first of the operators of each pair (single, array) that take an alignment; the first that do not
/// throw.
const ALIGNED: usize = 2;
const NOTHROW: usize = 4;
const ALIGNED_NOTHROW: usize = 6;

/// Finds out where an operator's calls go.
unsafe extern "C" fn resolve(index: usize) -> usize {
    let real = at(&REALS, index).address();
    let own = core::ptr::from_ref(&TARGETS) as usize;
    let target = if real != 0 && !elf::defined_beside(real, c"malloc", own) {
        real
    } else {
        *at(&HOOKS, index) as usize
    };
    if real != 0 {
        at(&TARGETS, index).store(target, Ordering::Relaxed);
    } else {
        missing::note(index, target);
    }
    target
}

/// The real operator, to jump to when the quiet one gave nothing. Without one there is nothing that could
/// throw.
unsafe extern "C" fn real_operator(index: usize) -> usize {
    match real(index) {
        0 => missing::thrower(index),
        address => address,
    }
}

fn real(index: usize) -> usize {
    if missing::is_noted() { 0 } else { at(&REALS, index).address() }
}

/// Where a recorded call of it goes on.
fn inner(index: usize) -> usize {
    if missing::is_noted() { 0 } else { at(&REALS, index).inner() }
}

/// Operators that nobody else defines. A library that is loaded later may bring them.
#[cfg(not(feature = "gated"))]
mod missing {
    pub(super) fn note(_index: usize, _target: usize) {}

    pub(super) const fn is_noted() -> bool {
        false
    }

    pub(super) fn thrower(_index: usize) -> usize {
        mallow_recorder::sys::exit_group(134)
    }
}

/// Operators that nobody else defines: they are ours from then on.
#[cfg(feature = "gated")]
mod missing {
    use super::*;
    use core::sync::atomic::AtomicBool;

    static ARE_OURS: AtomicBool = AtomicBool::new(false);
    /// What throws, without and with an alignment.
    pub(super) static THROWERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

    pub(super) fn note(index: usize, target: usize) {
        ARE_OURS.store(true, Ordering::Relaxed);
        at(&TARGETS, index).store(target, Ordering::Relaxed);
    }

    pub(super) fn is_noted() -> bool {
        ARE_OURS.load(Ordering::Relaxed)
    }

    pub(super) fn thrower(index: usize) -> usize {
        match at(&THROWERS, usize::from(is_aligned(index))).load(Ordering::Relaxed) {
            0 => mallow_recorder::sys::exit_group(134),
            address => address,
        }
    }
}

/// Says what stands for `operator new` where it failed and there is no other: it calls the program's handler as the standard asks, and throws.
/// The second one takes an alignment.
#[cfg(feature = "gated")]
pub fn on_failure(
    new: unsafe extern "C-unwind" fn(usize) -> *mut u8,
    new_aligned: unsafe extern "C-unwind" fn(usize, usize) -> *mut u8,
) {
    missing::THROWERS[0].store(new as usize, Ordering::Relaxed);
    missing::THROWERS[1].store(new_aligned as usize, Ordering::Relaxed);
}

fn is_aligned(index: usize) -> bool {
    matches!(index, ALIGNED | 3 | ALIGNED_NOTHROW | 7)
}

unsafe extern "C" fn work_new(size: usize, align: usize, index: usize, sp: usize, bp: usize) -> *mut u8 {
    let quiet = if index < NOTHROW { index + NOTHROW } else { index };
    // Any address will do for the tag argument: the operator's overload is its whole meaning.
    let tag = core::ptr::from_ref(&TARGETS) as usize;
    let call = move || {
        // SAFETY: the operators have these types by the C++ ABI.
        unsafe {
            match (inner(quiet), is_aligned(index)) {
                (0, false) => real_malloc(size),
                (0, true) => real_aligned_alloc(align, size),
                (address, false) => {
                    transmute::<usize, unsafe extern "C" fn(usize, usize) -> *mut u8>(address)(size, tag)
                }
                (address, true) => transmute::<usize, unsafe extern "C" fn(usize, usize, usize) -> *mut u8>(
                    address,
                )(size, align, tag),
            }
        }
    };
    if !is_recorded() {
        return call();
    }
    let kind = if is_aligned(index) { Kind::Aligned } else { Kind::Alloc };
    // SAFETY: the hook passed its caller's registers.
    unsafe { allocating(Heap::Operators, kind, Caller { sp, bp }, size, call) }
}

unsafe extern "C" fn work_delete(block: *mut u8, a: usize, b: usize, sp: usize, bp: usize, index: usize) {
    if block.is_null() {
        return;
    }
    let call = move || {
        // SAFETY: the operators take up to two arguments after the block.
        unsafe {
            match inner(index) {
                0 => real_free(block),
                address => {
                    transmute::<usize, unsafe extern "C" fn(*mut u8, usize, usize)>(address)(block, a, b)
                }
            }
        }
    };
    if !is_recorded() {
        call();
        return;
    }
    // SAFETY: the hook passed its caller's registers.
    unsafe { freeing(Heap::Operators, Caller { sp, bp }, block, call) };
}

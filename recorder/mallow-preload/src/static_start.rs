//! The beginning of a static executable, with this library mapped into it by mallow ([`mallow_wire::static_start`]).
//!
//! The program stands before its first instruction: libc has set up nothing, and `fs` leads to a block of thread-local storage that mallow
//! made for this moment. What is done here is what a loader would have had done, and then the program begins as if nothing had been.

use crate::static_objects;
use core::arch::naked_asm;
use mallow_recorder::session::Strings;
use mallow_wire::static_start::{ENTRY_OFFSET, STACK_OFFSET, StaticStart};

/// Where mallow has a static program begin, with its description as first argument. The registers are then what the kernel made them.
///
/// # Safety
/// Nobody else calls it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_start_static() {
    naked_asm!(
        "mov rbx, rdi",
        "and rsp, -16",
        "call {begin}",
        "mov rsp, qword ptr [rbx + {stack}]",
        "mov r11, qword ptr [rbx + {entry}]",
        "xor eax, eax", "xor ebx, ebx", "xor ecx, ecx", "xor edx, edx", "xor esi, esi", "xor edi, edi", "xor ebp, ebp",
        "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d",
        "xor r12d, r12d", "xor r13d, r13d", "xor r14d, r14d", "xor r15d, r15d",
        "jmp r11",
        begin = sym begin, stack = const STACK_OFFSET, entry = const ENTRY_OFFSET
    )
}

unsafe extern "C" fn begin(start: &'static StaticStart) {
    static_objects::note(start);
    // SAFETY: the kernel put the number of words there, behind it as many pointers and a null, and the environment behind that.
    let environment = unsafe {
        let words = start.stack as *const usize;
        words.add(*words + 2) as Strings
    };
    crate::start(0, 0, environment);
}

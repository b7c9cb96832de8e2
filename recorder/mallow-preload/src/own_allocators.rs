//! For allocators that a program brings along and that tell us of their calls: what is linked into it finds this table
//! (`mallow_recorder::outside`).
//!
//! What the allocator below calls in its turn, libc's `malloc` among it, is part of the same call and not counted again: the recorder knows it
//! by the frame from which the table's function was called, which stands until it has returned.

use core::arch::naked_asm;
use core::ffi::c_void;
use mallow_recorder::Caller;
use mallow_recorder::calls::{Kind, allocating, freeing, reallocating};
use mallow_recorder::outside::{Calls, Down};
use mallow_recorder::shadow::Heap;

/// The table. Each of its functions begins as our exported ones do, so that its frame is known by our library's code.
#[unsafe(no_mangle)]
pub static mallow_alloc_calls_v1: Calls =
    Calls { allocating: enter_allocating, freeing: enter_freeing, reallocating: enter_reallocating };

#[unsafe(naked)]
unsafe extern "C" fn enter_allocating(size: usize, down: Down, context: *mut c_void) -> *mut u8 {
    naked_asm!(".cfi_startproc", "mov rcx, rsp", "mov r8, rbp", "jmp {}", ".cfi_endproc", sym work_allocating)
}

#[unsafe(naked)]
unsafe extern "C" fn enter_freeing(block: *mut u8, down: Down, context: *mut c_void) {
    naked_asm!(".cfi_startproc", "mov rcx, rsp", "mov r8, rbp", "jmp {}", ".cfi_endproc", sym work_freeing)
}

#[unsafe(naked)]
unsafe extern "C" fn enter_reallocating(
    block: *mut u8,
    size: usize,
    down: Down,
    context: *mut c_void,
) -> *mut u8 {
    naked_asm!(".cfi_startproc", "mov r8, rsp", "mov r9, rbp", "jmp {}", ".cfi_endproc", sym work_reallocating)
}

unsafe extern "C" fn work_allocating(
    size: usize,
    down: Down,
    context: *mut c_void,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    // SAFETY: the registers at the entry; the program passes a function with what it wants to be called with.
    unsafe { allocating(Heap::Operators, Kind::Alloc, Caller { sp, bp }, size, move || down(context)) }
}

unsafe extern "C" fn work_freeing(block: *mut u8, down: Down, context: *mut c_void, sp: usize, bp: usize) {
    // SAFETY: as in `work_allocating`.
    unsafe { freeing(Heap::Operators, Caller { sp, bp }, block, move || _ = down(context)) };
}

unsafe extern "C" fn work_reallocating(
    block: *mut u8,
    size: usize,
    down: Down,
    context: *mut c_void,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    // SAFETY: as in `work_allocating`.
    unsafe { reallocating(Heap::Operators, Caller { sp, bp }, block, size, move || down(context)) }
}

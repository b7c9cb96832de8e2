//! glibc's second names of the malloc family. Who puts a `malloc` of his own in front of libc's often goes on by them, and others mix them with the
//! first ones: a block of `__libc_malloc` is freed by `free`.

use crate::stub::hooks;
use crate::work::{by_alignment, by_block, by_count, by_size, call_one, call_two};
use mallow_recorder::Caller;
use mallow_recorder::calls::{Kind, allocating, freeing_slowly, reallocating};
use mallow_recorder::real::Real;
use mallow_recorder::script;
use mallow_recorder::shadow::Heap;

hooks! {
    __libc_malloc => work_malloc, "rsi", "rdx", MALLOC;
    __libc_calloc => work_calloc, "rdx", "rcx", CALLOC;
    __libc_realloc => work_realloc, "rdx", "rcx", REALLOC;
    __libc_free => work_free, "rsi", "rdx", FREE;
    __libc_memalign => work_memalign, "rdx", "rcx", MEMALIGN;
    __libc_valloc => work_valloc, "rsi", "rdx", VALLOC;
    __libc_pvalloc => work_pvalloc, "rsi", "rdx", PVALLOC;
}

static MALLOC: Real = Real::named(c"__libc_malloc");
static CALLOC: Real = Real::named(c"__libc_calloc");
static REALLOC: Real = Real::named(c"__libc_realloc");
static FREE: Real = Real::named(c"__libc_free");
static MEMALIGN: Real = Real::named(c"__libc_memalign");
static VALLOC: Real = Real::named(c"__libc_valloc");
static PVALLOC: Real = Real::named(c"__libc_pvalloc");

by_size!(work_malloc, Alloc, MALLOC);
by_count!(work_calloc, CALLOC);
by_block!(work_realloc, REALLOC);
by_alignment!(work_memalign, MEMALIGN);
by_size!(work_valloc, Aligned, VALLOC);
by_size!(work_pvalloc, Aligned, PVALLOC);

unsafe extern "C" fn work_free(block: *mut u8, sp: usize, bp: usize) {
    if block.is_null() {
        return;
    }
    script::freed(block as usize);
    // SAFETY: the exported function passed its caller's registers.
    unsafe {
        freeing_slowly(Heap::Malloc, Caller { sp, bp }, block, move || {
            call_one(&FREE, block as usize);
        })
    }
}

//! glibc's second names of the malloc family. Who puts a `malloc` of his own in front of libc's often goes on by them, and others mix them with the
//! first ones: a block of `__libc_malloc` is freed by `free`.

use crate::family::{NamedHook, call_one, call_two};
use crate::stub::hooked;
use mallow_recorder::Caller;
use mallow_recorder::calls::{Kind, allocating, freeing_slowly, reallocating};
use mallow_recorder::real::Real;
use mallow_recorder::script;
use mallow_recorder::shadow::Heap;

hooked!(__libc_malloc => work_malloc, "rsi", "rdx", MALLOC);
hooked!(__libc_calloc => work_calloc, "rdx", "rcx", CALLOC);
hooked!(__libc_realloc => work_realloc, "rdx", "rcx", REALLOC);
hooked!(__libc_free => work_free, "rsi", "rdx", FREE);
hooked!(__libc_memalign => work_memalign, "rdx", "rcx", MEMALIGN);
hooked!(__libc_valloc => work_valloc, "rsi", "rdx", VALLOC);
hooked!(__libc_pvalloc => work_pvalloc, "rsi", "rdx", PVALLOC);

static MALLOC: Real = Real::named(c"__libc_malloc");
static CALLOC: Real = Real::named(c"__libc_calloc");
static REALLOC: Real = Real::named(c"__libc_realloc");
static FREE: Real = Real::named(c"__libc_free");
static MEMALIGN: Real = Real::named(c"__libc_memalign");
static VALLOC: Real = Real::named(c"__libc_valloc");
static PVALLOC: Real = Real::named(c"__libc_pvalloc");

pub(crate) static HOOKS: [NamedHook; 7] = [
    (b"__libc_malloc", __libc_malloc, &MALLOC),
    (b"__libc_calloc", __libc_calloc, &CALLOC),
    (b"__libc_realloc", __libc_realloc, &REALLOC),
    (b"__libc_free", __libc_free, &FREE),
    (b"__libc_memalign", __libc_memalign, &MEMALIGN),
    (b"__libc_valloc", __libc_valloc, &VALLOC),
    (b"__libc_pvalloc", __libc_pvalloc, &PVALLOC),
];

unsafe extern "C" fn work_malloc(size: usize, sp: usize, bp: usize) -> *mut u8 {
    // SAFETY: the exported function passed its caller's registers.
    unsafe { allocating(Heap::Malloc, Kind::Alloc, Caller { sp, bp }, size, move || call_one(&MALLOC, size)) }
}

unsafe extern "C" fn work_calloc(count: usize, size: usize, sp: usize, bp: usize) -> *mut u8 {
    let bytes = count.saturating_mul(size);
    // SAFETY: as in `work_malloc`.
    unsafe {
        allocating(Heap::Malloc, Kind::Zeroed, Caller { sp, bp }, bytes, move || {
            call_two(&CALLOC, count, size)
        })
    }
}

unsafe extern "C" fn work_realloc(block: *mut u8, size: usize, sp: usize, bp: usize) -> *mut u8 {
    let caller = Caller { sp, bp };
    let call = move || {
        // SAFETY: the arguments are the caller's.
        unsafe { call_two(&REALLOC, block as usize, size) }
    };
    // SAFETY: as in `work_malloc`.
    unsafe {
        match block.is_null() {
            true => allocating(Heap::Malloc, Kind::Alloc, caller, size, call),
            false => reallocating(Heap::Malloc, caller, block, size, call),
        }
    }
}

unsafe extern "C" fn work_free(block: *mut u8, sp: usize, bp: usize) {
    if block.is_null() {
        return;
    }
    script::freed(block as usize);
    // SAFETY: as in `work_malloc`.
    unsafe {
        freeing_slowly(Heap::Malloc, Caller { sp, bp }, block, move || {
            call_one(&FREE, block as usize);
        })
    }
}

unsafe extern "C" fn work_memalign(align: usize, size: usize, sp: usize, bp: usize) -> *mut u8 {
    // SAFETY: as in `work_malloc`.
    unsafe {
        allocating(Heap::Malloc, Kind::Aligned, Caller { sp, bp }, size, move || {
            call_two(&MEMALIGN, align, size)
        })
    }
}

unsafe extern "C" fn work_valloc(size: usize, sp: usize, bp: usize) -> *mut u8 {
    // SAFETY: as in `work_malloc`.
    unsafe {
        allocating(Heap::Malloc, Kind::Aligned, Caller { sp, bp }, size, move || call_one(&VALLOC, size))
    }
}

unsafe extern "C" fn work_pvalloc(size: usize, sp: usize, bp: usize) -> *mut u8 {
    // SAFETY: as in `work_malloc`.
    unsafe {
        allocating(Heap::Malloc, Kind::Aligned, Caller { sp, bp }, size, move || call_one(&PVALLOC, size))
    }
}

//! The malloc family of C.

use crate::stub::hooks;
use crate::work::{by_alignment, by_block, by_count, by_size, call_one, call_two};
use core::ffi::c_int;
use core::mem::transmute;
use mallow_recorder::Caller;
use mallow_recorder::calls::{
    Kind, allocating, allocating_counted, allocating_recorded, allocating_slowly, freeing_at_once,
    freeing_published, freeing_recorded, freeing_slowly, reallocating,
};
use mallow_recorder::counted::Counting;
use mallow_recorder::real::Real;
use mallow_recorder::recorded::Recordable;
use mallow_recorder::script;
use mallow_recorder::shadow::Heap;
use mallow_recorder::stat::Rest;
use mallow_recorder::way_in::{WayIn, way_in};

hooks! {
    malloc => work_malloc, "rsi", "rdx", MALLOC;
    calloc => work_calloc, "rdx", "rcx", CALLOC;
    realloc => work_realloc, "rdx", "rcx", REALLOC;
    reallocarray => work_reallocarray, "rcx", "r8", REALLOCARRAY;
    free => work_free, "rsi", "rdx", FREE;
    posix_memalign => work_posix_memalign, "rcx", "r8", POSIX_MEMALIGN;
    memalign => work_memalign, "rdx", "rcx", MEMALIGN;
    aligned_alloc => work_aligned_alloc, "rdx", "rcx", ALIGNED_ALLOC;
    valloc => work_valloc, "rsi", "rdx", VALLOC;
}

/// What not every libc has.
#[cfg(not(feature = "wrapped"))]
pub mod elsewhere {
    use super::*;

    hooks! {
        cfree => work_free, "rsi", "rdx", FREE;
        free_sized => work_free_sized, "rdx", "rcx", FREE;
        free_aligned_sized => work_free_aligned_sized, "rcx", "r8", FREE;
        pvalloc => work_pvalloc, "rsi", "rdx", PVALLOC;
    }

    by_size!(work_pvalloc, Aligned, PVALLOC);

    static PVALLOC: Real = Real::named(c"pvalloc");

    unsafe extern "C" fn work_free_sized(block: *mut u8, _size: usize, sp: usize, bp: usize) {
        // SAFETY: `free` frees whatever `free_sized` may be given.
        unsafe { work_free(block, sp, bp) };
    }

    unsafe extern "C" fn work_free_aligned_sized(
        block: *mut u8,
        _align: usize,
        _size: usize,
        sp: usize,
        bp: usize,
    ) {
        // SAFETY: as above.
        unsafe { work_free(block, sp, bp) };
    }
}

/// The real functions: those of the next library, or those that the linker knows by `__real_` names.
macro_rules! reals {
    ($($real:ident = $name:ident $text:literal;)*) => {
        $(
            #[cfg(not(feature = "wrapped"))]
            static $real: Real = Real::named($text);
            #[cfg(feature = "wrapped")]
            static $real: Real = Real::linked(linked::$name);
        )*

        #[cfg(feature = "wrapped")]
        mod linked {
            unsafe extern "C" {
                $(#[link_name = concat!("__real_", stringify!($name))] pub(super) fn $name();)*
            }
        }
    };
}

reals! {
    MALLOC = malloc c"malloc";
    CALLOC = calloc c"calloc";
    REALLOC = realloc c"realloc";
    REALLOCARRAY = reallocarray c"reallocarray";
    FREE = free c"free";
    POSIX_MEMALIGN = posix_memalign c"posix_memalign";
    MEMALIGN = memalign c"memalign";
    ALIGNED_ALLOC = aligned_alloc c"aligned_alloc";
    VALLOC = valloc c"valloc";
}

by_count!(work_calloc, CALLOC);
by_block!(work_realloc, REALLOC);
by_alignment!(work_memalign, MEMALIGN);
by_alignment!(work_aligned_alloc, ALIGNED_ALLOC);
by_size!(work_valloc, Aligned, VALLOC);

/// The real `malloc`, unrecorded.
///
/// # Safety
/// As `malloc`.
#[cfg(not(feature = "wrapped"))]
pub(crate) unsafe fn real_malloc(size: usize) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { call_one(&MALLOC, size) }
}

/// The real `aligned_alloc`, unrecorded.
///
/// # Safety
/// As `aligned_alloc`.
#[cfg(not(feature = "wrapped"))]
pub(crate) unsafe fn real_aligned_alloc(align: usize, size: usize) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { call_two(&ALIGNED_ALLOC, align, size) }
}

/// The real `free`, unrecorded.
///
/// # Safety
/// As `free`.
#[inline(always)]
pub(crate) unsafe fn real_free(block: *mut u8) {
    // SAFETY: by contract.
    unsafe { call_one(&FREE, block as usize) };
}

/// Only decides how the call goes on: by a jump, as the arguments are where they were and there is nothing to keep.
unsafe extern "C" fn work_malloc(size: usize, sp: usize, bp: usize) -> *mut u8 {
    // SAFETY: the exported function passed its caller's registers.
    unsafe {
        match way_in() {
            WayIn::Counting(thread) => malloc_counted(size, sp, bp, thread),
            WayIn::Recordable(thread) => malloc_recorded(size, sp, bp, thread),
            WayIn::Other => malloc_slowly(size, sp, bp),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn malloc_counted(size: usize, sp: usize, bp: usize, thread: Counting) -> *mut u8 {
    // SAFETY: as in `work_malloc`.
    unsafe {
        let counted = thread.begin(Caller { sp, bp });
        allocating_counted(counted, Heap::Malloc, size, move || call_one(&MALLOC, size))
    }
}

#[inline(never)]
unsafe extern "C" fn malloc_recorded(size: usize, sp: usize, bp: usize, thread: Recordable) -> *mut u8 {
    let caller = Caller { sp, bp };
    // SAFETY: as in `work_malloc`.
    unsafe {
        allocating_recorded(&thread.begin(caller), Kind::Alloc, caller, size, move || call_one(&MALLOC, size))
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn malloc_slowly(size: usize, sp: usize, bp: usize) -> *mut u8 {
    let caller = Caller { sp, bp };
    // SAFETY: as in `work_malloc`.
    unsafe { allocating_slowly(Heap::Malloc, Kind::Alloc, caller, size, move || call_one(&MALLOC, size)) }
}

unsafe extern "C" fn work_reallocarray(
    block: *mut u8,
    count: usize,
    size: usize,
    sp: usize,
    bp: usize,
) -> *mut u8 {
    let caller = Caller { sp, bp };
    let bytes = count.saturating_mul(size);
    let call = move || match REALLOCARRAY.inner() {
        0 => core::ptr::null_mut(),
        // SAFETY: the symbol has this type in every libc that has it.
        address => unsafe {
            transmute::<usize, unsafe extern "C" fn(usize, usize, usize) -> *mut u8>(address)(
                block as usize,
                count,
                size,
            )
        },
    };
    // SAFETY: as in `work_malloc`.
    unsafe {
        if block.is_null() {
            allocating(Heap::Malloc, Kind::Alloc, caller, bytes, call)
        } else {
            reallocating(Heap::Malloc, caller, block, bytes, call)
        }
    }
}

/// As [`work_malloc`].
unsafe extern "C" fn work_free(block: *mut u8, sp: usize, bp: usize) {
    if block.is_null() {
        return;
    }
    // SAFETY: as in `work_malloc`.
    unsafe {
        match way_in() {
            WayIn::Counting(thread) => free_counted(block, sp, bp, thread),
            WayIn::Recordable(thread) => free_recorded(block, sp, bp, thread),
            WayIn::Other => free_slowly(block, sp, bp),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn free_counted(block: *mut u8, sp: usize, bp: usize, thread: Counting) {
    // SAFETY: as in `work_malloc`.
    unsafe {
        let counted = thread.begin(Caller { sp, bp });
        match freeing_at_once(counted, Heap::Malloc, block, move || real_free(block)) {
            Ok(()) => {}
            Err((Rest::Publish, _)) => free_published(block),
            Err(_) => free_slowly(block, sp, bp),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn free_recorded(block: *mut u8, sp: usize, bp: usize, thread: Recordable) {
    // SAFETY: as in `work_malloc`.
    unsafe {
        let recorded = thread.begin(Caller { sp, bp });
        script::freed(block as usize);
        freeing_recorded(&recorded, block, move || real_free(block));
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn free_slowly(block: *mut u8, sp: usize, bp: usize) {
    script::freed(block as usize);
    // SAFETY: as in `work_malloc`.
    unsafe { freeing_slowly(Heap::Malloc, Caller { sp, bp }, block, move || real_free(block)) };
}

/// What [`free_counted`] ends with once in a while.
#[cold]
#[inline(never)]
unsafe extern "C" fn free_published(block: *mut u8) {
    // SAFETY: as in `work_malloc`.
    unsafe { freeing_published(move || real_free(block)) };
}

unsafe extern "C" fn work_posix_memalign(
    out: *mut *mut u8,
    align: usize,
    size: usize,
    sp: usize,
    bp: usize,
) -> c_int {
    const ENOMEM: c_int = 12;
    let mut answer = ENOMEM;
    let call = || match POSIX_MEMALIGN.inner() {
        0 => core::ptr::null_mut(),
        // SAFETY: the symbol has this type by POSIX, and the host passed `out`.
        address => unsafe {
            answer = transmute::<usize, unsafe extern "C" fn(*mut *mut u8, usize, usize) -> c_int>(address)(
                out, align, size,
            );
            if answer == 0 { *out } else { core::ptr::null_mut() }
        },
    };
    // SAFETY: as in `work_malloc`.
    unsafe { allocating(Heap::Malloc, Kind::Aligned, Caller { sp, bp }, size, call) };
    answer
}

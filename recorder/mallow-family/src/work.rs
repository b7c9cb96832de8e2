//! What the hooks of functions do that differ in their real function alone: libc has several of most kinds.

use mallow_recorder::real::Real;

type OneArgument = unsafe extern "C" fn(usize) -> *mut u8;
type TwoArguments = unsafe extern "C" fn(usize, usize) -> *mut u8;

/// Calls a real function of one argument; null when there is none.
#[inline(always)]
pub(crate) unsafe fn call_one(real: &'static Real, a: usize) -> *mut u8 {
    match real.inner() {
        0 => core::ptr::null_mut(),
        // SAFETY: the symbol has this type by the C standard, POSIX or the GNU manual.
        address => unsafe { core::mem::transmute::<usize, OneArgument>(address)(a) },
    }
}

/// Calls a real function of two arguments; null when there is none.
#[inline(always)]
pub(crate) unsafe fn call_two(real: &'static Real, a: usize, b: usize) -> *mut u8 {
    match real.inner() {
        0 => core::ptr::null_mut(),
        // SAFETY: as in `call_one`.
        address => unsafe { core::mem::transmute::<usize, TwoArguments>(address)(a, b) },
    }
}

/// A function of a size.
macro_rules! by_size {
    ($work:ident, $kind:ident, $real:ident) => {
        unsafe extern "C" fn $work(size: usize, sp: usize, bp: usize) -> *mut u8 {
            let caller = Caller { sp, bp };
            // SAFETY: the exported function passed its caller's registers.
            unsafe { allocating(Heap::Malloc, Kind::$kind, caller, size, move || call_one(&$real, size)) }
        }
    };
}

/// A function of an alignment and a size.
macro_rules! by_alignment {
    ($work:ident, $real:ident) => {
        unsafe extern "C" fn $work(align: usize, size: usize, sp: usize, bp: usize) -> *mut u8 {
            let caller = Caller { sp, bp };
            // SAFETY: as in `by_size`.
            unsafe {
                allocating(Heap::Malloc, Kind::Aligned, caller, size, move || call_two(&$real, align, size))
            }
        }
    };
}

/// A function of a number of elements and their size.
macro_rules! by_count {
    ($work:ident, $real:ident) => {
        unsafe extern "C" fn $work(count: usize, size: usize, sp: usize, bp: usize) -> *mut u8 {
            let (caller, bytes) = (Caller { sp, bp }, count.saturating_mul(size));
            // SAFETY: as in `by_size`.
            unsafe {
                allocating(Heap::Malloc, Kind::Zeroed, caller, bytes, move || call_two(&$real, count, size))
            }
        }
    };
}

/// A function of a block and its new size.
macro_rules! by_block {
    ($work:ident, $real:ident) => {
        unsafe extern "C" fn $work(block: *mut u8, size: usize, sp: usize, bp: usize) -> *mut u8 {
            let caller = Caller { sp, bp };
            // SAFETY: as in `by_size`.
            unsafe {
                let call = move || call_two(&$real, block as usize, size);
                match block.is_null() {
                    true => allocating(Heap::Malloc, Kind::Alloc, caller, size, call),
                    false => reallocating(Heap::Malloc, caller, block, size, call),
                }
            }
        }
    };
}

pub(crate) use {by_alignment, by_block, by_count, by_size};

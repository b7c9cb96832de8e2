//! The recorder of `mallow record`, when the program runs under it: functions that the preloaded library exports.
//!
//! Looked for by a weak symbol, which the loader fills in at the start, and which is null without mallow and in static programs. No look-up
//! by name: that would allocate, and take the loader's lock.

use core::arch::asm;
use core::ffi::c_void;

/// What the library offers; `recorder/mallow-preload/src/own_allocators.rs` has the other side.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Calls {
    allocating: unsafe extern "C" fn(usize, Down, *mut c_void) -> *mut u8,
    freeing: unsafe extern "C" fn(*mut u8, Down, *mut c_void),
    reallocating: unsafe extern "C" fn(*mut u8, usize, Down, *mut c_void) -> *mut u8,
}

type Down = unsafe extern "C" fn(*mut c_void) -> *mut u8;

/// The functions; none without mallow.
#[inline(always)]
pub(crate) fn calls() -> Option<&'static Calls> {
    let found: *const Calls;
    // SAFETY: reads the global offset table. The directive stands beside the use, so that both are in one object file.
    unsafe {
        asm!(
            ".weak mallow_alloc_calls_v1",
            "mov {}, qword ptr [rip + mallow_alloc_calls_v1@GOTPCREL]",
            out(reg) found,
            options(nostack, preserves_flags, pure, readonly)
        );
        found.as_ref()
    }
}

/// Calls what was to be called, once.
unsafe extern "C" fn down<F: FnOnce() -> *mut u8>(context: *mut c_void) -> *mut u8 {
    // SAFETY: the context is the place of such a function, by those below.
    let place = unsafe { &mut *context.cast::<Option<F>>() };
    place.take().map_or(core::ptr::null_mut(), |call| call())
}

impl Calls {
    /// # Safety
    /// `call` may be called once.
    pub(crate) unsafe fn allocating<F: FnOnce() -> *mut u8>(&self, size: usize, call: F) -> *mut u8 {
        let mut place = Some(call);
        // SAFETY: by contract; the place lives until the function has returned.
        unsafe { (self.allocating)(size, down::<F>, (&raw mut place).cast()) }
    }

    /// # Safety
    /// As [`Calls::allocating`].
    pub(crate) unsafe fn freeing<F: FnOnce() -> *mut u8>(&self, block: *mut u8, call: F) -> *mut u8 {
        let mut place = Some(call);
        // SAFETY: as in `allocating`.
        unsafe { (self.freeing)(block, down::<F>, (&raw mut place).cast()) };
        core::ptr::null_mut()
    }

    /// # Safety
    /// As [`Calls::allocating`].
    pub(crate) unsafe fn reallocating<F: FnOnce() -> *mut u8>(
        &self,
        block: *mut u8,
        size: usize,
        call: F,
    ) -> *mut u8 {
        let mut place = Some(call);
        // SAFETY: as in `allocating`.
        unsafe { (self.reallocating)(block, size, down::<F>, (&raw mut place).cast()) }
    }
}

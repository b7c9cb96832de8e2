//! For allocators that a program brings along and that report their calls: functions that the preloaded library exports, and that
//! code which is linked into the program finds.
//!
//! They are found by a weak symbol, which the loader resolves at the start, and which is null without mallow and in static
//! programs. They are not looked up by name: that would allocate, and take the loader's lock.

use core::arch::asm;
use core::ffi::c_void;

/// The function to call: the real allocator.
pub type Down = unsafe extern "C" fn(*mut c_void) -> *mut u8;

/// The functions. A change of this layout changes the table's name.
#[repr(C)]
#[derive(Debug)]
pub struct Calls {
    /// A size, and the function that returns the block.
    pub allocating: unsafe extern "C" fn(usize, Down, *mut c_void) -> *mut u8,
    /// A block, and what frees it.
    pub freeing: unsafe extern "C" fn(*mut u8, Down, *mut c_void),
    /// A block, its new size, and the function that returns the new block.
    pub reallocating: unsafe extern "C" fn(*mut u8, usize, Down, *mut c_void) -> *mut u8,
}

/// The functions; none without mallow.
#[inline(always)]
pub fn calls() -> Option<&'static Calls> {
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
    pub unsafe fn allocating<F: FnOnce() -> *mut u8>(&self, size: usize, call: F) -> *mut u8 {
        let mut place = Some(call);
        // SAFETY: by contract; the place lives until the function has returned.
        unsafe { (self.allocating)(size, down::<F>, (&raw mut place).cast()) }
    }

    /// # Safety
    /// As [`Calls::allocating`].
    pub unsafe fn freeing<F: FnOnce() -> *mut u8>(&self, block: *mut u8, call: F) -> *mut u8 {
        let mut place = Some(call);
        // SAFETY: as in `allocating`.
        unsafe { (self.freeing)(block, down::<F>, (&raw mut place).cast()) };
        core::ptr::null_mut()
    }

    /// # Safety
    /// As [`Calls::allocating`].
    pub unsafe fn reallocating<F: FnOnce() -> *mut u8>(
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

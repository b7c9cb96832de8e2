//! The allocator: what the program calls, and the way on to the allocator below.
//!
//! While nobody watches, a call is one compare of a word that is in every cache, and then the allocator below.

use core::alloc::{GlobalAlloc, Layout};

/// An allocator that mallow sees, around another one.
///
/// It gives what the allocator below gives, and changes nothing about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallow<A> {
    below: A,
}

impl<A> Mallow<A> {
    /// Around this allocator.
    pub const fn new(below: A) -> Mallow<A> {
        Mallow { below }
    }
}

#[cfg(all(feature = "record", target_os = "linux", target_arch = "x86_64"))]
// SAFETY: each function passes its arguments on to the allocator below, once, and gives what that gives; its callers owe us what they owe that one.
unsafe impl<A: GlobalAlloc + 'static> GlobalAlloc for Mallow<A> {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe {
            if mallow_recorder::watchers::is_watched() {
                return crate::hooks::alloc(layout.size(), layout.align(), &self.below, false);
            }
            self.below.alloc(layout)
        }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe {
            if mallow_recorder::watchers::is_watched() {
                return crate::hooks::alloc(layout.size(), layout.align(), &self.below, true);
            }
            self.below.alloc_zeroed(layout)
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by contract.
        unsafe {
            if mallow_recorder::watchers::is_watched() {
                return crate::hooks::dealloc(block, layout.size(), layout.align(), &self.below);
            }
            self.below.dealloc(block, layout);
        }
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by contract.
        unsafe {
            if mallow_recorder::watchers::is_watched() {
                return crate::hooks::realloc(block, layout.size(), layout.align(), new_size, &self.below);
            }
            self.below.realloc(block, layout, new_size)
        }
    }
}

#[cfg(not(all(feature = "record", target_os = "linux", target_arch = "x86_64")))]
// SAFETY: as above.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Mallow<A> {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { self.below.alloc(layout) }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { self.below.alloc_zeroed(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by contract.
        unsafe { self.below.dealloc(block, layout) }
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { self.below.realloc(block, layout, new_size) }
    }
}

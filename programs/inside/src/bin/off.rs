//! The four calls of an allocator, straight and through mallow's, as functions whose machine code is compared.

use mallow_alloc::Mallow;
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;

struct Below;

static STRAIGHT: Below = Below;
static MALLOW: Mallow<Below> = Mallow::new(Below);

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn calloc(count: usize, bytes: usize) -> *mut u8;
    fn realloc(block: *mut u8, bytes: usize) -> *mut u8;
    fn free(block: *mut u8);
}

// SAFETY: C's allocator, for alignments that it has anyway.
unsafe impl GlobalAlloc for Below {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { malloc(layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { calloc(1, layout.size()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: by contract.
        unsafe { free(block) }
    }

    unsafe fn realloc(&self, block: *mut u8, _: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { realloc(block, bytes) }
    }
}

macro_rules! calls {
    ($of:ident: $alloc:ident $alloc_zeroed:ident $dealloc:ident $realloc:ident) => {
        #[unsafe(no_mangle)]
        #[inline(never)]
        unsafe extern "C" fn $alloc(bytes: usize, align: usize) -> *mut u8 {
            // SAFETY: as the callers below ask.
            unsafe { $of.alloc(Layout::from_size_align_unchecked(bytes, align)) }
        }

        #[unsafe(no_mangle)]
        #[inline(never)]
        unsafe extern "C" fn $alloc_zeroed(bytes: usize, align: usize) -> *mut u8 {
            // SAFETY: as above.
            unsafe { $of.alloc_zeroed(Layout::from_size_align_unchecked(bytes, align)) }
        }

        #[unsafe(no_mangle)]
        #[inline(never)]
        unsafe extern "C" fn $dealloc(block: *mut u8, bytes: usize, align: usize) {
            // SAFETY: as above.
            unsafe { $of.dealloc(block, Layout::from_size_align_unchecked(bytes, align)) }
        }

        #[unsafe(no_mangle)]
        #[inline(never)]
        unsafe extern "C" fn $realloc(block: *mut u8, bytes: usize, align: usize, new: usize) -> *mut u8 {
            // SAFETY: as above.
            unsafe { $of.realloc(block, Layout::from_size_align_unchecked(bytes, align), new) }
        }
    };
}

calls!(STRAIGHT: straight_alloc straight_alloc_zeroed straight_dealloc straight_realloc);
calls!(MALLOW: mallow_alloc mallow_alloc_zeroed mallow_dealloc mallow_realloc);

fn main() {
    // SAFETY: each block is freed as it was taken.
    unsafe {
        let block = black_box(straight_realloc(straight_alloc(black_box(10), 8), 10, 8, 20));
        straight_dealloc(block, 20, 8);
        straight_dealloc(black_box(straight_alloc_zeroed(black_box(10), 8)), 10, 8);
        let block = black_box(mallow_realloc(mallow_alloc(black_box(10), 8), 10, 8, 20));
        mallow_dealloc(block, 20, 8);
        mallow_dealloc(black_box(mallow_alloc_zeroed(black_box(10), 8)), 10, 8);
    }
}

//! An allocator around another one that counts what goes through it, and at the end of the process writes the sums to stderr. Tests put it into
//! programs that know nothing of it.
//!
//! Each call that allocates goes through a function of its own, whose name a profiler finds on the stack. Nothing here allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static REALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static FREED_BLOCKS: AtomicU64 = AtomicU64::new(0);
static FREED_BYTES: AtomicU64 = AtomicU64::new(0);

/// The allocator. It hands a `realloc` on as one, which is what the one below must have.
#[derive(Debug)]
pub struct Counted<A>(pub A);

fn given(block: *mut u8, bytes: usize) -> *mut u8 {
    if !block.is_null() {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
    block
}

fn taken(bytes: usize) {
    FREED_BLOCKS.fetch_add(1, Relaxed);
    FREED_BYTES.fetch_add(bytes as u64, Relaxed);
}

#[inline(never)]
unsafe fn counted_alloc<A: GlobalAlloc>(below: &A, layout: Layout) -> *mut u8 {
    // SAFETY: by contract.
    given(unsafe { below.alloc(layout) }, layout.size())
}

#[inline(never)]
unsafe fn counted_alloc_zeroed<A: GlobalAlloc>(below: &A, layout: Layout) -> *mut u8 {
    // SAFETY: by contract.
    given(unsafe { below.alloc_zeroed(layout) }, layout.size())
}

#[inline(never)]
unsafe fn counted_realloc<A: GlobalAlloc>(
    below: &A,
    block: *mut u8,
    layout: Layout,
    bytes: usize,
) -> *mut u8 {
    // SAFETY: by contract.
    let new = given(unsafe { below.realloc(block, layout, bytes) }, bytes);
    if !new.is_null() {
        REALLOCATIONS.fetch_add(1, Relaxed);
        taken(layout.size());
    }
    new
}

// SAFETY: each call is passed on as it came, once, and what it gives is given.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { counted_alloc(&self.0, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { counted_alloc_zeroed(&self.0, layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        taken(layout.size());
        // SAFETY: by contract.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: by contract.
        unsafe { counted_realloc(&self.0, block, layout, bytes) }
    }
}

/// A line on the stack.
struct Line {
    bytes: [u8; 256],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.used..self.used + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

unsafe extern "C" {
    fn write(file: i32, bytes: *const u8, count: usize) -> isize;
}

extern "C" fn print() {
    let [allocations, bytes, reallocations, freed_blocks, freed_bytes] =
        [&ALLOCATIONS, &BYTES, &REALLOCATIONS, &FREED_BLOCKS, &FREED_BYTES].map(|sum| sum.load(Relaxed));
    let mut line = Line { bytes: [0; 256], used: 0 };
    let _ = writeln!(
        line,
        "counted: allocations={allocations} bytes={bytes} reallocations={reallocations} leaked_blocks={} leaked_bytes={}",
        allocations - freed_blocks,
        bytes - freed_bytes
    );
    // SAFETY: the line is as long as is said.
    unsafe { write(2, line.bytes.as_ptr(), line.used) };
}

/// Behind `main` and what was left for the exit, when no thread of the program works any more.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_THE_END: extern "C" fn() = print;

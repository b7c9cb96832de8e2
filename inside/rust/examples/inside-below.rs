//! An allocator of the program's own, which takes what it gives out from one large mapping and from libc's `malloc`: for `mallow record`.
//! Prints how many calls of each kind came to it, and the bytes that were asked for.

use mallow_alloc::Mallow;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Small blocks from a mapping, 8 bytes apart; large ones from libc.
struct Own {
    next: AtomicUsize,
    end: AtomicUsize,
}

const MAPPED: usize = 256 << 20;
const SMALL: usize = 4096;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static REALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static FREES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOC: Mallow<Own> = Mallow::new(Own { next: AtomicUsize::new(0), end: AtomicUsize::new(0) });

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
}

impl Own {
    fn take(&self, layout: Layout) -> *mut u8 {
        if self.end.load(Relaxed) == 0 {
            // SAFETY: a fresh mapping; the first call comes before there is a second thread.
            let start = unsafe { mmap(std::ptr::null_mut(), MAPPED, 3, 0x22, -1, 0) } as usize;
            self.next.store(start, Relaxed);
            self.end.store(start + MAPPED, Relaxed);
        }
        let mut at = self.next.load(Relaxed);
        loop {
            let block = at.next_multiple_of(layout.align().max(8));
            match self.next.compare_exchange(at, block + layout.size(), Relaxed, Relaxed) {
                Ok(_) => return block as *mut u8,
                Err(other) => at = other,
            }
        }
    }
}

// SAFETY: blocks of the mapping are given out once and never again; the others are the system's.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        if layout.size() <= SMALL {
            return self.take(layout);
        }
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        FREES.fetch_add(1, Relaxed);
        if layout.size() > SMALL {
            // SAFETY: by contract.
            unsafe { System.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        REALLOCATIONS.fetch_add(1, Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(size as u64, Relaxed);
        FREES.fetch_add(1, Relaxed);
        // SAFETY: by contract; the new block is as large as asked for.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            let new = if size <= SMALL { self.take(wanted) } else { System.alloc(wanted) };
            std::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
            if layout.size() > SMALL {
                System.dealloc(block, layout);
            }
            new
        }
    }
}

#[inline(never)]
fn work(rounds: usize) {
    for round in 0..rounds {
        let mut text = String::with_capacity(1 + round % 7);
        for _ in 0..round % 300 {
            text.push('x');
        }
        black_box(&text);
        drop(black_box(vec![0u8; 5000]));
    }
}

fn main() {
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| work(2_000))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // All four in one line of text that nothing is allocated for in between.
    let figures = [&ALLOCATIONS, &BYTES, &REALLOCATIONS, &FREES].map(|figure| figure.load(Relaxed));
    println!("{figures:?}");
}

//! Counts what its allocator is asked for, below mallow's, and says so at the end: allocations, bytes, reallocations, frees. It is built as a static
//! program too, in which nothing else sees an allocation.
//!
//! Words: `fork` lets a forked child do the same work, which says its own figures.

use mallow_alloc::Mallow;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Counted;

static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

#[global_allocator]
static ALLOC: Mallow<Counted> = Mallow::new(Counted);

fn count(at: usize, by: usize) {
    COUNTS[at].fetch_add(by as u64, Relaxed);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, 1);
        count(1, layout.size());
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, 1);
        count(1, layout.size());
        // SAFETY: by contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(3, 1);
        // SAFETY: by contract.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        [(0, 1), (1, size), (2, 1), (3, 1)].into_iter().for_each(|(at, by)| count(at, by));
        // SAFETY: by contract.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Three allocations of 64, 100 and 4096 bytes, the last one aligned to as many.
#[inline(never)]
fn row() {
    #[repr(align(4096))]
    struct Page(#[expect(dead_code, reason = "only its size counts")] [u8; 4096]);
    drop(black_box(vec![1u8; 64]));
    drop(black_box(vec![0u8; 100]));
    drop(black_box(Box::new(Page([0; 4096]))));
}

/// One allocation and seven that grow it: 8, 16, … 1024.
#[inline(never)]
fn grown() {
    let mut text = Vec::new();
    for at in 0..1024 {
        text.push(at as u8);
    }
    black_box(text);
}

#[inline(never)]
fn rows() {
    for _ in 0..1000 {
        row();
    }
}

#[inline(never)]
fn work() {
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(rows)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for _ in 0..100 {
        grown();
    }
}

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
}

/// A line without an allocation.
struct Line([u8; 128], usize);

impl std::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.1 + text.len();
        self.0.get_mut(self.1..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.1 = end;
        Ok(())
    }
}

fn main() {
    let with_child = std::env::args().any(|word| word == "fork");
    // SAFETY: the program has one thread.
    let child = if with_child { unsafe { fork() } } else { -1 };
    if child == 0 {
        COUNTS.iter().for_each(|count| count.store(0, Relaxed));
    }
    work();
    if child > 0 {
        // SAFETY: waits for the child, which returns from `main`.
        unsafe { waitpid(child, std::ptr::null_mut(), 0) };
    }
    let mut line = Line([0; 128], 0);
    let who = if child == 0 { "child" } else { "program" };
    let [allocations, bytes, reallocations, frees] = [0, 1, 2, 3].map(|at: usize| COUNTS[at].load(Relaxed));
    writeln!(line, "{who} {allocations} {bytes} {reallocations} {frees}").unwrap();
    // Not by the standard output, which takes a buffer.
    std::io::Write::write_all(&mut std::io::stderr(), &line.0[..line.1]).unwrap();
}

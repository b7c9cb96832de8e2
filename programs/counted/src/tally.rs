//! An allocator around another one that counts what goes through it, apart from whoever watches the program.
//!
//! What is counted stands with the path of those functions of the program that were under way and say so ([`within`]): the paths are what a profiler's stacks are
//! held against. Nothing here allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The functions that say when they are under way. Their place, from 1, is their digit in a path.
pub const NAMES: [&str; 10] = [
    "at_aligned",
    "at_deep",
    "at_grown",
    "at_handed",
    "at_kept",
    "at_maps",
    "at_raw",
    "at_strings",
    "at_worker",
    "at_zeroed",
];
const RADIX: u64 = 16;
const PATHS: usize = 128;
const BLOCKS: usize = 1 << 16;

thread_local! {
    /// The path of this thread, the innermost function last.
    static PATH: Cell<u64> = const { Cell::new(0) };
    /// The block that its last call gave, while that is the last one.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// What was counted at a path.
#[derive(Clone, Copy, Debug)]
struct Row {
    path: u64,
    allocations: u64,
    bytes: u64,
    reallocations: u64,
    temporary: u64,
    freed_blocks: u64,
    freed_bytes: u64,
}

/// A live block; none where its address is 0.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: usize,
    bytes: usize,
    row: usize,
}

struct Tally {
    rows: [Row; PATHS],
    blocks: [Block; BLOCKS],
}

static TALLY: Mutex<Tally> = Mutex::new(Tally {
    rows: [Row {
        path: 0,
        allocations: 0,
        bytes: 0,
        reallocations: 0,
        temporary: 0,
        freed_blocks: 0,
        freed_bytes: 0,
    }; PATHS],
    blocks: [Block { address: 0, bytes: 0, row: 0 }; BLOCKS],
});

fn tally() -> MutexGuard<'static, Tally> {
    TALLY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    fn row(&mut self, path: u64) -> usize {
        let at = self.rows.iter().position(|row| row.path == path || row.path == 0);
        let at = at.unwrap_or_else(|| std::process::abort());
        self.rows[at].path = path;
        at
    }

    /// The place of a block, or the free one where it would be.
    fn place(&self, address: usize) -> usize {
        let start = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let mut places = (start..BLOCKS).chain(0..start);
        let is_it = |place: &usize| [address, 0].contains(&self.blocks[*place].address);
        places.find(is_it).unwrap_or_else(|| std::process::abort())
    }

    fn add(&mut self, path: u64, address: usize, bytes: usize) {
        let row = self.row(path);
        self.rows[row].allocations += 1;
        self.rows[row].bytes += bytes as u64;
        let place = self.place(address);
        self.blocks[place] = Block { address, bytes, row };
    }

    /// Removes a block, and moves those that were put behind it for its sake.
    fn remove(&mut self, address: usize, is_temporary: bool) {
        let mut place = self.place(address);
        let Block { address: found, bytes, row } = self.blocks[place];
        if found == 0 {
            return;
        }
        let row = &mut self.rows[row];
        row.freed_blocks += 1;
        row.freed_bytes += bytes as u64;
        row.temporary += u64::from(is_temporary);
        self.blocks[place].address = 0;
        loop {
            place = (place + 1) % BLOCKS;
            let block = self.blocks[place];
            if block.address == 0 {
                return;
            }
            self.blocks[place].address = 0;
            let new = self.place(block.address);
            self.blocks[new] = block;
        }
    }
}

/// The allocator.
#[derive(Debug)]
pub struct Counted<A> {
    below: A,
    /// Whether the one below does a `realloc` by a call of its own, and not by an allocation and a free.
    reallocates: bool,
}

impl<A> Counted<A> {
    /// Around this one.
    pub const fn new(below: A, reallocates: bool) -> Counted<A> {
        Counted { below, reallocates }
    }
}

fn given(block: *mut u8, bytes: usize) -> *mut u8 {
    if !block.is_null() {
        LAST.set(block.addr());
        if PATH.get() != 0 {
            tally().add(PATH.get(), block.addr(), bytes);
        }
    }
    block
}

fn taken(block: *mut u8) {
    let is_temporary = LAST.get() == block.addr();
    tally().remove(block.addr(), is_temporary);
}

// SAFETY: each call is passed on as it came, once, and what it gives is given.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        given(unsafe { self.below.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract.
        given(unsafe { self.below.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Before the call: another thread may be given the address at once.
        taken(block);
        // SAFETY: by contract.
        unsafe { self.below.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !self.reallocates {
            // SAFETY: by contract; this is what the default does.
            unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
                if !new.is_null() {
                    std::ptr::copy_nonoverlapping(block, new, layout.size().min(new_size));
                    self.dealloc(block, layout);
                }
                return new;
            }
        }
        taken(block);
        // SAFETY: by contract.
        let new = unsafe { self.below.realloc(block, layout, new_size) };
        if new.is_null() {
            // It lives on, which is not counted here.
            std::process::abort();
        }
        let new = given(new, new_size);
        if PATH.get() != 0 {
            let mut tally = tally();
            let row = tally.row(PATH.get());
            tally.rows[row].reallocations += 1;
        }
        new
    }
}

/// Does a function's work, of which the paths say that it is under way. The function must not be inlined, and has this name in [`NAMES`].
#[inline(always)]
pub fn within<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let digit =
        NAMES.iter().position(|known| *known == name).unwrap_or_else(|| std::process::abort()) as u64 + 1;
    let before = PATH.get();
    PATH.set(before * RADIX + digit);
    let answer = work();
    PATH.set(before);
    answer
}

/// Prints each path with what was counted there, and what of it lives: path, allocations, bytes, reallocations, temporary, live blocks, live bytes.
pub fn print() {
    for at in 0..PATHS {
        let row = tally().rows[at];
        let digits = (0..16).rev().map(|place| (row.path >> (4 * place)) % RADIX).filter(|digit| *digit > 0);
        let mut separator = "";
        for digit in digits {
            print!("{separator}{}", NAMES[digit as usize - 1]);
            separator = "/";
        }
        if row.path > 0 {
            let live = [row.allocations - row.freed_blocks, row.bytes - row.freed_bytes];
            println!(
                " {} {} {} {} {} {}",
                row.allocations, row.bytes, row.reallocations, row.temporary, live[0], live[1]
            );
        }
    }
}

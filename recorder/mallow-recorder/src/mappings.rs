//! What a call of `mmap`, `munmap` or `mremap` records, where the session wants that.
//!
//! What is told is what the kernel did, by ranges of addresses; which blocks that makes, cuts and frees is found out by the collector,
//! which has them all.
//!
//! `mmap` is told of when it has returned: the addresses were nobody's, or this thread's to replace, and no other thread can get them
//! meanwhile. `munmap` and `mremap` are told of before the call, since another thread may get the addresses before it returns, and
//! behind it, since it may fail.

use crate::Caller;
use crate::calls::write_sized;
use crate::thread::{Entry, Guard, Recording, enter};
use mallow_wire::event::{Kind, MAPPING_NESTED, Mapping, size_saturated, word0, word1};
use mallow_wire::shared::NODE_ROOT;

/// What the three functions return where they fail, as `munmap` has it in 32 bits.
const FAILED: usize = usize::MAX;

/// Who calls: the registers at the function's entry, and those of our own frame, which is innermost on the stacks of what is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Framed {
    /// The program's call.
    pub entry: Caller,
    /// Our call of what records.
    pub own: Caller,
}

/// `mmap` of so many bytes. `is_reserved`: no access to them is allowed, so they are no memory yet.
///
/// # Safety
/// `framed` holds the registers of live frames.
pub unsafe fn mapping(framed: Framed, size: usize, is_reserved: bool, call: impl FnOnce() -> usize) -> usize {
    // SAFETY: by contract; the guard proves that the thread's state is ours to use.
    unsafe {
        let Entry::Record(guard) = enter(framed.entry) else { return call() };
        let start = call();
        guard.in_hook();
        match (start, is_reserved) {
            (FAILED, _) => write_sized(&guard, Kind::Failed, core::ptr::null_mut(), size, framed.own),
            (_, true) => push(&guard, Mapping::Reserved, start, size, NODE_ROOT),
            (_, false) => push(&guard, Mapping::Mapped, start, size, guard.node(framed.own)),
        }
        start
    }
}

/// `munmap` of a range.
///
/// # Safety
/// As [`mapping`].
pub unsafe fn unmapping(framed: Framed, start: usize, size: usize, call: impl FnOnce() -> i32) -> i32 {
    // SAFETY: as in `mapping`.
    unsafe {
        let Entry::Record(guard) = enter(framed.entry) else { return call() };
        begin(&guard, Mapping::Leaving, start, size);
        let result = call();
        guard.in_hook();
        let end = if result == 0 { Mapping::Unmapped } else { Mapping::Kept };
        push(&guard, end, 0, 0, NODE_ROOT);
        result
    }
}

/// `mremap` of a range to `size` bytes. `stays`: what is mapped there stays, and gets a twin.
///
/// # Safety
/// As [`mapping`].
pub unsafe fn remapping(
    framed: Framed,
    (start, size_old, stays): (usize, usize, bool),
    size: usize,
    call: impl FnOnce() -> usize,
) -> usize {
    // SAFETY: as in `mapping`.
    unsafe {
        let Entry::Record(guard) = enter(framed.entry) else { return call() };
        let what = if stays { Mapping::Staying } else { Mapping::Leaving };
        begin(&guard, what, start, size_old);
        let new = call();
        guard.in_hook();
        let node = guard.node(framed.own);
        match new {
            FAILED => push(&guard, Mapping::RemapFailed, 0, size, node),
            _ => push(&guard, Mapping::Remapped, new, size, node),
        }
        new
    }
}

/// Says which range a call is about.
fn begin(guard: &Guard, what: Mapping, start: usize, size: usize) {
    guard.in_hook();
    let nested = if guard.is_nested() { MAPPING_NESTED } else { 0 };
    let address = Mapping::page_of(start as u64) | nested | what as u64;
    let size = size_saturated(size as u64);
    guard.push([word0(Kind::Mapping, address, size), word1(size, NODE_ROOT)]);
    guard.in_real();
}

fn push(guard: &Guard, what: Mapping, start: usize, size: usize, node: u32) {
    let address = Mapping::page_of(start as u64) | what as u64;
    let size = size_saturated(size as u64);
    guard.push([word0(Kind::Mapping, address, size), word1(size, node)]);
}

//! Memory of ours that lasts: megabytes, of which a process touches some pages. It has small pages, is in no core dump, and is not locked where the program locks
//! all of its own: that would make pages of all of it.

use super::limits::soft_limit;
use super::{MADVISE, MUNLOCK, call};
use core::sync::atomic::{AtomicUsize, Ordering};

const MLOCKALL: usize = 151;
const MLOCK2: usize = 325;

/// A memo for each channel, and some more. Of further ones nobody knows that they are ours.
const RANGES_MAX: usize = 4096 + 512;

/// The first byte and the end of each.
static RANGES: [[AtomicUsize; 2]; RANGES_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; RANGES_MAX];
static RANGE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// How much there is of all of it, and of what is private. The library itself takes less than a MiB.
static BYTES: [AtomicUsize; 2] = [const { AtomicUsize::new(1 << 20) }; 2];

/// Whether other processes have the memory too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The collector has it.
    Shared,
    /// None.
    Private,
}

/// How much memory there is, all or what is private, in bytes.
pub fn lasting_bytes(only_private: bool) -> usize {
    let [all, private] = &BYTES;
    if only_private { private } else { all }.load(Ordering::Relaxed)
}

/// Keeps a mapping small: without large pages, out of core dumps, and unlocked.
///
/// # Safety
/// `at..at + bytes` is a mapping of ours, which stays.
pub unsafe fn keep_small(at: *mut u8, bytes: usize, sharing: Sharing) {
    const MADV_NOHUGEPAGE: usize = 15;
    const MADV_DONTDUMP: usize = 16;
    for advice in [MADV_NOHUGEPAGE, MADV_DONTDUMP] {
        // SAFETY: by contract the range is ours.
        unsafe { call(MADVISE, [at as usize, bytes, advice, 0, 0, 0]) };
    }
    let [all, private] = &BYTES;
    all.fetch_add(bytes, Ordering::Relaxed);
    if sharing == Sharing::Private {
        private.fetch_add(bytes, Ordering::Relaxed);
    }
    if let Some([start, end]) = RANGES.get(RANGE_COUNT.fetch_add(1, Ordering::Relaxed)) {
        end.store(at as usize + bytes, Ordering::Relaxed);
        start.store(at as usize, Ordering::Release);
    }
}

/// Returns whether some of the addresses are ours.
pub fn is_lasting(start: usize, end: usize) -> bool {
    let count = RANGE_COUNT.load(Ordering::Relaxed);
    RANGES.iter().take(count).any(|[first, behind]| {
        let first = first.load(Ordering::Acquire);
        first != 0 && first < end && start < behind.load(Ordering::Relaxed)
    })
}

/// Unlocks all of it.
pub fn unlock_lasting() {
    for [start, end] in RANGES.iter().take(RANGE_COUNT.load(Ordering::Relaxed)) {
        let start = start.load(Ordering::Acquire);
        if start != 0 {
            // SAFETY: memory of ours stays what it is.
            unsafe { call(MUNLOCK, [start, end.load(Ordering::Relaxed).wrapping_sub(start), 0, 0, 0, 0]) };
        }
    }
}

/// `mlockall`.
pub fn lock_all(flags: i32) -> isize {
    // SAFETY: has the kernel keep pages in memory; changes nothing of what they hold.
    unsafe { call(MLOCKALL, [flags as usize, 0, 0, 0, 0, 0]) }
}

/// `mlock2`: locks pages, each when it is touched if `on_fault`, otherwise all of them at once.
pub fn lock(start: usize, bytes: usize, on_fault: bool) -> isize {
    // SAFETY: as above.
    unsafe { call(MLOCK2, [start, bytes, on_fault.into(), 0, 0, 0]) }
}

/// How much memory this process may lock without a right to it, in bytes.
pub fn lock_limit_bytes() -> usize {
    const RLIMIT_MEMLOCK: usize = 8;
    soft_limit(RLIMIT_MEMLOCK).unwrap_or(usize::MAX)
}

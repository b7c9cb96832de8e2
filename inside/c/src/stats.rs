//! Sums, as C has them.

use core::ffi::c_int;
use mallow_alloc::Stats;

/// The answers of functions that may fail.
pub(crate) const DONE: c_int = 0;
pub(crate) const NOT_DONE: c_int = -1;

/// `struct mallow_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MallowStats {
    allocations: u64,
    bytes: u64,
    reallocations: u64,
    temporary: u64,
    peak_bytes: u64,
    peak_blocks: u64,
    live_bytes: u64,
    live_blocks: u64,
}

impl From<Stats> for MallowStats {
    fn from(stats: Stats) -> MallowStats {
        let Stats {
            allocations,
            bytes,
            reallocations,
            temporary,
            peak_bytes,
            peak_blocks,
            live_bytes,
            live_blocks,
        } = stats;
        MallowStats {
            allocations,
            bytes,
            reallocations,
            temporary,
            peak_bytes,
            peak_blocks,
            live_bytes,
            live_blocks,
        }
    }
}

/// Writes sums where the program wants them, if there are any.
///
/// # Safety
/// `into` is null or a place for them.
pub(crate) unsafe fn put(stats: Option<Stats>, into: *mut MallowStats) -> c_int {
    match stats {
        Some(stats) if !into.is_null() => {
            // SAFETY: by contract.
            unsafe { into.write(stats.into()) };
            DONE
        }
        _ => NOT_DONE,
    }
}

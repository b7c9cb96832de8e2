//! The clock of all records.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, as the kernel's events and the preloaded library have it.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

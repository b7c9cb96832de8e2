//! The clock of all records, and how long they wait.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The maximal time between two reads of the rings.
pub(crate) const PAUSE: Duration = Duration::from_millis(40);
/// The same where processes are read, which end.
pub(crate) const PAUSE_READING: Duration = Duration::from_millis(10);

/// The monotonic clock, as the kernel's events and the preloaded library have it.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

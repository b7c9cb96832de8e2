//! Wakes a collector that sleeps between two passes: a ring fills.

use crate::process;
use crate::sys;
use core::sync::atomic::Ordering;

/// Rings, if the collector wants that. A system call, so it is for one call in thousands, and for nobody behind a filter, which may kill for it.
///
/// Nobody who is about to wait is left behind: he has written that he waits, with a full fence, and the collector wrote that it sleeps before it read how full
/// the rings are. So one of the two sees what the other wrote.
#[cold]
#[inline(never)]
pub(crate) fn ring() {
    let doorbell = &process::header().doorbell;
    if doorbell.is_wanted.load(Ordering::SeqCst) != 0 && !process::is_filtered() {
        doorbell.rung.fetch_add(1, Ordering::SeqCst);
        sys::futex_wake(&doorbell.rung);
    }
}

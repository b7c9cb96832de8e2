//! Decides which events get a time stamp, i.e. read the time stamp counter.
//!
//! Reading it is half of an event's cost. Stamps put the events of several threads in order; while one thread alone has
//! recorded, its ring is the order, and an occasional stamp tells the time. [`mallow_wire::shared::Order`] says which case
//! applies. A thread reads it where it would read the counter: after the allocator has returned a new block, or before the
//! allocator gets a block to free.
//!
//! - The order is this thread's and busy, and the collector has made no pass since the thread's last stamp, which is few events
//!   ago: no stamp. The collector uses the time of the event before. A thread that is not busy stamps every event: there the time
//!   between two events is worth more than the cost of a stamp.
//! - The order is another thread's: it is set to nobody's, for ever, before this event is written. From then on every event has a
//!   stamp.
//!
//! Let `e` be an event of thread A without a stamp, and `f` one of thread B. If `f` led to `e`, through the program or through an
//! address that the allocator reused, then B had changed the order before, and A, which read it later, would have stamped. So
//! no event without a stamp has a cause in another ring, and it may be placed as early as the one before it. If `e` led to `f`,
//! then `e` was written before `f` was stamped, and a time that is too early keeps it before `f`. Both hold for a channel's next
//! owner: the thread before it has ended.

use crate::process;
use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use mallow_wire::shared::{ORDER_BUSY, ORDER_MANY, order_owner, with_order_owner};

/// How many events in a row may go without a stamp.
const UNSTAMPED_MAX: u32 = 16;

/// A thread's cached state of the order. A signal handler may change it between any two instructions: then at worst
/// some events more have no stamp while the order is this thread's.
#[repr(C)]
#[derive(Debug)]
pub struct Stamps {
    /// The order when this thread stamped last, and owned it.
    seen: AtomicU64,
    /// How many events may still go without a stamp while it is the same.
    left: AtomicU32,
    /// This thread in the order's word.
    own: u32,
}

impl Stamps {
    /// Returns the state of the thread that owns the channel of this index.
    pub const fn of_channel(index: u32) -> Stamps {
        Stamps { seen: AtomicU64::new(0), left: AtomicU32::new(0), own: index + 1 }
    }

    /// The stamp for the event at hand, or 0 when it needs none.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        if self.goes_without(&process::header().order.word) {
            return 0;
        }
        // SAFETY: the instruction is there on every x86-64 processor.
        unsafe { _rdtsc() }
    }

    /// Returns whether the event at hand needs no stamp.
    #[inline(always)]
    fn goes_without(&self, order: &AtomicU64) -> bool {
        let now = order.load(Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        if left != 0 && now == self.seen.load(Ordering::Relaxed) {
            self.left.store(left - 1, Ordering::Relaxed);
            return true;
        }
        if order_owner(now) != ORDER_MANY {
            self.enter(order, now);
        }
        false
    }

    /// Sets the order to this thread, or to nobody if another thread has it.
    #[cold]
    #[inline(never)]
    fn enter(&self, order: &AtomicU64, mut now: u64) {
        loop {
            let owner = match order_owner(now) {
                ORDER_MANY => return,
                owner if owner == self.own => {
                    self.seen.store(now, Ordering::Relaxed);
                    let left = if now & ORDER_BUSY == 0 { 0 } else { UNSTAMPED_MAX };
                    return self.left.store(left, Ordering::Relaxed);
                }
                0 => self.own,
                _ => ORDER_MANY,
            };
            let next = with_order_owner(now, owner);
            now = match order.compare_exchange(now, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => next,
                Err(other) => other,
            };
        }
    }
}

#[cfg(test)]
#[path = "stamps_tests.rs"]
mod tests;

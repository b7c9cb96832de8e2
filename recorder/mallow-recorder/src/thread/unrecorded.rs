//! Threads whose calls pass by: ours, and those without a channel.

use super::{Thread, current};
use crate::ring::Writer;
use crate::stack_range::StackRange;
use crate::stamps::Stamps;
use crate::thread_status::{OFF, PARKED, ThreadStatus};
use crate::tls;
use crate::walk::UnwindContext;
use core::sync::atomic::AtomicU32;

/// The state of threads of ours in the program: their calls pass by.
static OURS: Unrecorded = Unrecorded::new(OFF);
/// The state of the program's threads for which there was no channel: their calls are counted as lost.
pub(super) static WITHOUT_CHANNEL: Unrecorded = Unrecorded::new(PARKED);

pub(super) struct Unrecorded(Thread);

impl Unrecorded {
    const fn new(state: u32) -> Unrecorded {
        Unrecorded(Thread {
            status: ThreadStatus { state: AtomicU32::new(state), home: AtomicU32::new(state) },
            outer_sp: 0,
            channel: core::ptr::null(),
            ring: Writer::none(),
            memo: core::ptr::null_mut(),
            cx: UnwindContext { stack: StackRange { start: 0, end: 0 }, generation: 0, pid: 0 },
            stamps: Stamps::of_channel(0),
            last_address: 0,
            tag: 0,
        })
    }

    /// Makes it the calling thread's.
    pub(super) fn take(&'static self) {
        tls::set((&raw const self.0).cast_mut().cast());
    }
}

// SAFETY: nobody writes a state that is OFF or PARKED, and its pointers are null.
unsafe impl Sync for Unrecorded {}

/// Makes the calling thread one of ours: it is never recorded.
pub fn become_ours() {
    OURS.take();
}

/// Does something on the program's own thread that is not to be recorded.
pub fn unrecorded(work: impl FnOnce()) {
    let own = current();
    become_ours();
    work();
    tls::set(own.cast());
}

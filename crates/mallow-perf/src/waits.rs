//! Waits: from when a thread gave its processor up until it had one again.
//!
//! The kernel tells three things: the stack at which a thread gives up, that it is off now and whether it could go on, and that it is back.
//! Stacks are large, and their ring may be full; the other two have a ring of their own. What is not known of a wait is
//! not guessed: without its end there is none.

use mallow_cpu::{CpuTotals, ThreadIndex};
use mallow_stacks::StackId;
use rustc_hash::FxHashMap;

/// Waits that are not over, by thread id.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    open: FxHashMap<u32, Wait>,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) thread: ThreadIndex,
    /// None where it was lost.
    pub(crate) stack: Option<StackId>,
    pub(crate) began_ns: u64,
    /// Whether the thread waited for something; if not, others had the CPU. `None` if the record was lost.
    is_blocked: Option<bool>,
}

impl Waits {
    /// A thread is about to leave its CPU.
    pub(crate) fn stack(&mut self, tid: u32, thread: ThreadIndex, stack: Option<StackId>, now_ns: u64) {
        self.open.insert(tid, Wait { thread, stack, began_ns: now_ns, is_blocked: None });
    }

    /// It has.
    pub(crate) fn off(&mut self, tid: u32, thread: ThreadIndex, is_blocked: bool, now_ns: u64) {
        let stack = match self.open.get(&tid) {
            // One that was not over before this one began was over all the same.
            Some(wait) if wait.is_blocked.is_none() => wait.stack,
            _ => None,
        };
        self.open.insert(tid, Wait { thread, stack, began_ns: now_ns, is_blocked: Some(is_blocked) });
    }

    /// It has one again.
    pub(crate) fn on(&mut self, tid: u32) -> Option<Wait> {
        self.open.remove(&tid)
    }

    /// A thread has ended.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.open.remove(&tid);
    }

    /// The waits that are not over when the recording is.
    pub(crate) fn rest(&mut self) -> Vec<Wait> {
        let mut rest: Vec<Wait> = self.open.drain().map(|(_, wait)| wait).collect();
        rest.sort_by_key(|wait| (wait.began_ns, wait.thread));
        rest
    }
}

impl Wait {
    /// Returns its weight if it ends now.
    pub(crate) fn totals(&self, now_ns: u64) -> CpuTotals {
        let off_cpu_ns = now_ns.saturating_sub(self.began_ns);
        let blocked_ns = if self.is_blocked == Some(true) { off_cpu_ns } else { 0 };
        CpuTotals { off_cpu_ns, blocked_ns, switches: 1, ..CpuTotals::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: ThreadIndex = ThreadIndex(3);
    const STACK: Option<StackId> = Some(StackId(7));

    fn weights(wait: Option<Wait>, now_ns: u64) -> Option<(Option<StackId>, u64, u64)> {
        wait.map(|wait| (wait.stack, wait.totals(now_ns).off_cpu_ns, wait.totals(now_ns).blocked_ns))
    }

    #[test]
    fn a_wait_lasts_from_off_to_on_and_says_why() {
        let mut waits = Waits::default();
        waits.stack(9, T, STACK, 99);
        waits.off(9, T, true, 100);
        assert_eq!(weights(waits.on(9), 150), Some((STACK, 50, 50)));
        waits.stack(9, T, STACK, 199);
        waits.off(9, T, false, 200);
        assert_eq!(weights(waits.on(9), 210), Some((STACK, 10, 0)));
        assert_eq!(waits.on(9), None, "it is on");
    }

    #[test]
    fn what_was_lost_is_not_made_up() {
        let mut waits = Waits::default();
        // Without its stack; without its reason; without its end.
        waits.off(1, T, true, 100);
        assert_eq!(weights(waits.on(1), 130), Some((None, 30, 30)));
        waits.stack(1, T, STACK, 100);
        assert_eq!(weights(waits.on(1), 130), Some((STACK, 30, 0)));
        waits.stack(1, T, STACK, 100);
        waits.off(1, T, true, 101);
        waits.off(1, T, true, 200);
        assert_eq!(weights(waits.on(1), 220), Some((None, 20, 20)), "the stack is an earlier one's");
        waits.stack(1, T, STACK, 300);
        waits.ended(1);
        assert_eq!((waits.on(1), waits.rest()), (None, Vec::new()));
        waits.stack(2, T, STACK, 400);
        waits.off(2, T, true, 401);
        let rest = waits.rest();
        assert_eq!((rest.len(), rest[0].totals(500).off_cpu_ns), (1, 99));
    }
}

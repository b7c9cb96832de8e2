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

#[cfg(test)]
mod tests {
    /// A thread that is about to wait, and a collector that is about to sleep.
    #[derive(Clone, Copy, Default)]
    struct Model {
        /// What the thread published is in its store buffer, where only it sees it; then in memory.
        is_buffered: bool,
        is_published: bool,
        is_wanted: bool,
        has_rung: bool,
        has_seen: bool,
        thread_step: u32,
        collector_step: u32,
    }

    impl Model {
        /// The states that one step leads to. On x86 a store leaves its buffer at any time, and before a store with a full fence is done.
        fn next(self, has_fence: bool) -> Vec<Model> {
            let mut all = Vec::new();
            if self.is_buffered {
                all.push(Model { is_buffered: false, is_published: true, ..self });
            }
            let by_thread = Model { thread_step: self.thread_step + 1, ..self };
            match self.thread_step {
                0 => all.push(Model { is_buffered: true, ..by_thread }),
                // It writes that it waits.
                1 if has_fence => all.push(Model { is_buffered: false, is_published: true, ..by_thread }),
                1 => all.push(by_thread),
                2 => all.push(Model { has_rung: self.is_wanted, ..by_thread }),
                _ => {}
            }
            let by_collector = Model { collector_step: self.collector_step + 1, ..self };
            match self.collector_step {
                0 => all.push(Model { is_wanted: true, ..by_collector }),
                1 => all.push(Model { has_seen: self.is_published, ..by_collector }),
                _ => {}
            }
            all
        }

        /// In how many of all ends both would sleep: the ring was not seen, and nobody rang.
        fn lost(self, has_fence: bool) -> usize {
            let next = self.next(has_fence);
            if next.is_empty() {
                return usize::from(!self.has_seen && !self.has_rung);
            }
            next.into_iter().map(|next| next.lost(has_fence)).sum()
        }
    }

    #[test]
    fn no_order_of_steps_leaves_a_full_ring_behind_and_a_sleeping_collector() {
        assert_eq!(Model::default().lost(true), 0);
        assert!(Model::default().lost(false) > 0, "without the fence there are some");
    }
}

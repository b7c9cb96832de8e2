//! Its memory, and ours for it.

use super::TracedProcess;
use crate::clock::Clock;
use crate::heap::{HeapMetrics, HeapSource, who};
use crate::marks::Marks;
use mallow_profile::Sample;
use std::sync::atomic::Ordering;

/// The size of a process beside what is counted.
const PROCESS_BYTES: u64 = 4 << 10;

impl TracedProcess {
    /// Returns about how many bytes of our memory it needs.
    pub(crate) fn held_bytes(&self) -> u64 {
        if self.own { 0 } else { self.pairing.held_bytes() + self.kept_bytes() }
    }

    /// About how many of them stay when it has ended.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if !self.keeps_ended {
            return 0;
        }
        let marks = self.marks.as_ref().map_or(0, Marks::held_bytes);
        let of_code = self.stacks.held_bytes() + self.modules.held_bytes();
        self.fold().kept_bytes() + of_code + self.threads.held_bytes() + marks + PROCESS_BYTES
    }

    /// Returns its own peak of memory.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.memory.largest_bytes()
    }

    /// Lets the process record from now on, if it waits for that. What it has until then is no growth of its heap.
    pub(crate) fn let_begin(&mut self) {
        if self.mapping.header().is_early.load(Ordering::Relaxed) == 0 {
            return;
        }
        let resident = self.memory.resident();
        let header = self.mapping.header();
        if let Some(resident) = resident {
            header.anonymous_bytes_at_start.store(resident.anonymous_bytes, Ordering::Relaxed);
        }
        header.is_early.store(0, Ordering::Relaxed);
    }

    /// Samples resident memory, and the names of threads.
    pub(crate) fn sample(&mut self, clock: &Clock) {
        if self.image.is_replaced() {
            return;
        }
        if let Some(resident) = self.memory.resident() {
            let recorded_bytes = || self.pairing.fold().totals().peak_bytes;
            let met_bytes = |range: &_| self.pairing.met_bytes_in(range);
            if !self.memory.look(resident, &self.mapping, recorded_bytes, met_bytes) {
                self.image.replace();
                return;
            }
            self.samples.push(Sample { time_us: clock.now_us(), rss_bytes: resident.bytes });
        }
    }

    /// Returns how much memory it has that could be a heap, and how much of it was recorded.
    pub(crate) fn heap_metrics(&self) -> HeapMetrics {
        self.memory.metrics(&self.mapping, self.fold().totals().peak_bytes)
    }

    /// Returns where its memory comes from, as far as it is known.
    pub(crate) fn heap_source(&self) -> HeapSource {
        let modules = self.modules().iter().map(|module| module.path.as_str());
        self.memory.source(&self.heap_metrics(), &self.mapping, modules)
    }

    /// Returns what has to be reported of that at its end: whether the metrics are not those of its heap, and the
    /// sentence.
    pub(crate) fn heap_sentence(&self) -> Option<(bool, String)> {
        if self.own {
            return None;
        }
        self.memory.settle();
        let source = self.heap_source();
        let sentence = source.sentence(&who(self.pid, &self.mapping), &self.heap_metrics())?;
        Some((source.is_blind(), sentence))
    }
}

//! What a filter says of a file's processes and stacks, kept for passes over its events.

use mallow_profile::analysis::BlockChoice;
use mallow_profile::{Aggregator, Process, ProcessIndex};
use mallow_view::filter::{Matching, ThreadName};
use std::rc::Rc;

/// A filter that was matched with a file.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) matching: Rc<Matching>,
    /// The indices that it knows processes by.
    processes: Vec<ProcessIndex>,
}

impl Filtered {
    /// For this number of processes.
    pub(crate) fn new(matching: Matching, processes: usize) -> Filtered {
        let processes = (0..processes as u32).map(ProcessIndex).collect();
        Filtered { matching: Rc::new(matching), processes }
    }

    /// Follows a choice of processes.
    pub(crate) fn keep_indices(&mut self, kept: &[ProcessIndex]) {
        self.processes = kept.iter().map(|index| self.processes[index.0 as usize]).collect();
    }

    /// Returns which blocks of a process it selects.
    pub(crate) fn choice(&self, index: ProcessIndex, process: &Process) -> BlockChoice {
        let (matching, known_as) = (Rc::clone(&self.matching), self.processes[index.0 as usize]);
        let threads = process.threads.iter();
        let threads: Vec<u64> = threads
            .map(|thread| matching.thread(ThreadName { tid: thread.tid, name: &thread.name }))
            .collect();
        Box::new(move |thread, stack, size| {
            let of_thread = threads.get(thread.0 as usize).copied().unwrap_or(0);
            let stack = (stack != Aggregator::NO_STACK).then_some(stack);
            matching.wants(known_as, stack, of_thread, size)
        })
    }
}

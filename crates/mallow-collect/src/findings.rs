//! What a collector found out that the reader of the figures should know: sentences, by what they mean.

use crate::out_of_memory::KilledBefore;
use crate::process::TracedProcess;
use mallow_profile::Exit;

/// Sentences of one kind.
const SENTENCES_MAX: usize = 100;

/// Sentences about the processes of a recording.
#[derive(Debug)]
pub(crate) struct Findings {
    /// What is missing in the trace; the trace says so.
    pub(crate) unseen: Vec<String>,
    /// Processes whose metrics are not those of their heaps.
    pub(crate) blind: Vec<String>,
    /// Processes that are managed runtimes.
    pub(crate) managed: Vec<String>,
    /// Results of a recorder with self-checks.
    pub(crate) verification: Vec<String>,
    /// Faults after which the metrics are not the program's.
    pub(crate) faults: Vec<String>,
    /// Modules in which stacks end too early.
    pub(crate) early: Vec<String>,
    /// Processes that were killed, and why they may have been.
    pub(crate) killed: Vec<String>,
    killed_before: KilledBefore,
    /// Sentences that were one too many.
    unsaid: u64,
    /// Whether blocks of Python's allocator were requested of any process, and recorded of any.
    pub(crate) python_objects: (bool, bool),
}

impl Findings {
    /// Returns none. The kernel's count is of the time before any program was started: one that is killed at once is not missed.
    pub(crate) fn new(killed_before: KilledBefore) -> Findings {
        Findings {
            unseen: Vec::new(),
            blind: Vec::new(),
            managed: Vec::new(),
            verification: Vec::new(),
            faults: Vec::new(),
            early: Vec::new(),
            killed: Vec::new(),
            killed_before,
            unsaid: 0,
            python_objects: (false, false),
        }
    }

    /// Returns whether nothing is missing in the trace.
    pub(crate) fn is_complete(&self) -> bool {
        self.unseen.is_empty() && self.blind.is_empty()
    }

    /// Adds those of a process that ends. Returns why its metrics are not those of its heap, if they are not.
    pub(crate) fn add(&mut self, process: &TracedProcess) -> Option<String> {
        process.warnings().into_iter().for_each(|sentence| self.add_unseen(sentence));
        self.faults.extend(process.faults().take(SENTENCES_MAX.saturating_sub(self.faults.len())));
        self.verification.extend(process.verification());
        let (is_wanted, is_counted) = process.python_objects();
        self.python_objects.0 |= is_wanted;
        self.python_objects.1 |= is_counted;
        let blind = self.add_heap(process);
        // Who has another allocator calls its functions by any name.
        if blind.is_none() {
            process.unpaired().into_iter().for_each(|sentence| self.add_unseen(sentence));
        }
        blind
    }

    fn add_heap(&mut self, process: &TracedProcess) -> Option<String> {
        match process.heap_sentence() {
            Some((true, sentence)) => {
                self.add_blind(sentence.clone());
                Some(sentence)
            }
            Some((false, sentence)) => {
                self.add_managed(sentence);
                None
            }
            None => None,
        }
    }

    /// Adds sentences about libraries of a process that ends, which may be `blind` already: it counts as one process,
    /// however many sentences it has.
    pub(crate) fn add_libraries(&mut self, blind: Option<String>, libraries: Vec<String>) -> Option<String> {
        let mut libraries = libraries.into_iter();
        let blind = blind.or_else(|| {
            let first = libraries.next()?;
            self.add_blind(first.clone());
            Some(first)
        });
        libraries.for_each(|sentence| self.add_unseen(sentence));
        blind
    }

    /// Adds a sentence about what is not in the trace. A program can make any number of processes.
    pub(crate) fn add_unseen(&mut self, sentence: String) {
        if self.unseen.len() < SENTENCES_MAX && !self.unseen.contains(&sentence) {
            self.unseen.push(sentence);
        } else {
            self.unsaid += 1;
        }
    }

    /// Adds a sentence about a process whose metrics are not those of its heap.
    pub(crate) fn add_blind(&mut self, sentence: String) {
        if self.blind.len() < SENTENCES_MAX {
            self.blind.push(sentence);
        } else {
            self.unsaid += 1;
        }
    }

    /// Adds a sentence about a process that is a managed runtime.
    pub(crate) fn add_managed(&mut self, sentence: String) {
        if self.managed.len() < SENTENCES_MAX {
            self.managed.push(sentence);
        }
    }

    /// Adds how a process ended, if it may have been killed because memory ran out.
    pub(crate) fn add_end(&mut self, pid: u32, exit: Option<Exit>) {
        if self.killed.len() < SENTENCES_MAX {
            self.killed.extend(self.killed_before.sentence(pid, exit));
        }
    }

    /// Adds how many sentences were dropped. Called last.
    pub(crate) fn say_what_is_unsaid(&mut self) {
        let unsaid = std::mem::take(&mut self.unsaid);
        if unsaid > 0 {
            self.unseen.push(format!("more like that was found of other processes (times: {unsaid})"));
        }
    }

    /// All warnings: first what makes the others small matters.
    pub(crate) fn warnings(&self) -> Vec<String> {
        [&self.blind, &self.unseen, &self.early, &self.verification].into_iter().flatten().cloned().collect()
    }
}

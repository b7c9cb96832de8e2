//! What a collector found out that the reader of the figures should know: sentences, by what they mean.

use crate::process::TracedProcess;

/// Sentences about the processes of a recording.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What is not in the trace, and is said in it.
    pub(crate) unseen: Vec<String>,
    /// Of processes whose figures are not those of their heaps.
    pub(crate) blind: Vec<String>,
    /// Of processes that are managed runtimes.
    pub(crate) managed: Vec<String>,
    /// What a recorder that checks itself found.
    pub(crate) verification: Vec<String>,
    /// After which the figures are not the program's.
    pub(crate) faults: Vec<String>,
    /// What Python's allocator hands out was wanted of some process, and recorded of some.
    pub(crate) python_objects: (bool, bool),
}

impl Findings {
    /// Adds those of a process that ends. Returns why its figures are not those of its heap, if they are not.
    pub(crate) fn add(&mut self, process: &TracedProcess) -> Option<String> {
        self.unseen.extend(process.warnings());
        self.faults.extend(process.faults());
        self.verification.extend(process.verification());
        let (is_wanted, is_counted) = process.python_objects();
        self.python_objects.0 |= is_wanted;
        self.python_objects.1 |= is_counted;
        match process.heap_sentence() {
            Some((true, sentence)) => {
                self.blind.push(sentence.clone());
                Some(sentence)
            }
            Some((false, sentence)) => {
                self.managed.push(sentence);
                None
            }
            None => None,
        }
    }

    /// Adds sentences about libraries of a process that ends, which may be `blind` already: it is one process, however many are said of it.
    pub(crate) fn add_libraries(&mut self, blind: Option<String>, libraries: Vec<String>) -> Option<String> {
        let mut libraries = libraries.into_iter();
        let blind = blind.or_else(|| {
            let first = libraries.next()?;
            self.blind.push(first.clone());
            Some(first)
        });
        self.unseen.extend(libraries);
        blind
    }

    /// All warnings: first what makes the others small matters.
    pub(crate) fn warnings(&self) -> Vec<String> {
        [&self.blind, &self.unseen, &self.verification].into_iter().flatten().cloned().collect()
    }
}

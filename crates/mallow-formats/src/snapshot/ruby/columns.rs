//! The objects that one thread has parsed, as columns.
//!
//! A column is one block of memory for everything that its thread parses, so that it is returned to the system as
//! soon as the graph has its rows: many small blocks would stay with the allocator, which keeps what is freed between
//! others.

use super::record::Record;
use mallow_heapsnap::{AddressIndex, GraphParts, Sizes};

/// Addresses are not resolved: their objects may be in any block.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) addresses: Vec<u64>,
    /// Index into the thread's classes.
    pub(super) classes: Vec<u32>,
    pub(super) sizes: Sizes,
    /// Index into the thread's sites plus 1, or 0.
    pub(super) sites: Vec<u32>,
    /// Plus 1, or 0.
    pub(super) generations: Vec<u32>,
    /// The number of references of each object.
    pub(super) reference_counts: Vec<u32>,
    pub(super) references: Vec<u64>,
}

/// The objects of one block: the next rows of its thread's columns.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The position of the block, which gives the order of the file.
    pub(super) at: u64,
    pub(super) worker: usize,
    pub(super) objects: usize,
}

impl Columns {
    pub(super) fn objects(&self) -> usize {
        self.addresses.len()
    }

    /// Adds an object, whose references are the last ones.
    pub(super) fn push(&mut self, address: u64, class: u32, site: u32, record: &Record, references: u32) {
        self.addresses.push(address);
        self.classes.push(class);
        self.sizes.push(record.memsize);
        self.sites.push(site);
        self.generations.push(record.generation.map_or(0, |at| at.saturating_add(1)));
        self.reference_counts.push(references);
    }

    /// Replaces each reference by the index of its target; removes unknown ones, and returns how many these are.
    pub(super) fn resolve(&mut self, index: &AddressIndex) -> u64 {
        let (mut at, mut kept, mut dangling) = (0, 0, 0);
        for count in &mut self.reference_counts {
            let end = at + *count as usize;
            *count = 0;
            for reference in at..end {
                match index.get(self.references[reference]) {
                    Some(target) => {
                        self.references[kept] = GraphParts::packed_target(target, true).into();
                        kept += 1;
                        *count += 1;
                    }
                    None => dangling += 1,
                }
            }
            at = end;
        }
        self.references.truncate(kept);
        dangling
    }
}

/// Iterates over the rows of a column in the order of the file, with the worker that has them.
pub(super) fn in_order<T>(parts: &[Part], columns: &[Vec<T>], mut take: impl FnMut(usize, &[T])) {
    let mut at = vec![0; columns.len()];
    for part in parts {
        let start = at[part.worker];
        at[part.worker] += part.objects;
        take(part.worker, &columns[part.worker][start..at[part.worker]]);
    }
}

//! A process that has ended: what remains of it until the recording ends.

use crate::guesses::Guesses;
use crate::made_code::MadeCode;
use crate::marks::Marks;
use crate::stack_table::StackTable;
use mallow_profile::{Ended, RegionMetrics, RegionTotals, StackId};
use mallow_scripts::Scripts;
use mallow_trace::{MappedModule, ProcessEnd, ProcessStart, ThreadName};
use std::path::PathBuf;

/// What is kept of an exited process.
#[derive(Debug)]
pub(crate) struct ExitedProcess {
    pub(crate) index: u32,
    pub(crate) start: ProcessStart,
    pub(crate) end: ProcessEnd,
    pub(crate) threads: Vec<ThreadName>,
    pub(crate) marks: Option<Marks>,
    /// The sites of the whole process, when they are counted.
    pub(crate) whole: Vec<(StackId, RegionMetrics)>,
    /// From `main`, and from the first region's begin, to the end.
    pub(crate) wide: [Option<RegionTotals>; 2],
    /// Regions that were open at the end.
    pub(crate) unfinished: Vec<String>,
    /// Whether blocks of Python's own allocator were recorded.
    pub(crate) python_objects: bool,
    /// Why its metrics are not those of its heap, if they are not.
    pub(crate) blind: Option<String>,
    pub(crate) folded: Ended,
    /// Every node of its stacks.
    pub(crate) stacks: StackTable,
    /// Their frames whose callers were guessed.
    pub(crate) guesses: Guesses,
    /// The script frames on them.
    pub(crate) scripts: Scripts,
    /// The symbols of JIT-compiled code on them.
    pub(crate) made: MadeCode,
    pub(crate) modules: Vec<MappedModule>,
    /// Its program, where regions are counted.
    pub(crate) executable: Option<PathBuf>,
}

impl ExitedProcess {
    /// The numbers of all addresses on its stacks.
    pub(crate) fn all_addresses(&self) -> Vec<u32> {
        (0..self.stacks.address_count() as u32).collect()
    }

    /// The numbers of the addresses on the stacks that were counted.
    pub(crate) fn counted_addresses(&self) -> Vec<u32> {
        let stacks = &self.stacks;
        let mut seen = vec![false; stacks.len()];
        let mut counted = vec![false; stacks.address_count()];
        let wide = self.wide.iter().flatten().flat_map(|totals| &totals.sites);
        let sites = self.whole.iter().chain(wide).map(|(stack, _)| *stack);
        for stack in self.marks.iter().flat_map(Marks::stacks).chain(sites) {
            let mut at = Some(stack.0);
            while let Some(node) = at.filter(|at| seen.get(*at as usize) == Some(&false)) {
                seen[node as usize] = true;
                stacks.address(node).into_iter().for_each(|address| counted[address as usize] = true);
                at = stacks.parent(node);
            }
        }
        (0..).zip(counted).filter(|(_, counted)| *counted).map(|(address, _)| address).collect()
    }
}

#[cfg(test)]
impl ExitedProcess {
    /// One with these modules and stacks.
    pub(crate) fn for_test(modules: Vec<MappedModule>, nodes: &[mallow_trace::StackNode]) -> ExitedProcess {
        ExitedProcess {
            index: 0,
            start: ProcessStart::default(),
            end: ProcessEnd::default(),
            threads: Vec::new(),
            marks: None,
            whole: Vec::new(),
            wide: [None, None],
            unfinished: Vec::new(),
            python_objects: false,
            blind: None,
            folded: Ended::default(),
            stacks: StackTable::for_test(nodes),
            guesses: Guesses::default(),
            scripts: Scripts::default(),
            made: MadeCode::default(),
            modules,
            executable: None,
        }
    }
}

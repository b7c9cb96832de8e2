//! The runs of a recording's regions, with names in place of addresses.

use crate::exited::ExitedProcess;
use crate::marks::Ran;
use mallow_base::Frame;
use mallow_launch::LIBRARY_NAME_START;
use mallow_profile::{Aggregator, Module, RegionMetrics, StackId};
use mallow_trace::{SymbolFrame, Symbols};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::time::Duration;

/// One run of a region, or of a whole process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRun {
    /// Its name in the program; empty for the whole process.
    pub name: String,
    /// Its metrics.
    pub metrics: RegionMetrics,
    /// Descriptors that it left open; not known of a whole process, and 0.
    pub descriptors: u64,
    /// The stacks that it is made of.
    pub sites: Vec<RegionSite>,
    /// Whether what it left was stable when it was counted.
    pub settled: bool,
    /// How long the collector waited for that.
    pub waited: Duration,
    /// Values that the program's runtime reported, each with its name, such as how many objects it made.
    pub told: Vec<(String, u64)>,
}

/// The metrics of one stack in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSite {
    /// Innermost first; empty if no stack was taken, such as for a descriptor that was opened by a call without a
    /// hook.
    pub frames: Vec<Frame>,
    /// Its share.
    pub metrics: RegionMetrics,
    /// The descriptors that it left open.
    pub descriptors: u64,
}

/// A process that was watched.
#[derive(Clone, Debug)]
pub struct WatchedProcess {
    /// Its program's file; `None` if the process had ended before it could be read.
    pub executable: Option<PathBuf>,
    /// The program and the libraries that were on its stacks.
    pub modules: Vec<Module>,
    /// Operations in one run, if it reported them.
    pub operations: Option<u64>,
    /// The runs of its regions, in the order of their ends.
    pub runs: Vec<RegionRun>,
    /// The whole process; its sites only where they were wanted.
    pub whole: RegionRun,
    /// From the call of `main` to its end, where there is a `main`.
    pub from_main: Option<RegionRun>,
    /// From the first begin of a region to its end.
    pub from_first: Option<RegionRun>,
    /// Regions that had not ended when the process did.
    pub unfinished: Vec<String>,
    /// Names under which a region was ended that had not begun.
    pub strays: Vec<String>,
    /// Whether blocks of Python's own allocator were counted.
    pub python_objects: bool,
    /// Why its metrics are not those of its heap, if they are not.
    pub blind: Option<String>,
}

/// Names what was counted.
pub(crate) fn watched(ended: Vec<ExitedProcess>, symbols: &Symbols) -> Vec<WatchedProcess> {
    ended.into_iter().map(|process| Naming::of(&process, symbols).process(process)).collect()
}

/// The frames of one process's stacks.
struct Naming<'a> {
    symbols: &'a Symbols,
    /// By (address, exact, generation): the location.
    locations: FxHashMap<(u64, bool, u64), u32>,
}

impl<'a> Naming<'a> {
    fn of(process: &ExitedProcess, symbols: &'a Symbols) -> Naming<'a> {
        let keys = symbols.processes.iter().find(|other| other.process == process.index);
        let locations = keys
            .into_iter()
            .flat_map(|other| &other.keys)
            .map(|key| ((key.avma, key.exact, key.generation), key.location))
            .collect();
        Naming { symbols, locations }
    }

    fn process(&self, mut process: ExitedProcess) -> WatchedProcess {
        let marks = process.marks.take();
        let (operations, runs, strays) =
            marks.map_or_else(Default::default, |marks| (marks.operations, marks.runs, marks.strays));
        let [from_main, from_first] = std::mem::take(&mut process.wide).map(|totals| {
            let ran = |totals| Ran {
                totals,
                descriptors: Vec::new(),
                settled: true,
                waited: Duration::ZERO,
                told: Vec::new(),
            };
            totals.map(|totals| self.run(&process, ran(totals)))
        });
        WatchedProcess {
            executable: process.executable.take(),
            modules: process
                .modules
                .iter()
                .map(|module| Module { path: module.path.clone(), build_id: module.build_id.clone() })
                .collect(),
            operations,
            runs: runs.into_iter().map(|run| self.run(&process, run)).collect(),
            whole: self.whole(&process),
            from_main,
            from_first,
            unfinished: std::mem::take(&mut process.unfinished),
            strays,
            python_objects: process.python_objects,
            blind: process.blind.take(),
        }
    }

    fn run(&self, process: &ExitedProcess, run: Ran) -> RegionRun {
        let mut descriptors: FxHashMap<StackId, u64> = FxHashMap::default();
        for opener in &run.descriptors {
            *descriptors.entry(opener.unwrap_or(Aggregator::NO_STACK)).or_default() += 1;
        }
        let mut sites: Vec<RegionSite> = run
            .totals
            .sites
            .iter()
            .map(|(stack, metrics)| RegionSite {
                frames: self.frames(process, *stack),
                metrics: *metrics,
                descriptors: descriptors.remove(stack).unwrap_or(0),
            })
            .collect();
        let mut rest: Vec<(StackId, u64)> = descriptors.into_iter().collect();
        rest.sort_unstable();
        sites.extend(rest.into_iter().map(|(stack, descriptors)| RegionSite {
            frames: self.frames(process, stack),
            metrics: RegionMetrics::default(),
            descriptors,
        }));
        RegionRun {
            name: run.totals.name,
            metrics: run.totals.metrics,
            descriptors: run.descriptors.len() as u64,
            sites: merged(sites),
            settled: run.settled,
            waited: run.waited,
            told: run.told,
        }
    }

    fn whole(&self, process: &ExitedProcess) -> RegionRun {
        let totals = &process.folded.totals;
        let sites = process.whole.iter().map(|(stack, metrics)| RegionSite {
            frames: self.frames(process, *stack),
            metrics: *metrics,
            descriptors: 0,
        });
        RegionRun {
            name: String::new(),
            metrics: RegionMetrics {
                allocations: totals.allocations,
                bytes: totals.bytes,
                reallocations: totals.reallocations,
                peak_bytes: totals.peak_bytes,
                remaining_blocks: totals.leaked_blocks,
                remaining_bytes: totals.leaked_bytes,
                temporary: totals.temporary,
            },
            descriptors: 0,
            sites: merged(sites.collect()),
            settled: true,
            waited: Duration::ZERO,
            told: Vec::new(),
        }
    }

    fn frames(&self, process: &ExitedProcess, stack: StackId) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut at = Some(stack.0);
        while let Some(node) = at.and_then(|at| process.stacks.node(at)) {
            if let Some(location) = self.locations.get(&(node.avma, node.exact, node.generation)) {
                let location = &self.symbols.locations[*location as usize];
                frames.extend(location.frames.iter().map(|frame| self.frame(frame)));
            }
            at = node.parent;
        }
        // The recorder's own frames are not the program's.
        frames.retain(|frame| {
            !frame.module.as_deref().is_some_and(|module| module.contains(LIBRARY_NAME_START))
        });
        frames
    }

    fn frame(&self, frame: &SymbolFrame) -> Frame {
        let text = |string: u32| self.symbols.strings[string as usize].clone();
        Frame {
            function: text(frame.function),
            file: frame.file.map(text),
            line: frame.line,
            module: frame.module.map(text),
            inlined: frame.inlined,
            language: frame.language,
        }
    }
}

/// Stacks that differ in addresses only are one; in the order of first calls.
fn merged(sites: Vec<RegionSite>) -> Vec<RegionSite> {
    let mut known: FxHashMap<&[Frame], usize> = FxHashMap::default();
    let mut place = |site| {
        let next = known.len();
        *known.entry(site).or_insert(next)
    };
    let places: Vec<usize> = sites.iter().map(|site| place(&site.frames)).collect();
    let mut merged: Vec<RegionSite> = Vec::with_capacity(known.len());
    for (site, place) in sites.into_iter().zip(places) {
        match merged.get_mut(place) {
            Some(known) => {
                known.metrics.add(&site.metrics);
                known.descriptors += site.descriptors;
            }
            None => merged.push(site),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_site_in_the_order_of_first_calls() {
        let site = |function: &str, descriptors: u64| RegionSite {
            frames: vec![Frame { function: function.to_owned(), ..Frame::default() }],
            metrics: RegionMetrics { allocations: 1, ..RegionMetrics::default() },
            descriptors,
        };
        let merged = merged(vec![site("b", 1), site("a", 2), site("b", 3), site("c", 4), site("a", 5)]);
        let told: Vec<(&str, u64, u64)> = merged
            .iter()
            .map(|site| (site.frames[0].function.as_str(), site.metrics.allocations, site.descriptors))
            .collect();
        assert_eq!(told, [("b", 2, 4), ("a", 2, 7), ("c", 1, 4)]);
    }
}

//! The runs of a recording's regions, with names in place of addresses.

use crate::marks::Ran;
use crate::process::Ended;
use mallow_base::Frame;
use mallow_profile::{Exit, Fold, FoldedSite, Module, RegionFigures, StackId};
use mallow_wire::trace::{SymbolFrame, Symbols};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// One run of a region, or of a whole process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRun {
    /// As the program called it; empty for the whole process.
    pub name: String,
    /// What it came to.
    pub figures: RegionFigures,
    /// Descriptors that it left open; not known of a whole process, and 0.
    pub descriptors: u64,
    /// The stacks that it is made of.
    pub sites: Vec<RegionSite>,
    /// Whether what it left stood still when it was counted.
    pub settled: bool,
    /// How long was waited for that.
    pub waited: Duration,
}

/// What one stack did in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSite {
    /// Innermost first; empty when no stack was taken, such as for a descriptor that was opened by a call which nobody watches.
    pub frames: Vec<Frame>,
    /// Its share.
    pub figures: RegionFigures,
    /// The descriptors that it left open.
    pub descriptors: u64,
}

/// A process that was watched.
#[derive(Clone, Debug)]
pub struct WatchedProcess {
    /// Its process id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// How it ended, as far as anybody knows.
    pub exit: Option<Exit>,
    /// The program and the libraries that stood on its stacks.
    pub modules: Vec<Module>,
    /// Operations in one run, if it said so.
    pub operations: Option<u64>,
    /// The runs of its regions, in the order of their ends.
    pub runs: Vec<RegionRun>,
    /// The whole process.
    pub whole: RegionRun,
    /// From the call of `main` to its end, where there is a `main`.
    pub from_main: Option<RegionRun>,
    /// From the first begin of a region to its end.
    pub from_first: Option<RegionRun>,
    /// Regions that had not ended when the process did.
    pub unfinished: Vec<String>,
    /// Names under which a region was ended that had not begun.
    pub strays: Vec<String>,
}

/// The recorder's own library: its frames are not the program's.
const OWN_LIBRARY: &str = "libmallow_preload";

/// Names what was counted.
pub(crate) fn watched(ended: Vec<Ended>, symbols: &Symbols) -> Vec<WatchedProcess> {
    ended.into_iter().map(|process| Naming::of(&process, symbols).process(process)).collect()
}

/// The frames of one process's stacks.
struct Naming<'a> {
    symbols: &'a Symbols,
    /// By (address, exact, generation): the location.
    locations: FxHashMap<(u64, bool, u64), u32>,
}

impl<'a> Naming<'a> {
    fn of(process: &Ended, symbols: &'a Symbols) -> Naming<'a> {
        let keys = symbols.processes.iter().find(|other| other.process == process.index);
        let locations = keys
            .into_iter()
            .flat_map(|other| &other.keys)
            .map(|key| ((key.avma, key.exact, key.generation), key.location))
            .collect();
        Naming { symbols, locations }
    }

    fn process(&self, mut process: Ended) -> WatchedProcess {
        let marks = process.marks.take();
        let (operations, runs, strays) =
            marks.map_or_else(Default::default, |marks| (marks.operations, marks.runs, marks.strays));
        let [from_main, from_first] = std::mem::take(&mut process.wide).map(|totals| {
            let ran = |totals| Ran { totals, descriptors: Vec::new(), settled: true, waited: Duration::ZERO };
            totals.map(|totals| self.run(&process, ran(totals)))
        });
        WatchedProcess {
            pid: process.pid,
            command: std::mem::take(&mut process.command),
            exit: process.exit,
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
        }
    }

    fn run(&self, process: &Ended, run: Ran) -> RegionRun {
        let mut descriptors: FxHashMap<StackId, u64> = FxHashMap::default();
        for opener in &run.descriptors {
            *descriptors.entry(opener.unwrap_or(Fold::NO_STACK)).or_default() += 1;
        }
        let mut sites: Vec<RegionSite> = run
            .totals
            .sites
            .iter()
            .map(|(stack, figures)| RegionSite {
                frames: self.frames(process, *stack),
                figures: *figures,
                descriptors: descriptors.remove(stack).unwrap_or(0),
            })
            .collect();
        let mut rest: Vec<(StackId, u64)> = descriptors.into_iter().collect();
        rest.sort_unstable();
        sites.extend(rest.into_iter().map(|(stack, descriptors)| RegionSite {
            frames: self.frames(process, stack),
            figures: RegionFigures::default(),
            descriptors,
        }));
        RegionRun {
            name: run.totals.name,
            figures: run.totals.figures,
            descriptors: run.descriptors.len() as u64,
            sites: merged(sites),
            settled: run.settled,
            waited: run.waited,
        }
    }

    fn whole(&self, process: &Ended) -> RegionRun {
        let totals = &process.folded.totals;
        let sites = process.folded.sites.iter().map(|site| RegionSite {
            frames: self.frames(process, site.stack),
            figures: figures_of(site),
            descriptors: 0,
        });
        RegionRun {
            name: String::new(),
            figures: RegionFigures {
                allocations: totals.allocations,
                bytes: totals.bytes,
                reallocations: totals.reallocations,
                peak_bytes: totals.peak_bytes,
                remaining_blocks: totals.leaked_blocks,
                remaining_bytes: totals.leaked_bytes,
            },
            descriptors: 0,
            sites: merged(sites.collect()),
            settled: true,
            waited: Duration::ZERO,
        }
    }

    fn frames(&self, process: &Ended, stack: StackId) -> Vec<Frame> {
        let nodes = process.stacks.nodes();
        let mut frames = Vec::new();
        let mut at = Some(stack.0);
        while let Some(node) = at.and_then(|at| nodes.get(at as usize)) {
            if let Some(location) = self.locations.get(&(node.avma, node.exact, node.generation)) {
                let location = &self.symbols.locations[*location as usize];
                frames.extend(location.frames.iter().map(|frame| self.frame(frame)));
            }
            at = node.parent;
        }
        frames.retain(|frame| !frame.module.as_deref().is_some_and(|module| module.contains(OWN_LIBRARY)));
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
        }
    }
}

fn figures_of(site: &FoldedSite) -> RegionFigures {
    RegionFigures {
        allocations: site.totals.allocations,
        bytes: site.totals.bytes,
        reallocations: site.totals.reallocations,
        peak_bytes: 0,
        remaining_blocks: site.totals.leaked_blocks,
        remaining_bytes: site.totals.leaked_bytes,
    }
}

/// Stacks that differ in addresses only are one; in the order of first calls.
fn merged(sites: Vec<RegionSite>) -> Vec<RegionSite> {
    let mut places: FxHashMap<Vec<Frame>, usize> = FxHashMap::default();
    let mut merged: Vec<RegionSite> = Vec::new();
    for site in sites {
        match places.get(&site.frames) {
            Some(place) => {
                merged[*place].figures.add(&site.figures);
                merged[*place].descriptors += site.descriptors;
            }
            None => {
                places.insert(site.frames.clone(), merged.len());
                merged.push(site);
            }
        }
    }
    merged
}

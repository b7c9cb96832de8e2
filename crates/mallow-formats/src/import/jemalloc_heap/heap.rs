//! Builds a heap profile: stacks with their metrics come first, mappings only after them.

use super::mappings::{Mappings, Place};
use super::symbols::Symbols;
use crate::Imported;
use mallow_base::{Frame, add_fields};
use mallow_profile::{
    Address, Availability, LocationId, Module, Process, ProfileBuilder, Recording, SiteTotals, StackId,
    Thread, Totals,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The metrics of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

impl Metrics {
    /// Parses `55: 49382 [ 55: 49382`, without the closing bracket.
    pub(crate) fn of_text(text: &str) -> Option<Metrics> {
        let (live, allocated) = text.split_once('[')?;
        let pair = |text: &str| -> Option<(u64, u64)> {
            let (blocks, bytes) = text.split_once(':')?;
            Some((blocks.trim().parse().ok()?, bytes.trim().parse().ok()?))
        };
        let ((live_blocks, live_bytes), (allocations, bytes)) = (pair(live)?, pair(allocated)?);
        Some(Metrics { live_blocks, live_bytes, allocations, bytes })
    }

    fn add(&mut self, other: &Metrics) {
        add_fields!(self, other; live_blocks, live_bytes, allocations, bytes);
    }
}

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    stacks: Vec<(Vec<u64>, Metrics)>,
    threads: BTreeMap<u64, (String, Metrics)>,
    /// `None` until the end of the file is reached.
    pub(crate) mappings: Option<Mappings>,
    /// Whether the numbers of allocations are ignored although they are there.
    pub(crate) only_live: bool,
    pub(crate) symbols: Symbols,
}

impl Heap {
    pub(crate) fn new(symbols: Symbols) -> Heap {
        Heap { symbols, ..Heap::default() }
    }

    /// Adds a stack, innermost address first, with metrics that can be added up.
    pub(crate) fn add_stack(&mut self, addresses: &[u64], metrics: Metrics) {
        if metrics != Metrics::default() {
            self.stacks.push((addresses.to_vec(), metrics));
        }
    }

    pub(super) fn name_thread(&mut self, thread: u64, name: &str) {
        self.threads.entry(thread).or_default().0 = name.to_owned();
    }

    pub(super) fn add_to_thread(&mut self, thread: u64, metrics: Metrics) {
        self.threads.entry(thread).or_default().1.add(&metrics);
    }

    /// Returns whether the file has what was allocated, in addition to what is live.
    pub(crate) fn is_accumulated(&self) -> bool {
        !self.only_live && self.stacks.iter().any(|(_, metrics)| metrics.allocations > 0 || metrics.bytes > 0)
    }

    /// Returns whether at some stack more was allocated than is live.
    pub(crate) fn has_frees(&self) -> bool {
        self.stacks.iter().any(|(_, metrics)| {
            (metrics.live_blocks, metrics.live_bytes) != (metrics.allocations, metrics.bytes)
        })
    }

    /// Returns the profile of the one process.
    pub(crate) fn imported(self, mut warnings: Vec<String>) -> Imported {
        let complete = self.mappings.is_some();
        if !complete {
            warnings.push(String::from(
                "the file ends without MAPPED_LIBRARIES: it was cut off, and which files its addresses are in is unknown",
            ));
        }
        let allocations = self.is_accumulated();
        let known = Availability {
            leaked: true,
            leaked_blocks: true,
            allocations,
            bytes: allocations,
            ..Availability::NOTHING
        };
        let mappings = self.mappings.unwrap_or_default();
        let program = self.symbols.binary.as_deref().or(mappings.program()).map(str::to_owned);
        let mut builder = ProfileBuilder::new(
            Recording {
                command: program.iter().cloned().collect(),
                mapped: mappings.code(),
                ..Recording::default()
            },
            known,
        );
        let process = Process { command: program.unwrap_or_default(), ..Process::default() };
        let process = builder.add_process(process);
        let addresses: usize = self.stacks.iter().map(|(addresses, _)| addresses.len()).sum();
        let mut places = Places {
            mappings: &mappings,
            symbols: &self.symbols,
            known: FxHashMap::default(),
            paths_left: PATHS_MIN.max(addresses as u64 * PATH_PER_ADDRESS),
        };
        let mut totals = Totals::default();
        for (addresses, metrics) in &self.stacks {
            let stack = places.stack(&mut builder, addresses);
            let site = site_of(metrics, allocations);
            builder.add_site(process, stack, &site);
            totals.add(&totals_of(&site, allocations));
        }
        builder.process(process).totals = totals;
        builder.process(process).threads = threads_of(self.threads, allocations);
        Imported { profile: builder.finish(), warnings, complete }
    }
}

fn site_of(metrics: &Metrics, allocations: bool) -> SiteTotals {
    SiteTotals {
        allocations: if allocations { metrics.allocations } else { 0 },
        bytes: if allocations { metrics.bytes } else { 0 },
        leaked_blocks: metrics.live_blocks,
        leaked_bytes: metrics.live_bytes,
        ..SiteTotals::default()
    }
}

fn totals_of(site: &SiteTotals, allocations: bool) -> Totals {
    Totals {
        allocations: site.allocations,
        bytes: site.bytes,
        frees: if allocations { site.allocations.saturating_sub(site.leaked_blocks) } else { 0 },
        leaked_bytes: site.leaked_bytes,
        leaked_blocks: site.leaked_blocks,
        ..Totals::default()
    }
}

/// Returns the threads with what they allocated; nothing is known of them if there are only live blocks.
fn threads_of(threads: BTreeMap<u64, (String, Metrics)>, allocations: bool) -> Vec<Thread> {
    let thread = |(id, (name, metrics)): (u64, (String, Metrics))| Thread {
        tid: u32::try_from(id).unwrap_or(u32::MAX),
        name,
        allocations: metrics.allocations,
        bytes: metrics.bytes,
    };
    if allocations { threads.into_iter().map(thread).collect() } else { Vec::new() }
}

/// The minimum budget of bytes for paths in frames, and the budget for each address in the file.
const PATHS_MIN: u64 = 64 << 20;
const PATH_PER_ADDRESS: u64 = 256;

/// Converts addresses to stacks of a profile.
struct Places<'a> {
    mappings: &'a Mappings,
    symbols: &'a Symbols,
    known: FxHashMap<(u64, bool), LocationId>,
    /// Bytes of paths that may still be copied into frames. Only a malicious file has such long paths, or so many inlined calls.
    paths_left: u64,
}

impl Places<'_> {
    /// Returns the stack without the allocator's own innermost frames.
    fn stack(&mut self, builder: &mut ProfileBuilder, addresses: &[u64]) -> Option<StackId> {
        let own = addresses.iter().take_while(|&&address| self.is_allocator(address)).count();
        let kept = if own < addresses.len() { own } else { 0 };
        if let [only] = addresses
            && self.symbols.is_no_stack(*only)
        {
            return None;
        }
        let innermost = addresses.first().copied();
        let locations: Vec<LocationId> = addresses[kept..]
            .iter()
            .enumerate()
            .rev()
            .map(|(index, &address)| {
                let is_innermost = kept + index == 0 && Some(address) == innermost;
                self.location(builder, address, is_innermost)
            })
            .collect();
        builder.stack(locations)
    }

    /// Returns whether this is a frame of the profiler, which starts to unwind inside itself.
    fn is_allocator(&self, address: u64) -> bool {
        let Place::File(path, _) = self.mappings.place(address) else { return false };
        let file = path.rsplit('/').next().unwrap_or_default();
        ["libjemalloc", "libtcmalloc", "libprofiler"].iter().any(|name| file.starts_with(name))
    }

    fn location(&mut self, builder: &mut ProfileBuilder, address: u64, is_innermost: bool) -> LocationId {
        if let Some(&known) = self.known.get(&(address, is_innermost)) {
            return known;
        }
        let (place, path) = match self.mappings.place(address) {
            Place::File(path, svma) => {
                let module = builder.module(Module { path: path.to_owned(), build_id: Vec::new() });
                (Address::InModule { module, svma }, Some(path))
            }
            Place::Elsewhere => (Address::Anonymous { avma: address }, None),
            Place::NoAddress => (Address::Unknown, None),
        };
        let mut frames = self.symbols.frames(address, is_innermost);
        if frames.is_empty() {
            frames.push(bare(place));
        }
        let copied = path.map_or(0, |path| path.len() as u64 * frames.len() as u64);
        if let Some(path) = path.filter(|_| copied <= self.paths_left) {
            self.paths_left -= copied;
            frames.iter_mut().for_each(|frame| frame.module = Some(path.to_owned()));
        }
        let location = builder.location(place, frames);
        self.known.insert((address, is_innermost), location);
        location
    }
}

/// Returns a frame without a name.
fn bare(address: Address) -> Frame {
    let function = match address {
        Address::InModule { svma, .. } => format!("{svma:#x}"),
        Address::Anonymous { avma } => format!("{avma:#x}"),
        Address::Unknown => String::from("[unknown]"),
    };
    Frame { function, ..Frame::default() }
}

/// Parses hexadecimal addresses, separated by blanks.
pub(crate) fn addresses_of(text: &str) -> Option<Vec<u64>> {
    let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok();
    text.split_ascii_whitespace().map(address).collect()
}

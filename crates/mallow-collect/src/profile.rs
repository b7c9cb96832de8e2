//! The profile of a recording that has ended, from what the collector holds.
//!
//! It is the one that a reader makes of the trace, in the same order, so that whoever recorded need not read back what was
//! written. Only what grows with time is left out: the samples of resident memory. Sites are added when somebody wants them: those of a
//! program with 50,000 stacks are 10 MB of fresh memory, and a summary can read them where they were counted.

use crate::exited::ExitedProcess;
use mallow_base::Frame;
use mallow_profile::{
    Address, Aggregator, Location, LocationId, Process, ProcessIndex, Profile, Site, SiteList, SiteTotals,
    StackId, StackNode, Thread,
};
use mallow_trace::{self as trace, want_large_pages};
use rustc_hash::FxHashMap;

/// Assembles the processes, in the order in which they registered, without their sites. `frames` are those of each location of the symbols,
/// `locations` the number of that of each process's addresses.
pub(crate) fn profile_of<'a>(
    ended: &'a [ExitedProcess],
    symbols: &trace::Symbols,
    frames: Vec<Vec<Frame>>,
    locations: Vec<Vec<u32>>,
) -> (Profile, CountedSites<'a>) {
    let (mut profile, mut sites) = (Profile::default(), CountedSites::default());
    let ids = add_locations(&mut profile, symbols, frames);
    let mut processes: Vec<(&ExitedProcess, Vec<u32>)> = ended.iter().zip(locations).collect();
    processes.sort_by_key(|(process, _)| process.index);
    for (process, locations) in processes {
        let ids: Vec<LocationId> = locations.into_iter().map(|location| ids[location as usize]).collect();
        sites.processes.push(CountedProcess {
            process,
            stack_first: profile.stacks.nodes.len() as u32,
            site_first: sites.count,
        });
        sites.count += process.folded.sites().len();
        add_process(&mut profile, process, &ids);
    }
    (profile, sites)
}

/// The sites of all processes of a profile, where they were counted.
#[derive(Debug, Default)]
pub(crate) struct CountedSites<'a> {
    /// In the profile's order.
    processes: Vec<CountedProcess<'a>>,
    count: usize,
}

#[derive(Debug)]
struct CountedProcess<'a> {
    process: &'a ExitedProcess,
    /// The number of its first stack in the profile.
    stack_first: u32,
    /// The place of its first site.
    site_first: usize,
}

impl CountedProcess<'_> {
    fn stack(&self, stack: StackId) -> Option<StackId> {
        (stack != Aggregator::NO_STACK).then(|| StackId(self.stack_first + stack.0))
    }
}

impl SiteList<SiteTotals> for CountedSites<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn at(&self, place: usize) -> Site {
        let index = self.processes.partition_point(|process| process.site_first <= place) - 1;
        let counted = &self.processes[index];
        let site = counted.process.folded.site(place - counted.site_first);
        let process = ProcessIndex(index as u32);
        Site { process, stack: counted.stack(site.stack), totals: site.totals }
    }
}

impl CountedSites<'_> {
    /// Copies them into their profile.
    pub(crate) fn add_to(&self, profile: &mut Profile) {
        profile.sites.reserve(self.count);
        let room = profile.sites.spare_capacity_mut();
        want_large_pages(room.as_mut_ptr().cast(), size_of_val(room));
        profile.sites.extend((0..self.count).map(|place| self.at(place)));
        for (counted, index) in self.processes.iter().zip(0..) {
            profile.take_requests(
                ProcessIndex(index),
                counted.stack_first,
                counted.process.folded.requests(),
            );
        }
    }
}

/// The profile's location for each of the symbols'. Two of them may be one address, as a program counter and as where a call
/// returns to: they are one location when they mean the same.
fn add_locations(
    profile: &mut Profile,
    symbols: &trace::Symbols,
    frames: Vec<Vec<Frame>>,
) -> Vec<LocationId> {
    profile.stacks.modules.clone_from(&symbols.modules);
    let mut known: FxHashMap<Address, LocationId> = FxHashMap::default();
    let locations = symbols.locations.iter().zip(frames).map(|(location, frames)| {
        let address = location.address;
        if let Some(id) = known.get(&address)
            && profile.stacks.locations[id.0 as usize].frames == frames
        {
            return *id;
        }
        let id = LocationId(profile.stacks.locations.len() as u32);
        profile.stacks.locations.push(Location { address, frames });
        if address != Address::Unknown {
            known.insert(address, id);
        }
        id
    });
    locations.collect()
}

fn add_process(profile: &mut Profile, process: &ExitedProcess, locations: &[LocationId]) {
    let ExitedProcess { start, end, threads, folded, stacks, .. } = process;
    let base = profile.stacks.nodes.len() as u32;
    profile.stacks.nodes.extend(stacks.links().map(|(parent, address)| StackNode {
        parent: parent.map(|parent| StackId(base + parent)),
        location: locations[address as usize],
    }));
    let mut of_threads: Vec<Thread> = folded
        .threads
        .iter()
        .map(|thread| Thread { allocations: thread.allocations, bytes: thread.bytes, ..Thread::default() })
        .collect();
    of_threads.resize_with(of_threads.len().max(threads.len()), Thread::default);
    for (thread, met) in of_threads.iter_mut().zip(threads) {
        (thread.tid, thread.name) = (met.tid, met.name.clone());
    }
    profile.processes.push(Process {
        totals: folded.totals,
        peak_us: folded.peak_us,
        frees_unmatched: folded.frees_unmatched,
        threads: of_threads,
        ..process_of(start.clone(), *end)
    });
}

/// A process of which nothing but its begin and its end is known.
pub(crate) fn process_of(start: trace::ProcessStart, end: trace::ProcessEnd) -> Process {
    Process {
        pid: start.pid,
        parent_pid: start.parent_pid,
        command: start.command,
        started_us: start.started_us,
        ended_us: end.ended_us,
        exit: end.exit,
        events_lost: end.events_lost,
        ..Process::default()
    }
}

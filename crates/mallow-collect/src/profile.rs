//! The profile of a recording that has ended, from what the collector holds.
//!
//! It is the one that a reader makes of the trace, in the same order, so that whoever recorded need not read back what was
//! written. Only what grows with time is left out: the samples of resident memory.

use crate::exited::ExitedProcess;
use mallow_base::Frame;
use mallow_profile::{
    Address, Aggregator, Location, LocationId, Process, ProcessIndex, Profile, Site, StackId, StackNode,
    Thread,
};
use mallow_trace::{self as trace, want_large_pages};
use rustc_hash::FxHashMap;

/// Assembles the processes, in the order in which they registered. `frames` are those of each location of the symbols, `locations` the number
/// of that of each process's addresses.
pub(crate) fn profile_of(
    ended: &[ExitedProcess],
    symbols: &trace::Symbols,
    frames: Vec<Vec<Frame>>,
    locations: Vec<Vec<u32>>,
) -> Profile {
    let mut profile = Profile::default();
    let ids = add_locations(&mut profile, symbols, frames);
    let mut processes: Vec<(&ExitedProcess, Vec<u32>)> = ended.iter().zip(locations).collect();
    processes.sort_by_key(|(process, _)| process.index);
    for (process, locations) in processes {
        let ids: Vec<LocationId> = locations.into_iter().map(|location| ids[location as usize]).collect();
        add_process(&mut profile, process, &ids);
    }
    profile
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
    let index = ProcessIndex(profile.processes.len() as u32);
    let base = profile.stacks.nodes.len() as u32;
    profile.stacks.nodes.extend(stacks.links().map(|(parent, address)| StackNode {
        parent: parent.map(|parent| StackId(base + parent)),
        location: locations[address as usize],
    }));
    profile.sites.reserve(folded.sites().len());
    let room = profile.sites.spare_capacity_mut();
    want_large_pages(room.as_mut_ptr().cast(), size_of_val(room));
    profile.sites.extend(folded.sites().map(|site| Site {
        process: index,
        stack: (site.stack != Aggregator::NO_STACK).then(|| StackId(base + site.stack.0)),
        totals: site.totals,
    }));
    profile.take_requests(index, base, folded.requests());
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

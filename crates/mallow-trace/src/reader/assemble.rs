//! A trace's parts, put together as a profile: each process's numbering becomes part of one.

use super::gather::{Parts, ProcessParts};
use super::locate::Locations;
use crate::{Accesses, ThreadName};
use mallow_profile::{
    Aggregator, Availability, EventsLost, LocationId, Process, ProcessIndex, Profile, Site, StackId,
    StackNode, Summary, Thread,
};
use std::collections::BTreeMap;

/// The profile of parts whose metrics are all known.
pub(super) fn profile(parts: Parts) -> Profile {
    let mut locations = Locations::default();
    parts.symbols.iter().for_each(|symbols| locations.add_symbols(symbols));
    drop(parts.symbols);
    let mut profile = Profile::default();
    // A file that was cut off before its first events knows of no metric that it is 0.
    let has_metrics = parts.processes.iter().any(|(_, process)| process.summary.is_some());
    let is_known = has_metrics || (parts.processes.is_empty() && parts.end.is_some());
    for (index, process) in parts.processes {
        let nodes = locations.of_nodes(index, &process.stacks, &process.modules);
        add_process(&mut profile, process, nodes);
    }
    let ended_us = profile.processes.iter().map(|process| process.ended_us).max().unwrap_or(0);
    profile.recording = parts.recording;
    profile.recording.nameless = parts.nameless;
    profile.recording.early_ends = parts.early_ends;
    profile.recording.duration_us = parts.end.map_or(ended_us, |end| end.duration_us);
    if let Some(origin) = &parts.origin {
        profile.recording.time_unit = origin.time_unit;
        profile.known = origin.known;
    }
    if !is_known {
        profile.known = Availability::NOTHING;
    }
    profile.stacks.modules = locations.modules;
    profile.stacks.locations = locations.locations;
    profile
}

fn add_process(profile: &mut Profile, process: ProcessParts, nodes: Vec<LocationId>) {
    let index = ProcessIndex(profile.processes.len() as u32);
    let base = profile.stacks.nodes.len() as u32;
    profile.stacks.nodes.extend(process.stacks.iter().zip(nodes).map(|(node, location)| StackNode {
        parent: node.parent.map(|parent| StackId(base + parent)),
        location,
    }));
    drop(process.stacks);
    let summary = process.summary.unwrap_or_default();
    let first_site = profile.sites.len();
    profile.sites.extend(summary.sites.iter().map(|site| Site {
        process: index,
        stack: (site.stack != Aggregator::NO_STACK).then(|| StackId(base + site.stack.0)),
        totals: site.totals,
    }));
    take_accesses(profile, index, base, first_site, process.accesses);
    profile.take_requests(index, base, summary.requests.as_deref().map(|requests| requests.iter().copied()));
    // The end was not seen: the process lived at least as long as it allocated.
    let last_us =
        summary.sites.iter().map(|site| site.totals.last_us).max().unwrap_or(process.start.started_us);
    profile.processes.push(Process {
        pid: process.start.pid,
        parent_pid: process.start.parent_pid,
        command: process.start.command,
        started_us: process.start.started_us,
        ended_us: process.end.map_or(last_us.max(process.last_event_us), |end| end.ended_us),
        exit: process.end.and_then(|end| end.exit),
        totals: summary.totals,
        peak_us: summary.peak_us,
        events_lost: process.end.map_or(EventsLost::Unknown, |end| end.events_lost),
        frees_unmatched: summary.frees_unmatched,
        threads: threads_of(&summary, process.threads),
        samples: process.samples,
        live_samples: process.live_samples,
    });
}

/// Adds the reads and writes of a process to its sites. Those of a site that is lost are lost too.
fn take_accesses(
    profile: &mut Profile,
    process: ProcessIndex,
    base: u32,
    first_site: usize,
    accesses: Accesses,
) {
    let of = |site: &crate::SiteAccess| {
        (site.stack != Aggregator::NO_STACK).then(|| StackId(base.wrapping_add(site.stack.0)))
    };
    let mut by_stack: BTreeMap<_, _> = accesses.sites.into_iter().map(|site| (of(&site), site)).collect();
    for site in &mut profile.sites[first_site..] {
        if let Some(found) = by_stack.remove(&site.stack) {
            site.totals.read_bytes = found.read_bytes;
            site.totals.written_bytes = found.written_bytes;
            if found.bytes.is_some() {
                profile.accesses.add(process, site.stack, found.bytes);
            }
        }
    }
}

/// Returns the threads' metrics with their names. Indices are dense, so one far beyond the others is a damage.
fn threads_of(summary: &Summary, names: BTreeMap<u32, ThreadName>) -> Vec<Thread> {
    let metrics = |thread: &mallow_profile::ThreadSummary| Thread {
        allocations: thread.allocations,
        bytes: thread.bytes,
        ..Thread::default()
    };
    let mut threads: Vec<Thread> = summary.threads.iter().map(metrics).collect();
    let count_max = threads.len() + names.len();
    for (index, name) in names {
        let index = index as usize;
        if index < count_max {
            threads.resize_with(threads.len().max(index + 1), Thread::default);
            threads[index].tid = name.tid;
            threads[index].name = name.name;
        }
    }
    threads
}

//! A profile as a trace, with events or without: what `mallow import` makes of another tool's file, and `mallow export` of ours.
//!
//! The trace holds the sums and the names, so that every report works on it but those that need events, if there are none. Each
//! location gets a made-up address of its own, by which its stack nodes find it again.

use crate::{
    Accesses, End, EventCopy, LiveSamples, Origin, ProcessEnd, ProcessStart, Samples, SiteAccess, StackNode,
    Stacks, SymbolKey, SymbolLocation, SymbolProcess, SymbolStrings, Symbols, ThreadName, Threads,
    TraceWriter, TruncatedStacks, Unnamed,
};
use mallow_profile::{
    Aggregator, Process, ProcessIndex, Profile, SiteSummary, StackId, Summary, ThreadSummary,
};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Fast, and small enough.
const ZSTD_LEVEL: i32 = 3;
/// The made-up address of the first location: none of those that mean something in a recording.
const FIRST_AVMA: u64 = 0x1000;

/// Writes a profile that was imported from a file of the named format.
///
/// # Errors
/// What `out` refused, or a table of more than 4 GiB.
pub fn write_profile(profile: &Profile, format: &str, out: &mut dyn Write) -> io::Result<()> {
    write_profile_with(profile, format, &mut |_, _| Ok(()), out)
}

/// The same with single events: `feed` passes those of a process to what it is given.
///
/// # Errors
/// As [`write_profile`], and those of `feed`.
pub fn write_profile_with(
    profile: &Profile,
    format: &str,
    feed: &mut dyn FnMut(ProcessIndex, &mut EventCopy<'_, '_>) -> io::Result<()>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut trace = TraceWriter::new(out, ZSTD_LEVEL)?;
    trace.put_whole(&profile.recording)?;
    trace.put_whole(&Origin {
        format: format.to_owned(),
        known: profile.known,
        time_unit: profile.recording.time_unit,
    })?;
    let mut symbols = names_of(&profile.stacks);
    for (index, process) in (0..).zip(&profile.processes) {
        let used = UsedStacks::of(profile, ProcessIndex(index));
        symbols.processes.push(SymbolProcess { process: index, keys: used.keys(profile) });
        put_process(&mut trace, profile, index, process, &used, feed)?;
    }
    trace.put_whole(&symbols)?;
    if !profile.recording.nameless.is_empty() {
        trace.put_whole(&Unnamed { modules: profile.recording.nameless.clone() })?;
    }
    if !profile.recording.early_ends.is_empty() {
        trace.put_whole(&TruncatedStacks { early_ends: profile.recording.early_ends.clone() })?;
    }
    trace.put_whole(&End { duration_us: profile.recording.duration_us })
}

fn put_process(
    trace: &mut TraceWriter<&mut dyn Write>,
    profile: &Profile,
    index: u32,
    process: &Process,
    used: &UsedStacks,
    feed: &mut dyn FnMut(ProcessIndex, &mut EventCopy<'_, '_>) -> io::Result<()>,
) -> io::Result<()> {
    trace.put(
        index,
        &ProcessStart {
            pid: process.pid,
            parent_pid: process.parent_pid,
            command: process.command.clone(),
            started_us: process.started_us,
        },
    )?;
    trace.put(index, &used.nodes(profile))?;
    trace.put(index, &threads_of(process))?;
    let mut events = EventCopy::new(trace, index, &used.numbers);
    feed(ProcessIndex(index), &mut events)?;
    events.finish()?;
    trace.put(index, &Samples { samples: process.samples.clone() })?;
    if !process.live_samples.is_empty() {
        trace.put(index, &LiveSamples { samples: process.live_samples.clone() })?;
    }
    trace.put(index, &summary_of(profile, index, process, used))?;
    if profile.known.accesses {
        trace.put(index, &accesses_of(profile, index, used))?;
    }
    let end = ProcessEnd { ended_us: process.ended_us, exit: process.exit, events_lost: process.events_lost };
    trace.put(index, &end)
}

/// The stack nodes of one process's sites, in the profile's order, which has parents first.
struct UsedStacks {
    ids: Vec<StackId>,
    numbers: FxHashMap<StackId, u32>,
}

impl UsedStacks {
    fn of(profile: &Profile, process: ProcessIndex) -> UsedStacks {
        let mut used = vec![false; profile.stacks.nodes.len()];
        for site in profile.sites.iter().filter(|site| site.process == process) {
            let mut next = site.stack;
            while let Some(id) = next
                && !std::mem::replace(&mut used[id.0 as usize], true)
            {
                next = profile.stacks.node(id).parent;
            }
        }
        let ids: Vec<StackId> =
            (0..).zip(&used).filter(|(_, used)| **used).map(|(id, _)| StackId(id)).collect();
        let numbers = (0..).zip(&ids).map(|(number, id)| (*id, number)).collect();
        UsedStacks { ids, numbers }
    }

    fn nodes(&self, profile: &Profile) -> Stacks {
        let node = |id: &StackId| {
            let node = profile.stacks.node(*id);
            StackNode {
                parent: node.parent.map(|parent| self.numbers[&parent]),
                avma: FIRST_AVMA + u64::from(node.location.0),
                exact: true,
                generation: 0,
            }
        };
        Stacks { first: 0, nodes: self.ids.iter().map(node).collect() }
    }

    fn keys(&self, profile: &Profile) -> Vec<SymbolKey> {
        let mut locations: Vec<u32> = self.ids.iter().map(|id| profile.stacks.node(*id).location.0).collect();
        locations.sort_unstable();
        locations.dedup();
        let key = |location| SymbolKey {
            avma: FIRST_AVMA + u64::from(location),
            exact: true,
            generation: 0,
            location,
        };
        locations.into_iter().map(key).collect()
    }
}

fn threads_of(process: &Process) -> Threads {
    let thread = |(index, thread): (u32, &mallow_profile::Thread)| ThreadName {
        index,
        tid: thread.tid,
        name: thread.name.clone(),
    };
    Threads { threads: (0..).zip(&process.threads).map(thread).collect() }
}

fn summary_of(profile: &Profile, index: u32, process: &Process, used: &UsedStacks) -> Summary {
    let own = profile.sites.iter().filter(|site| site.process == ProcessIndex(index));
    let thread = |thread: &mallow_profile::Thread| ThreadSummary {
        allocations: thread.allocations,
        bytes: thread.bytes,
    };
    let stack = |stack: StackId| StackId(used.numbers[&stack]);
    let requests = profile.requests.knows(ProcessIndex(index)).then(|| {
        let of = |site: Option<StackId>| match site {
            Some(id) => used.numbers.get(&id).copied().map(StackId),
            None => Some(Aggregator::NO_STACK),
        };
        let told = profile.requests.sites(ProcessIndex(index)).iter();
        told.filter_map(|(site, totals)| Some((of(*site)?, *totals))).collect()
    });
    Summary {
        totals: process.totals,
        peak_us: process.peak_us,
        frees_unmatched: process.frees_unmatched,
        threads: process.threads.iter().map(thread).collect(),
        sites: own
            .map(|site| SiteSummary {
                stack: site.stack.map_or(Aggregator::NO_STACK, stack),
                totals: site.totals,
            })
            .collect(),
        requests,
    }
}

fn accesses_of(profile: &Profile, index: u32, used: &UsedStacks) -> Accesses {
    let own = profile.sites.iter().filter(|site| site.process == ProcessIndex(index));
    let site = |site: &mallow_profile::Site| SiteAccess {
        stack: site.stack.map_or(Aggregator::NO_STACK, |stack| StackId(used.numbers[&stack])),
        read_bytes: site.totals.read_bytes,
        written_bytes: site.totals.written_bytes,
        bytes: profile.accesses.of(site.process, site.stack).cloned(),
    };
    Accesses { sites: own.map(site).collect() }
}

/// Returns every location with its frames; each string once.
pub(crate) fn names_of(stacks: &mallow_profile::Stacks) -> Symbols {
    let mut strings = SymbolStrings::default();
    let locations = stacks.locations.iter().map(|location| SymbolLocation {
        address: location.address,
        frames: location.frames.iter().map(|frame| strings.frame(frame)).collect(),
    });
    let locations = locations.collect();
    Symbols {
        modules: stacks.modules.clone(),
        locations,
        strings: strings.into_table(),
        processes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::Frame;
    use mallow_profile::{
        Address, Availability, ByteAccesses, EarlyEnds, EventsLost, Exit, LiveSample, Module, Nameless,
        ProfileBuilder, Recording, Sample, SiteTotals, Thread, TimeUnit, Totals,
    };

    fn frame(function: &str, line: Option<u32>) -> Frame {
        Frame { function: function.into(), file: line.map(|_| "/src/a.c".into()), line, ..Frame::default() }
    }

    /// Two processes that share stacks, with every table in use.
    fn example() -> Profile {
        let recording = Recording {
            command: vec!["app".into(), "-x".into()],
            started_unix_us: 7,
            duration_us: 500,
            counting_version: 1,
            recorder_version: "0.1.0".into(),
            environment: vec![("kernel".into(), "6.1".into())],
            nameless: vec![Nameless { module: "/lib/a.so".into(), reason: "ended".into() }],
            early_ends: vec![EarlyEnds { module: "/lib/a.so".into(), allocations: 2, or_more: false }],
            time_unit: TimeUnit::Instructions,
            ..Recording::default()
        };
        let known = Availability { temporary: false, times: false, accesses: true, ..Availability::ALL };
        let mut builder = ProfileBuilder::new(recording, known);
        let module = builder.module(Module { path: "/lib/a.so".into(), build_id: vec![1, 2] });
        let main = builder.location(Address::Unknown, vec![frame("main", None)]);
        let work = builder.location(Address::Unknown, vec![frame("inner", Some(7)), frame("work", Some(9))]);
        let named = builder.location(Address::InModule { module, svma: 64 }, Vec::new());
        let jit = builder.location(Address::Anonymous { avma: 0x7f00 }, Vec::new());
        for pid in [10, 11] {
            let process = builder.add_process(Process {
                pid,
                parent_pid: 1,
                command: "app -x".into(),
                started_us: 1,
                ended_us: 490,
                exit: Some(Exit::Signal(9)),
                totals: Totals { allocations: 5, bytes: 100, peak_bytes: 60, ..Totals::default() },
                peak_us: 33,
                events_lost: EventsLost::Exactly(1),
                frees_unmatched: 2,
                threads: vec![Thread { tid: pid, name: "main".into(), allocations: 5, bytes: 100 }],
                samples: vec![Sample { time_us: 3, rss_bytes: 4096 }],
                live_samples: vec![LiveSample { time_us: 3, live_bytes: 9, ..LiveSample::default() }],
            });
            let totals =
                SiteTotals { allocations: 2, bytes: 50, live_blocks_at_max: 3, ..SiteTotals::default() };
            let stack = builder.stack(if pid == 10 { vec![main, work] } else { vec![main, named, jit] });
            builder.add_site(process, stack, &SiteTotals { read_bytes: 6, written_bytes: 1 << 40, ..totals });
            builder.add_accesses(process, stack, ByteAccesses::of_runs([(3, 0), (1, u32::from(pid > 10))]));
            builder.add_site(process, None, &SiteTotals { allocations: 3, ..totals });
        }
        builder.finish()
    }

    #[test]
    fn a_written_profile_is_read_back_unchanged() {
        let profile = example();
        let mut bytes = Vec::new();
        write_profile(&profile, "dhat", &mut bytes).unwrap();
        let read = crate::read_bytes(&bytes).unwrap();
        assert!(read.complete, "{:?}", read.warnings);
        assert_eq!(read.warnings, read.profile.early_ends());
        assert_eq!(read.profile.recording, profile.recording);
        assert_eq!(read.profile.known, profile.known);
        assert_eq!(read.profile.processes, profile.processes);
        assert_eq!(read.profile.stacks.locations, profile.stacks.locations);
        let sites = |profile: &Profile| -> Vec<(SiteTotals, Vec<Frame>)> {
            profile
                .sites
                .iter()
                .map(|site| (site.totals, profile.frames(site.stack).cloned().collect()))
                .collect()
        };
        assert_eq!(sites(&read.profile), sites(&profile));
        let bytes = |profile: &Profile| -> Vec<Option<ByteAccesses>> {
            profile.sites.iter().map(|site| profile.accesses.of(site.process, site.stack).cloned()).collect()
        };
        assert_eq!(bytes(&read.profile), bytes(&profile));
        assert_eq!(bytes(&read.profile).iter().flatten().count(), 2);
    }
}

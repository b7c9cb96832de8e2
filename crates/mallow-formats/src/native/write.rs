//! A profile as a trace without events: what `mallow import` makes of another tool's file.
//!
//! The trace holds the folded figures and the names, so that every report but those that need events works on it. Each
//! location gets a made-up address of its own, by which its stack nodes find it again.

use super::origin;
use mallow_base::Frame;
use mallow_profile::{
    Address, Exit, Location, Process, ProcessIndex, Profile, Site, SiteTotals, StackId, Totals,
};
use mallow_wire::trace::{
    self as wire, ChunkHeader, ChunkKind, FoldedProcess, FoldedSite, FoldedThread, FoldedTotals, NO_PROCESS,
    SymbolAddress, SymbolFrame, SymbolKey, SymbolLocation, SymbolModule, SymbolProcess, Symbols,
};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Fast, and small enough.
const ZSTD_LEVEL: i32 = 3;
/// Payloads below this many bytes are stored as they are.
const PLAIN_BYTES: usize = 256;
/// The made-up address of the first location: none of those that mean something in a recording.
const FIRST_AVMA: u64 = 0x1000;

/// Writes a profile that was imported from a file of the named format.
///
/// # Errors
/// What `out` refused, or a table of more than 4 GiB.
pub fn write(profile: &Profile, format: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut chunks = Chunks { out, zstd: zstd::bulk::Compressor::new(ZSTD_LEVEL)? };
    chunks.out.write_all(&wire::file_header())?;
    chunks.put(ChunkKind::RECORDING, NO_PROCESS, |out| recording_of(profile).encode(out))?;
    let origin = wire::Origin {
        format: format.to_owned(),
        known: origin::bits_of(profile.known),
        time_unit: origin::number_of(profile.recording.time_unit),
    };
    chunks.put(ChunkKind::ORIGIN, NO_PROCESS, |out| origin.encode(out))?;
    let mut symbols = names_of(profile);
    for (index, process) in profile.processes.iter().enumerate() {
        let index = index as u32;
        let used = UsedStacks::of(profile, ProcessIndex(index));
        symbols.processes.push(SymbolProcess { process: index, keys: used.keys(profile) });
        put_process(&mut chunks, profile, index, process, &used)?;
    }
    chunks.put(ChunkKind::SYMBOLS, NO_PROCESS, |out| symbols.encode(out))?;
    let end = wire::End { duration_us: profile.recording.duration_us };
    chunks.put(ChunkKind::END, NO_PROCESS, |out| end.encode(out))
}

struct Chunks<'a> {
    out: &'a mut dyn Write,
    zstd: zstd::bulk::Compressor<'static>,
}

impl Chunks<'_> {
    fn put(&mut self, kind: ChunkKind, process: u32, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut payload = Vec::new();
        encode(&mut payload);
        let raw_bytes = (payload.len() >= PLAIN_BYTES).then_some(payload.len());
        if raw_bytes.is_some() {
            payload = self.zstd.compress(&payload)?;
        }
        let header = ChunkHeader::new(kind, process, &payload, raw_bytes)
            .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "a table of more than 4 GiB"))?;
        self.out.write_all(&header.to_bytes())?;
        self.out.write_all(&payload)
    }
}

fn recording_of(profile: &Profile) -> wire::Recording {
    let recording = &profile.recording;
    wire::Recording {
        command: recording.command.clone(),
        started_unix_us: recording.started_unix_us,
        counting_version: recording.counting_version,
        recorder_version: recording.recorder_version.clone(),
        environment: recording.environment.clone(),
    }
}

fn put_process(
    chunks: &mut Chunks<'_>,
    profile: &Profile,
    index: u32,
    process: &Process,
    used: &UsedStacks,
) -> io::Result<()> {
    let start = wire::ProcessStart {
        pid: process.pid,
        parent_pid: process.parent_pid,
        command: process.command.clone(),
        started_us: process.started_us,
    };
    chunks.put(ChunkKind::PROCESS_START, index, |out| start.encode(out))?;
    chunks.put(ChunkKind::STACKS, index, |out| used.nodes(profile).encode(out))?;
    chunks.put(ChunkKind::THREADS, index, |out| threads_of(process).encode(out))?;
    chunks.put(ChunkKind::SAMPLES, index, |out| samples_of(process).encode(out))?;
    if !process.live_samples.is_empty() {
        chunks.put(ChunkKind::LIVE_SAMPLES, index, |out| live_samples_of(process).encode(out))?;
    }
    chunks.put(ChunkKind::FOLDED, index, |out| folded_of(profile, index, process, used).encode(out))?;
    let end = wire::ProcessEnd {
        ended_us: process.ended_us,
        exit: process.exit.map(|exit| match exit {
            Exit::Status(status) => wire::Exit::Status(status),
            Exit::Signal(signal) => wire::Exit::Signal(signal),
            Exit::Exec => wire::Exit::Exec,
        }),
        events_lost: process.events_lost,
    };
    chunks.put(ChunkKind::PROCESS_END, index, |out| end.encode(out))
}

/// The stack nodes that one process's sites stand on, in the profile's order, which has parents first.
struct UsedStacks {
    ids: Vec<StackId>,
    numbers: FxHashMap<StackId, u32>,
}

impl UsedStacks {
    fn of(profile: &Profile, process: ProcessIndex) -> UsedStacks {
        let mut used = vec![false; profile.stacks.len()];
        for site in profile.sites.iter().filter(|site| site.process == process) {
            let mut next = site.stack;
            while let Some(id) = next
                && !std::mem::replace(&mut used[id.0 as usize], true)
            {
                next = profile.stacks[id.0 as usize].parent;
            }
        }
        let ids: Vec<StackId> =
            (0..).zip(&used).filter(|(_, used)| **used).map(|(id, _)| StackId(id)).collect();
        let numbers = (0..).zip(&ids).map(|(number, id)| (*id, number)).collect();
        UsedStacks { ids, numbers }
    }

    fn nodes(&self, profile: &Profile) -> wire::Stacks {
        let node = |id: &StackId| {
            let node = profile.stacks[id.0 as usize];
            wire::StackNode {
                parent: node.parent.map(|parent| self.numbers[&parent]),
                avma: FIRST_AVMA + u64::from(node.location.0),
                exact: true,
                generation: 0,
            }
        };
        wire::Stacks { first: 0, nodes: self.ids.iter().map(node).collect() }
    }

    fn keys(&self, profile: &Profile) -> Vec<SymbolKey> {
        let mut locations: Vec<u32> =
            self.ids.iter().map(|id| profile.stacks[id.0 as usize].location.0).collect();
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

fn threads_of(process: &Process) -> wire::Threads {
    let thread = |(index, thread): (u32, &mallow_profile::Thread)| wire::Thread {
        index,
        tid: thread.tid,
        name: thread.name.clone(),
    };
    wire::Threads { threads: (0..).zip(&process.threads).map(thread).collect() }
}

fn samples_of(process: &Process) -> wire::Samples {
    let sample = |sample: &mallow_profile::Sample| wire::Sample {
        time_us: sample.time_us,
        rss_bytes: sample.rss_bytes,
    };
    wire::Samples { samples: process.samples.iter().map(sample).collect() }
}

fn live_samples_of(process: &Process) -> wire::LiveSamples {
    let sample = |sample: &mallow_profile::LiveSample| wire::LiveSample {
        time_us: sample.time_us,
        live_bytes: sample.live_bytes,
        overhead_bytes: sample.overhead_bytes,
        stack_bytes: sample.stack_bytes,
    };
    wire::LiveSamples { samples: process.live_samples.iter().map(sample).collect() }
}

fn folded_of(profile: &Profile, index: u32, process: &Process, used: &UsedStacks) -> FoldedProcess {
    let own = profile.sites.iter().filter(|site| site.process == ProcessIndex(index));
    let thread = |thread: &mallow_profile::Thread| FoldedThread {
        allocations: thread.allocations,
        bytes: thread.bytes,
    };
    FoldedProcess {
        totals: totals_of(&process.totals),
        peak_us: process.peak_us,
        frees_unmatched: process.frees_unmatched,
        threads: process.threads.iter().map(thread).collect(),
        sites: own
            .map(|site: &Site| {
                let stack = site.stack.map_or(u32::MAX, |stack| used.numbers[&stack]);
                site_of(stack, &site.totals)
            })
            .collect(),
    }
}

fn totals_of(totals: &Totals) -> FoldedTotals {
    FoldedTotals {
        allocations: totals.allocations,
        bytes: totals.bytes,
        frees: totals.frees,
        reallocations: totals.reallocations,
        temporary: totals.temporary,
        failed: totals.failed,
        peak_bytes: totals.peak_bytes,
        peak_blocks: totals.peak_blocks,
        leaked_bytes: totals.leaked_bytes,
        leaked_blocks: totals.leaked_blocks,
    }
}

fn site_of(stack: u32, totals: &SiteTotals) -> FoldedSite {
    FoldedSite {
        stack,
        allocations: totals.allocations,
        bytes: totals.bytes,
        reallocations: totals.reallocations,
        temporary: totals.temporary,
        failed: totals.failed,
        peak_bytes: totals.peak_bytes,
        peak_blocks: totals.peak_blocks,
        leaked_bytes: totals.leaked_bytes,
        leaked_blocks: totals.leaked_blocks,
        live_bytes_max: totals.live_bytes_max,
        live_blocks_at_max: totals.live_blocks_at_max,
        lifetime_us_sum: totals.lifetime_us_sum,
        first_us: totals.first_us,
        last_us: totals.last_us,
    }
}

/// Every location with its frames; strings stand once.
fn names_of(profile: &Profile) -> Symbols {
    let module = |module: &mallow_profile::Module| SymbolModule {
        path: module.path.clone(),
        build_id: module.build_id.clone(),
    };
    let mut names = Names::default();
    let locations = profile.locations.iter().map(|location| names.location(location)).collect();
    Symbols {
        modules: profile.modules.iter().map(module).collect(),
        locations,
        strings: names.strings,
        processes: Vec::new(),
    }
}

#[derive(Default)]
struct Names<'a> {
    strings: Vec<String>,
    numbers: FxHashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn location(&mut self, location: &'a Location) -> SymbolLocation {
        let address = match location.address {
            Address::InModule { module, svma } => SymbolAddress::InModule { module: module.0, svma },
            Address::Anonymous { avma } => SymbolAddress::Anonymous { avma },
            Address::Unknown => SymbolAddress::Anonymous { avma: super::locate::ADDRESS_UNKNOWN },
        };
        SymbolLocation { address, frames: location.frames.iter().map(|frame| self.frame(frame)).collect() }
    }

    fn frame(&mut self, frame: &'a Frame) -> SymbolFrame {
        SymbolFrame {
            function: self.string(&frame.function),
            file: frame.file.as_deref().map(|file| self.string(file)),
            line: frame.line,
            module: frame.module.as_deref().map(|module| self.string(module)),
            inlined: frame.inlined,
        }
    }

    fn string(&mut self, text: &'a str) -> u32 {
        let next = self.strings.len() as u32;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.strings.push(text.to_owned());
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_profile::{Known, LiveSample, Module, ProfileBuilder, Recording, Sample, Thread, TimeUnit};

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
            time_unit: TimeUnit::Instructions,
        };
        let known = Known { temporary: false, times: false, ..Known::ALL };
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
                events_lost: 1,
                frees_unmatched: 2,
                threads: vec![Thread { tid: pid, name: "main".into(), allocations: 5, bytes: 100 }],
                samples: vec![Sample { time_us: 3, rss_bytes: 4096 }],
                live_samples: vec![LiveSample { time_us: 3, live_bytes: 9, ..LiveSample::default() }],
            });
            let totals =
                SiteTotals { allocations: 2, bytes: 50, live_blocks_at_max: 3, ..SiteTotals::default() };
            let stack = builder.stack(if pid == 10 { vec![main, work] } else { vec![main, named, jit] });
            builder.add_site(process, stack, &totals);
            builder.add_site(process, None, &SiteTotals { allocations: 3, ..totals });
        }
        builder.finish()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = example();
        let mut bytes = Vec::new();
        write(&profile, "dhat", &mut bytes).unwrap();
        let read = crate::native::read_bytes(&bytes).unwrap();
        assert!(read.complete && read.warnings.is_empty(), "{:?}", read.warnings);
        assert_eq!(read.profile.recording, profile.recording);
        assert_eq!(read.profile.known, profile.known);
        assert_eq!(read.profile.processes, profile.processes);
        assert_eq!(read.profile.locations, profile.locations);
        let sites = |profile: &Profile| -> Vec<(SiteTotals, Vec<Frame>)> {
            profile
                .sites
                .iter()
                .map(|site| (site.totals, profile.frames(site.stack).cloned().collect()))
                .collect()
        };
        assert_eq!(sites(&read.profile), sites(&profile));
    }
}

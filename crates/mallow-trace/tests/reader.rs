//! Traces as a recording writes them, whole, cut, and damaged.

use crate::writer::{Running, Writer};
use mallow_profile::analysis::{Pass, Plan, WindowMetrics};
use mallow_profile::{
    Address, EventsLost, Exit, Imported, Module, ModuleId, ProcessIndex, Profile, ReallocAttribution,
    Recording, StackId, Summary,
};
use mallow_trace::*;
use std::io::Cursor;

/// A whole trace, and where its chunks begin.
struct Sample {
    bytes: Vec<u8>,
    offsets: Vec<(ChunkKind, Option<u32>, usize)>,
}

impl Sample {
    fn offset(&self, kind: ChunkKind, process: Option<u32>) -> usize {
        let found = self.offsets.iter().find(|&&(k, p, _)| (k, p) == (kind, process));
        found.expect("the sample has this chunk").2
    }

    /// The sample with a flipped byte in the middle of a chunk's payload.
    fn flipped(&self, kind: ChunkKind, process: Option<u32>) -> Vec<u8> {
        let at = self.offset(kind, process) + CHUNK_HEADER_BYTES;
        let mut bytes = self.bytes.clone();
        bytes[at] ^= 0x40;
        bytes
    }
}

const MODULE_AVMA: u64 = 0x5500_0000_0000;

fn stack_nodes() -> Stacks {
    let node = |parent, svma| StackNode { parent, avma: MODULE_AVMA + svma, ..StackNode::default() };
    Stacks { first: 0, nodes: vec![node(None, 0x1000), node(Some(0), 0x2000), node(Some(0), 0x3000)] }
}

fn symbols() -> Symbols {
    let frame = |function, line| SymbolFrame {
        function,
        file: Some(3),
        line,
        module: Some(4),
        inlined: false,
        ..SymbolFrame::default()
    };
    let location = |svma, function, line| SymbolLocation {
        address: Address::InModule { module: ModuleId(0), svma },
        frames: vec![frame(function, line)],
    };
    let key = |svma, location| SymbolKey { avma: MODULE_AVMA + svma, exact: false, generation: 0, location };
    let keys = vec![key(0x1000, 0), key(0x2000, 1), key(0x3000, 2)];
    Symbols {
        strings: ["main", "read_rows", "sum", "a.c", "/bin/a"].map(String::from).to_vec(),
        modules: vec![Module { path: "/bin/a".into(), build_id: vec![1, 2] }],
        locations: vec![
            location(0x1000, 0, Some(9)),
            location(0x2000, 1, Some(20)),
            location(0x3000, 2, None),
        ],
        processes: (0..2).map(|process| SymbolProcess { process, keys: keys.clone() }).collect(),
    }
}

/// Two event chunks: 100 blocks of which every third stays, one resized twice.
fn run(process: u32, sample: &mut Writer, offsets: &mut Vec<(ChunkKind, Option<u32>, usize)>) -> Summary {
    let mut running = Running::new();
    for half in 0..2 {
        for i in 0..50u64 {
            let time_us = 1000 + u64::from(process) * 100 + half * 50 + i;
            let block = running.alloc((i % 2) as u32, 1 + (i % 2) as u32, 10 + i, time_us);
            if i % 3 != 0 {
                running.free(0, block, time_us + 1);
            } else if i == 3 {
                let block = running.realloc(0, block, 2, 500, time_us + 1);
                running.realloc(1, block, 0, 1000, time_us + 2);
            }
        }
        let offset = sample.chunk_zstd(ChunkKind::EVENTS, Some(process), |out| running.encoder.take(out));
        offsets.push((ChunkKind::EVENTS, Some(process), offset));
    }
    running.aggregator.finish(2000)
}

fn sample(summary_only: bool) -> Sample {
    let (mut writer, mut offsets) = (Writer::new(), Vec::new());
    let recording = Recording {
        command: vec!["a".into(), "b".into()],
        counting_version: 1,
        recorder_version: "0.1.0".into(),
        ..Recording::default()
    };
    writer.chunk(ChunkKind::RECORDING, None, |out| recording.encode(out));
    let mut summary = Vec::new();
    for process in 0..2 {
        let at = Some(process);
        let start = ProcessStart { pid: 70 + process, parent_pid: 1, command: "a b".into(), started_us: 900 };
        offsets.push((
            ChunkKind::PROCESS_START,
            at,
            writer.chunk(ChunkKind::PROCESS_START, at, |out| start.encode(out)),
        ));
        let module = MappedModule {
            path: "/bin/a".into(),
            build_id: vec![1, 2],
            start_avma: MODULE_AVMA,
            end_avma: MODULE_AVMA + 0x10_0000,
            bias: MODULE_AVMA,
            generation: 0,
        };
        writer.chunk(ChunkKind::MODULES, at, |out| Modules { modules: vec![module] }.encode(out));
        offsets.push((
            ChunkKind::STACKS,
            at,
            writer.chunk_zstd(ChunkKind::STACKS, at, |out| stack_nodes().encode(out)),
        ));
        let main = ThreadName { index: 0, tid: 70 + process, name: "a".into() };
        writer.chunk(ChunkKind::THREADS, at, |out| Threads { threads: vec![main] }.encode(out));
        // A kind that this version does not know is passed over.
        writer.chunk(ChunkKind(900), at, |out| out.extend([1, 2, 3]));
        let mark = writer.bytes.len();
        summary.push(run(process, &mut writer, &mut offsets));
        if summary_only {
            writer.bytes.truncate(mark);
        }
    }
    for process in 0..2 {
        let samples = Samples { samples: vec![mallow_profile::Sample { time_us: 950, rss_bytes: 4096 }] };
        writer.chunk(ChunkKind::SAMPLES, Some(process), |out| samples.encode(out));
        let exit = if process == 0 { Exit::Status(0) } else { Exit::Signal(9) };
        let end = ProcessEnd { ended_us: 2000, exit: Some(exit), events_lost: EventsLost::Exactly(0) };
        writer.chunk(ChunkKind::PROCESS_END, Some(process), |out| end.encode(out));
    }
    offsets.push((
        ChunkKind::SYMBOLS,
        None,
        writer.chunk_zstd(ChunkKind::SYMBOLS, None, |out| symbols().encode(out)),
    ));
    for (process, summary) in (0..2).zip(&summary) {
        let offset = writer.chunk_zstd(ChunkKind::FOLDED, Some(process), |out| summary.encode(out));
        offsets.push((ChunkKind::FOLDED, Some(process), offset));
    }
    offsets.push((
        ChunkKind::END,
        None,
        writer.chunk(ChunkKind::END, None, |out| End { duration_us: 2100 }.encode(out)),
    ));
    Sample { bytes: writer.bytes, offsets }
}

fn read(bytes: &[u8]) -> Imported {
    mallow_trace::read_bytes(bytes).expect("the trace can be read")
}

/// What a report shows, without what depends on the end.
fn metrics(profile: &Profile) -> Vec<(mallow_profile::Totals, u64, u64)> {
    profile
        .processes
        .iter()
        .map(|process| (process.totals, process.peak_us, process.frees_unmatched))
        .collect()
}

#[test]
fn a_whole_trace_gives_its_profile_and_no_warning() {
    let imported = read(&sample(false).bytes);
    assert_eq!(imported.warnings, [""; 0]);
    assert!(imported.complete);
    let profile = imported.profile;
    assert_eq!(profile.recording.command, ["a", "b"]);
    assert_eq!(profile.recording.duration_us, 2100);
    let [first, second] = &profile.processes[..] else { panic!("two processes") };
    assert_eq!((first.pid, first.exit, second.exit), (70, Some(Exit::Status(0)), Some(Exit::Signal(9))));
    // 100 blocks and 2 × 2 resizings; of each 50, those with i = 0, 3, … 48 stay.
    let totals = first.totals;
    assert_eq!((totals.allocations, totals.frees, totals.reallocations), (104, 70, 4));
    assert_eq!((totals.leaked_blocks, totals.leaked_bytes), (34, 2 * (17 * 34 - 13 + 1000)));
    assert_eq!((first.threads[0].tid, first.threads[0].name.as_str()), (70, "a"));
    assert_eq!(first.threads.iter().map(|thread| thread.allocations).sum::<u64>(), 104);
    assert_eq!(first.samples[0].rss_bytes, 4096);
    // Both processes point to the same locations, by stacks of their own.
    assert_eq!(
        (profile.stacks.modules.len(), profile.stacks.locations.len(), profile.stacks.nodes.len()),
        (1, 3, 6)
    );
    assert_eq!(profile.stacks.locations[1].address, Address::InModule { module: ModuleId(0), svma: 0x2000 });
    let names: Vec<&str> = profile.frames(Some(StackId(5))).map(|frame| frame.function.as_str()).collect();
    assert_eq!(names, ["sum", "main"]);
    let allocations: u64 = profile.sites.iter().map(|site| site.totals.allocations).sum();
    assert_eq!(allocations, 208);
}

#[test]
fn a_file_reads_as_its_bytes_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mallow");
    std::fs::write(&path, sample(false).bytes).unwrap();
    assert_eq!(mallow_trace::read_file(&path).unwrap().profile.totals().allocations, 208);
    let missing = mallow_trace::read_file(&folder.path().join("b.mallow")).unwrap_err();
    assert!(matches!(missing, TraceError::Io(_)), "{missing}");
    assert!(matches!(mallow_trace::read_file(folder.path()), Err(TraceError::Io(_))));
}

#[test]
fn without_its_footer_a_trace_is_folded_again_to_the_same_metrics() {
    let sample = sample(false);
    let whole = read(&sample.bytes).profile;
    let cut = read(&sample.bytes[..sample.offset(ChunkKind::FOLDED, Some(0))]);
    assert!(!cut.complete);
    assert_eq!(metrics(&cut.profile), metrics(&whole));
    let mut sites = [cut.profile.sites, whole.sites];
    sites.iter_mut().for_each(|sites| sites.sort_by_key(|site| (site.process, site.stack)));
    assert_eq!(sites[0], sites[1]);
    assert_eq!(cut.profile.processes[0].threads, whole.processes[0].threads);
    assert_eq!(
        cut.warnings,
        [
            "the trace ends early, after 340 events at 1.20 ms: the recording's end is missing; metrics are valid up to there"
        ]
    );
}

#[test]
fn a_trace_cut_at_any_byte_gives_what_precedes_or_an_error() {
    let sample = sample(false);
    let mut allocations_before = 0;
    for end in 0..sample.bytes.len() {
        match mallow_trace::read_bytes(&sample.bytes[..end]) {
            Ok(imported) => {
                assert!(!imported.complete && !imported.warnings.is_empty(), "cut to {end}");
                let allocations = imported.profile.totals().allocations;
                assert!(allocations >= allocations_before, "cut to {end}");
                allocations_before = allocations;
            }
            Err(error) => {
                assert_eq!(allocations_before, 0, "cut to {end}: {error}");
                assert!(end < 16 + CHUNK_HEADER_BYTES + 40, "cut to {end}: {error}");
            }
        }
    }
    assert_eq!(allocations_before, 208);
}

#[test]
fn a_cut_trace_names_what_is_missing_and_shows_bare_addresses() {
    let sample = sample(false);
    let second_process = sample.offset(ChunkKind::PROCESS_START, Some(1));
    let imported = read(&sample.bytes[..second_process + 30]);
    assert_eq!(
        imported.warnings,
        [
            "the trace ends early, after 170 events at 1.10 ms: symbols, the exit status and the recording's end are \
          missing; metrics are valid up to there"
        ]
    );
    let profile = imported.profile;
    assert_eq!((profile.processes.len(), profile.processes[0].exit), (1, None));
    assert_eq!(profile.processes[0].ended_us, 1100);
    let frame = profile.frames(Some(StackId(1))).next().unwrap();
    assert_eq!((frame.function.as_str(), frame.module.as_deref()), ("0x2000", Some("/bin/a")));
}

#[test]
fn damaged_events_do_no_harm_if_the_footer_is_intact() {
    let sample = sample(false);
    let imported = read(&sample.flipped(ChunkKind::EVENTS, Some(0)));
    let offset = sample.offset(ChunkKind::EVENTS, Some(0));
    assert_eq!(metrics(&imported.profile), metrics(&read(&sample.bytes).profile));
    assert!(!imported.complete);
    assert_eq!(
        imported.warnings,
        [format!("the trace is damaged at byte {offset}; the metrics come from intact parts of it")]
    );
}

#[test]
fn a_damaged_footer_is_folded_again() {
    let sample = sample(false);
    let imported = read(&sample.flipped(ChunkKind::FOLDED, Some(0)));
    assert_eq!(metrics(&imported.profile), metrics(&read(&sample.bytes).profile));
    let offset = sample.offset(ChunkKind::FOLDED, Some(0));
    assert_eq!(
        imported.warnings,
        [format!(
            "the trace is damaged at byte {offset}; sums that had to be computed from events are valid up to there"
        )]
    );
}

#[test]
fn metrics_outlive_their_stacks() {
    let sample = sample(false);
    let imported = read(&sample.flipped(ChunkKind::STACKS, Some(1)));
    let whole = read(&sample.bytes).profile;
    assert_eq!(imported.profile.processes, whole.processes);
    let sites: Vec<_> =
        imported.profile.sites.iter().filter(|site| site.process == ProcessIndex(1)).collect();
    assert_eq!((sites.len(), sites[0].stack, sites[0].totals.allocations), (1, None, 104));
    assert_eq!(imported.warnings.len(), 1);
}

#[test]
fn invalid_events_are_reported() {
    let mut writer = Writer::new();
    let mut encoder = EventEncoder::new();
    // Stack 9 is in no chunk.
    encoder.alloc(0, 0, 9, 24, 1);
    let offset = writer.chunk(ChunkKind::EVENTS, Some(0), |out| encoder.take(out));
    writer.chunk(ChunkKind::END, None, |out| End { duration_us: 5 }.encode(out));
    let imported = read(&writer.bytes);
    assert!(!imported.complete);
    let sentence = format!(
        "the events of process 0 make no sense from byte {offset} on; its metrics are valid up to there, 0 events until 0 µs"
    );
    assert_eq!(imported.warnings, [sentence]);
}

/// Only the headers of the file and of the first chunk, before which nothing stands, lead to an error.
#[test]
fn every_flipped_byte_is_reported() {
    let sample = sample(false);
    for at in 0..sample.bytes.len() {
        let mut bytes = sample.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        match mallow_trace::read_bytes(&bytes) {
            Ok(imported) => assert!(!imported.complete && !imported.warnings.is_empty(), "byte {at}"),
            Err(error) => assert!(at < 16 + CHUNK_HEADER_BYTES, "byte {at}: {error}"),
        }
    }
}

#[test]
fn files_of_other_formats_are_named() {
    let cases: [(&[u8], &str); 7] = [
        (b"", "this is not a mallow trace but an empty file"),
        (b"\x7fELF\x02\x01\x01", "this is not a mallow trace but an ELF program or library"),
        (
            b"\x1f\x8b\x08",
            "this is not a mallow trace but a gzip file (heaptrack and pprof write such files)",
        ),
        (b"v 10500 3\nx /bin/a\n", "this is not a mallow trace but a heaptrack file"),
        (b"  {\"dhatFileVersion\":2", "this is not a mallow trace but a JSON file"),
        (b"int main() {}\n", "this is not a mallow trace but a text file"),
        (b"\x00\x01\x02", "this is not a mallow trace but a file of an unknown kind"),
    ];
    for (bytes, sentence) in cases {
        assert_eq!(mallow_trace::read_bytes(bytes).unwrap_err().to_string(), sentence);
    }
}

#[test]
fn an_unsupported_version_is_reported_with_ours() {
    let with_version = |version: u32| {
        let mut bytes = file_header().to_vec();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        mallow_trace::read_bytes(&bytes).unwrap_err()
    };
    assert!(matches!(with_version(0), TraceError::TooOld { found: 0, oldest: 1 }));
    assert!(matches!(with_version(7), TraceError::TooNew { found: 7, newest: 1 }));
    assert_eq!(
        with_version(7).to_string(),
        "this trace has version 7, and this mallow reads versions up to 1: use a newer mallow"
    );
    let header = file_header();
    assert!(matches!(mallow_trace::read_bytes(&header[..12]), Err(TraceError::Damaged { offset: 0 })));
}

#[test]
fn reallocations_can_be_attributed_at_their_origin() {
    let sample = sample(false);
    let origin = mallow_trace::read_bytes_with(&sample.bytes, ReallocAttribution::Origin).unwrap();
    assert_eq!(origin.warnings, [""; 0]);
    let own = read(&sample.bytes).profile;
    assert_eq!(metrics(&origin.profile), metrics(&own));
    // Stack 0 only resizes; stack 2's odd blocks are the origin of all resizings.
    let allocations = |profile: &Profile, stack| {
        let sites = profile.sites.iter().filter(|site| site.stack == Some(StackId(stack)));
        sites.map(|site| site.totals.allocations).sum::<u64>()
    };
    assert_eq!([0, 1, 2].map(|stack| allocations(&own, stack)), [2, 50, 52]);
    assert_eq!([0, 1, 2].map(|stack| allocations(&origin.profile, stack)), [0, 50, 54]);
    let summary =
        mallow_trace::read_bytes_with(&self::sample(true).bytes, ReallocAttribution::Origin).unwrap_err();
    assert!(matches!(summary, TraceError::NoEvents));
}

#[test]
fn a_trace_of_sums_only_opens_like_a_whole_one() {
    let imported = read(&sample(true).bytes);
    assert!(imported.complete);
    assert_eq!(metrics(&imported.profile), metrics(&read(&sample(false).bytes).profile));
}

fn analysed(bytes: &[u8], process: u32) -> (u64, mallow_profile::analysis::Findings) {
    let plan = Plan { window_sites: true, threads: true, chains: true, histogram: true, ..Plan::default() };
    let mut pass = Pass::new(plan);
    let events = Trace::open(Cursor::new(bytes)).unwrap().analyse(ProcessIndex(process), &mut pass);
    (events.unwrap(), pass.finish())
}

#[test]
fn a_pass_over_events_agrees_with_the_profile() {
    let sample = sample(false);
    let profile = read(&sample.bytes).profile;
    assert_eq!(analysed(&sample.bytes, 2).0, 0);
    for process in 0..2 {
        let (events, findings) = analysed(&sample.bytes, process);
        assert_eq!(events, 170);
        let totals = profile.processes[process as usize].totals;
        let sum = |of: fn(&WindowMetrics) -> u64| {
            findings.window_sites.iter().map(|site| of(&site.metrics)).sum::<u64>()
        };
        assert_eq!(sum(|metrics| metrics.allocations), totals.allocations);
        assert_eq!(sum(|metrics| metrics.bytes), totals.bytes);
        assert_eq!(sum(|metrics| metrics.live_bytes), totals.leaked_bytes);
        assert_eq!(findings.threads.iter().map(|thread| thread.temporary).sum::<u64>(), totals.temporary);
        for site in &findings.window_sites {
            let own = profile.sites.iter().find(|own| own.process.0 == process && own.stack == site.stack);
            assert_eq!(own.map(|own| own.totals.allocations), Some(site.metrics.allocations));
        }
    }
    assert_eq!(analysed(&sample.bytes, 2).0, 0);
}

#[test]
fn a_pass_ends_where_events_are_damaged_and_needs_some() {
    let whole = sample(false);
    let (events, _) = analysed(&whole.bytes, 0);
    assert!(analysed(&whole.flipped(ChunkKind::EVENTS, Some(0)), 0).0 < events);
    let sums = sample(true);
    let mut trace = Trace::open(Cursor::new(&sums.bytes)).unwrap();
    let result = trace.analyse(ProcessIndex(0), &mut Pass::new(Plan::default()));
    assert!(matches!(result, Err(TraceError::NoEvents)), "{result:?}");
}

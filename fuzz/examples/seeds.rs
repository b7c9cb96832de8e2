//! Writes the seeds of the trace's fuzz targets: one small trace with every kind of chunk, once with its footer and once
//! cut off before it, whole and in bare form. Run it again when the trace's version changes:
//! `cargo run --package mallow-fuzz --example seeds`.

use mallow_fuzz::bare_trace::{Chunk, bare_chunks, bare_form, trace_of};
use mallow_profile::{
    Address, Exit, Module, ModuleId, Recording, RequestTotals, Requested, Sample, SiteSummary, SiteTotals,
    StackId, Summary, ThreadSummary, Totals,
};
use mallow_trace::*;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payloads = payloads();
    let chunks: Vec<Chunk<'_>> =
        payloads.iter().map(|(kind, process, payload)| (*kind, *process, payload.as_slice())).collect();
    let is_footer = |kind: ChunkKind| [ChunkKind::SYMBOLS, ChunkKind::FOLDED, ChunkKind::END].contains(&kind);
    let cut: Vec<Chunk<'_>> = chunks.iter().filter(|(kind, ..)| !is_footer(*kind)).copied().collect();

    let whole = read_bytes(&trace_of(&chunks))?;
    assert!(whole.complete, "the seed is not what a recording writes: {:?}", whole.warnings);
    assert!(!read_bytes(&trace_of(&cut))?.complete, "a cut trace must not pass as complete");
    assert_eq!(bare_chunks(&bare_form(&chunks)), chunks, "the bare form loses something");

    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, chunks) in [("whole", &chunks), ("cut", &cut)] {
        std::fs::write(corpus.join("trace_reader").join(name), trace_of(chunks))?;
        std::fs::write(corpus.join("trace_chunks").join(name), bare_form(chunks))?;
    }
    Ok(())
}

/// What a recording of one process writes that allocates 64 bytes, grows them to 128, fails once and frees.
fn payloads() -> Vec<(ChunkKind, u32, Vec<u8>)> {
    let mut list = Vec::new();
    let mut put = |kind, process, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = Vec::new();
        encode(&mut payload);
        list.push((kind, process, payload));
    };
    put(ChunkKind::RECORDING, NO_PROCESS, &|out| recording().encode(out));
    let start = ProcessStart { pid: 100, parent_pid: 1, command: "app".to_owned(), started_us: 5 };
    put(ChunkKind::PROCESS_START, 0, &|out| start.encode(out));
    put(ChunkKind::MODULES, 0, &|out| modules().encode(out));
    put(ChunkKind::STACKS, 0, &|out| stacks().encode(out));
    let thread = ThreadName { index: 0, tid: 100, name: "app".to_owned() };
    put(ChunkKind::THREADS, 0, &|out| Threads { threads: vec![thread.clone()] }.encode(out));
    put(ChunkKind::EVENTS, 0, &events);
    let samples = vec![Sample { time_us: 10, rss_bytes: 4096 }, Sample { time_us: 20, rss_bytes: 8192 }];
    put(ChunkKind::SAMPLES, 0, &|out| Samples { samples: samples.clone() }.encode(out));
    let end = ProcessEnd { ended_us: 60, exit: Some(Exit::Status(0)), events_lost: Default::default() };
    put(ChunkKind::PROCESS_END, 0, &|out| end.encode(out));
    put(ChunkKind::SYMBOLS, NO_PROCESS, &|out| symbols().encode(out));
    put(ChunkKind::FOLDED, 0, &|out| folded().encode(out));
    put(ChunkKind::END, NO_PROCESS, &|out| End { duration_us: 70 }.encode(out));
    list
}

fn recording() -> Recording {
    Recording {
        command: vec!["app".to_owned(), "--rows".to_owned()],
        started_unix_us: 1_700_000_000_000_000,
        counting_version: 1,
        recorder_version: "0.1.0".to_owned(),
        environment: vec![("kernel".to_owned(), "6.1".to_owned())],
        ..Recording::default()
    }
}

fn modules() -> Modules {
    let app = MappedModule {
        path: "/usr/bin/app".to_owned(),
        build_id: vec![1, 2, 3, 4],
        start_avma: 0x1000,
        end_avma: 0x9000,
        ..MappedModule::default()
    };
    Modules { modules: vec![app] }
}

fn stacks() -> Stacks {
    let outer = StackNode { avma: 0x1100, ..StackNode::default() };
    let inner = StackNode { parent: Some(0), avma: 0x1200, ..StackNode::default() };
    Stacks { first: 0, nodes: vec![outer, inner] }
}

fn events(out: &mut Vec<u8>) {
    let mut encoder = EventEncoder::new();
    encoder.alloc(0, 0, 1, 64, 10);
    encoder.realloc(0, 0, 1, 1, 128, 20);
    encoder.failed(0, 1, 1 << 60, 30);
    encoder.free(0, 1, 40);
    encoder.free_unmatched(0, 50);
    encoder.take(out);
}

fn symbols() -> Symbols {
    let frame = SymbolFrame {
        function: 0,
        file: Some(1),
        line: Some(7),
        module: Some(2),
        inlined: false,
        ..SymbolFrame::default()
    };
    let at = |svma| SymbolLocation {
        address: Address::InModule { module: ModuleId(0), svma },
        frames: vec![frame],
    };
    let key = |avma, location| SymbolKey { avma, exact: false, generation: 0, location };
    Symbols {
        strings: ["main", "app.c", "/usr/bin/app"].map(str::to_owned).to_vec(),
        modules: vec![Module { path: "/usr/bin/app".to_owned(), build_id: vec![1, 2, 3, 4] }],
        locations: vec![at(0x10ff), at(0x11ff)],
        processes: vec![SymbolProcess { process: 0, keys: vec![key(0x1100, 0), key(0x1200, 1)] }],
    }
}

fn folded() -> Summary {
    let totals = Totals {
        allocations: 2,
        bytes: 192,
        frees: 2,
        reallocations: 1,
        temporary: 2,
        failed: 1,
        peak_bytes: 128,
        peak_blocks: 1,
        ..Totals::default()
    };
    let site = SiteTotals {
        allocations: 2,
        bytes: 192,
        reallocations: 1,
        temporary: 2,
        failed: 1,
        peak_bytes: 128,
        peak_blocks: 1,
        live_bytes_max: 128,
        lifetime_us_sum: 30,
        first_us: 10,
        last_us: 20,
        ..SiteTotals::default()
    };
    let site = SiteSummary { stack: StackId(1), totals: site };
    let threads = vec![ThreadSummary { allocations: 2, bytes: 192 }];
    let requested = |allocations, bytes| Requested { allocations, bytes };
    let requests = RequestTotals { zeroed: requested(1, 128), aligned: requested(1, 64) };
    Summary {
        totals,
        peak_us: 20,
        frees_unmatched: 1,
        threads,
        sites: vec![site],
        requests: Some(vec![(StackId(1), requests)]),
    }
}

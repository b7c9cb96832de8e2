//! Bytes and processor time per event of the trace, on an invented program: nested pairs, short-lived blocks, and blocks freed at
//! random, over 3,000 stacks of which each has a few usual successors.
//!
//! `trace_bench write FILE [EVENTS [regular]]` writes; a regular program repeats its choices every 3,000. `trace_bench open
//! FILE [replay]` reads it.

#[path = "../tests/writer/mod.rs"]
mod writer;

use mallow_profile::{Aggregator, BlockId, ReallocAttribution, StackId, ThreadIndex};
use mallow_trace::*;
use std::path::Path;
use writer::Writer;

const STACKS: u32 = 3000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = Path::new(arguments.get(2).expect("a file"));
    match arguments[1].as_str() {
        "write" => write(
            path,
            arguments.get(3).map_or(30_000_000, |count| count.parse().expect("a number")),
            arguments.len() > 4,
        ),
        _ => open(path, arguments.len() > 3),
    }
}

/// What the invented program does next.
#[derive(Clone, Copy)]
enum Step {
    Alloc { thread: u32, stack: u32, size: u64 },
    Free { thread: u32, block: BlockId },
}

struct Program {
    seed: u64,
    choices: u64,
    regular: bool,
    stack: u32,
    nested: Vec<BlockId>,
    kept: Vec<BlockId>,
    closing: bool,
}

impl Program {
    fn random(&mut self, below: u64) -> u64 {
        self.choices += 1;
        if self.regular && self.choices.is_multiple_of(3000) {
            self.seed = 1;
        }
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 33) % below
    }

    fn step(&mut self) -> Step {
        let thread = u32::from(self.seed >> 60 == 15);
        if self.closing || self.nested.len() > 20 {
            self.closing = self.random(4) != 0;
            if let Some(block) = self.nested.pop() {
                return Step::Free { thread, block };
            }
        }
        if self.kept.len() > 100_000 || self.random(20) == 0 && !self.kept.is_empty() {
            let choice = self.random(self.kept.len() as u64) as usize;
            return Step::Free { thread, block: self.kept.swap_remove(choice) };
        }
        // Most stacks have one usual successor, and a few others.
        let turn = [0, 0, 0, 0, 0, 0, 1, 1, 2, 7][self.random(10) as usize];
        self.stack = (self.stack.wrapping_mul(31) + 17 + turn) % STACKS;
        let varied = self.stack.is_multiple_of(4);
        let size = if varied { self.random(2000) } else { u64::from(self.stack % 50) * 8 };
        Step::Alloc { thread, stack: self.stack, size }
    }

    fn born(&mut self, block: BlockId) {
        match self.random(12) {
            0 => self.kept.push(block),
            _ => self.nested.push(block),
        }
        self.closing = self.random(2) == 0;
    }
}

fn write(path: &Path, events: u64, regular: bool) {
    let mut program = Program {
        seed: 1,
        choices: 0,
        regular,
        stack: 0,
        nested: Vec::new(),
        kept: Vec::new(),
        closing: false,
    };
    let (mut fold, mut encoder, mut writer) = (Aggregator::new(), EventEncoder::new(), Writer::new());
    start(&mut writer);
    let (mut batch, mut time_us) = (Vec::new(), 0);
    let (mut fold_ns, mut encode_ns, mut zstd_ns, mut raw_bytes) = (0, 0, 0, 0);
    for _ in 0..events / EVENTS_PER_CHUNK as u64 {
        let started = cpu_ns();
        batch.clear();
        for i in 0..EVENTS_PER_CHUNK {
            let step = program.step();
            let block = match step {
                Step::Alloc { thread, stack, size } => {
                    let block = fold.alloc(ThreadIndex(thread), StackId(stack), size, time_us);
                    program.born(block);
                    block
                }
                Step::Free { thread, block } => {
                    fold.free(ThreadIndex(thread), block, time_us);
                    block
                }
            };
            batch.push((step, block, time_us));
            time_us += u64::from(i % 7 == 0) + 40 * u64::from(i % 1000 == 0);
        }
        let summary = cpu_ns();
        for &(step, block, time_us) in &batch {
            match step {
                Step::Alloc { thread, stack, size } => encoder.alloc(thread, block.0, stack, size, time_us),
                Step::Free { thread, block } => encoder.free(thread, block.0, time_us),
            }
        }
        let mut payload = Vec::new();
        encoder.take(&mut payload);
        let encoded = cpu_ns();
        raw_bytes += payload.len();
        writer.chunk_zstd(ChunkKind::EVENTS, Some(0), |out| *out = payload);
        fold_ns += summary - started;
        encode_ns += encoded - summary;
        zstd_ns += cpu_ns() - encoded;
    }
    end(&mut writer, fold, time_us);
    std::fs::write(path, &writer.bytes).expect("the trace can be written");
    let each = |what: u64| what as f64 / events as f64;
    println!("program and fold {:.1} ns/event", each(fold_ns));
    println!("encode {:.1} ns/event, {:.2} bytes/event", each(encode_ns), each(raw_bytes as u64));
    println!(
        "zstd -1 {:.1} ns/event, file {:.2} bytes/event",
        each(zstd_ns),
        each(writer.bytes.len() as u64)
    );
}

fn start(writer: &mut Writer) {
    let start = ProcessStart { pid: 1, command: "invented".into(), ..ProcessStart::default() };
    writer.chunk(ChunkKind::PROCESS_START, Some(0), |out| start.encode(out));
    let node = |i: u32| StackNode {
        parent: i.checked_sub(1 + i % 3),
        avma: 0x1000 + u64::from(i) * 64,
        ..Default::default()
    };
    let nodes = (0..STACKS).map(node).collect();
    writer.chunk_zstd(ChunkKind::STACKS, Some(0), |out| Stacks { first: 0, nodes }.encode(out));
}

fn end(writer: &mut Writer, fold: Aggregator, time_us: u64) {
    let end = ProcessEnd { ended_us: time_us, ..ProcessEnd::default() };
    writer.chunk(ChunkKind::PROCESS_END, Some(0), |out| end.encode(out));
    let summary = fold.finish(time_us);
    writer.chunk_zstd(ChunkKind::FOLDED, Some(0), |out| summary.encode(out));
    writer.chunk(ChunkKind::END, None, |out| End { duration_us: time_us }.encode(out));
}

fn open(path: &Path, replay: bool) {
    let started = std::time::Instant::now();
    // Any booking but the recorded one folds all events; nothing is resized here, so the metrics are the same.
    let attribution = if replay { ReallocAttribution::Origin } else { ReallocAttribution::OwnSite };
    let imported = read_file_with(path, attribution).expect("a trace");
    let totals = imported.profile.totals();
    let events = totals.allocations + totals.frees;
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let resident = status.lines().find(|line| line.starts_with("VmHWM")).expect("a line");
    println!("{events} events, warnings {:?}", imported.warnings);
    let cpu = cpu_ns();
    println!(
        "wall {:?}, processor {} ms, {:.1} ns/event, {resident}",
        started.elapsed(),
        cpu / 1_000_000,
        cpu as f64 / events as f64
    );
}

/// Time on a processor so far: other programs on the machine do not count.
fn cpu_ns() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("a kernel with schedstat");
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

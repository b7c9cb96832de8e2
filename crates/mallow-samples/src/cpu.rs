//! A profile of where a processor's time went: a program that parses in a thread, calls the kernel, and starts another program.

use mallow_base::Frame;
use mallow_cpu::{
    CpuAvailability, CpuProcess, CpuProfile, CpuRecording, CpuSample, CpuThread, CpuTotals, Quality,
    ThreadIndex,
};
use mallow_stacks::{Address, Location, LocationId, ProcessIndex, StackId, StackNode, StacksBuilder};

/// Nanoseconds that a sample stands for.
const PERIOD_NS: u64 = 1_003_009;

fn location(builder: &mut StacksBuilder, frames: &[(&str, &str, u32)]) -> LocationId {
    let outermost = frames.len() - 1;
    let frame = |(at, &(function, module, line)): (usize, &(&str, &str, u32))| Frame {
        function: function.into(),
        file: (line > 0).then(|| "/src/rows/parse.rs".to_owned()),
        line: (line > 0).then_some(line),
        module: Some(module.into()),
        inlined: at < outermost,
        ..Frame::default()
    };
    builder.location(Address::Unknown, frames.iter().enumerate().map(frame).collect())
}

/// The same with waits: a thread waits for a lock twice, the first one reads from a disk, and one had no processor for a while.
pub fn waits() -> CpuProfile {
    let mut profile = rows();
    let frame = |function: &str, module: &str| Frame {
        function: function.into(),
        module: Some(module.into()),
        ..Frame::default()
    };
    let mut stack = |frames: &[(&str, &str)]| {
        let mut parent = None;
        for (function, module) in frames {
            let location = LocationId(profile.stacks.locations.len() as u32);
            profile
                .stacks
                .locations
                .push(Location { address: Address::Unknown, frames: vec![frame(function, module)] });
            profile.stacks.nodes.push(StackNode { parent, location });
            parent = Some(StackId(profile.stacks.nodes.len() as u32 - 1));
        }
        parent
    };
    const ROWS: &str = "/usr/bin/rows";
    let lock = stack(&[
        ("start_thread", "/usr/lib/libc.so.6"),
        ("rows::parse::take", ROWS),
        ("futex_wait_queue", "[kernel]"),
    ]);
    let disk = stack(&[("_start", ROWS), ("rows::main", ROWS), ("folio_wait_bit_common", "[kernel]")]);
    let ready = stack(&[("_start", ROWS), ("rows::main", ROWS), ("rows::parse::parse_rows", ROWS)]);
    let waits = [
        (1, 120, 100, true, lock),
        (1, 120, 300, true, lock),
        (0, 50, 150, true, disk),
        (0, 20, 220, false, ready),
    ];
    for (thread, millis, at_millis, is_blocked, stack) in waits {
        let off_cpu_ns = millis * 1_000_000;
        let blocked_ns = if is_blocked { off_cpu_ns } else { 0 };
        profile.samples.push(CpuSample {
            time_ns: at_millis * 1_000_000,
            thread: ThreadIndex(thread),
            stack,
            totals: CpuTotals { off_cpu_ns, blocked_ns, switches: 1, ..CpuTotals::default() },
        });
    }
    profile.samples.sort_by_key(|sample| sample.time_ns);
    profile.known = CpuAvailability { off_cpu: true, blocked: true, switches: true, ..profile.known };
    profile.quality = profile.quality.map(|quality| Quality { samples: 404, whole: 396, ..quality });
    profile.sites = profile.sums(profile.samples.iter());
    profile
}

/// 400 samples over half a second.
pub fn rows() -> CpuProfile {
    const ROWS: &str = "/usr/bin/rows";
    const LIBC: &str = "/usr/lib/libc.so.6";
    let mut builder = StacksBuilder::default();
    let start = location(&mut builder, &[("_start", ROWS, 0)]);
    let main = location(&mut builder, &[("rows::main", ROWS, 40)]);
    let parse = location(&mut builder, &[("rows::parse::parse_rows", ROWS, 12)]);
    let field = location(&mut builder, &[("core::str::trim", ROWS, 4), ("rows::parse::field", ROWS, 19)]);
    let hash = location(&mut builder, &[("rows::parse::hash", ROWS, 23)]);
    let write = location(&mut builder, &[("write", LIBC, 0)]);
    let kernel = location(&mut builder, &[("ksys_write", "[kernel]", 0)]);
    let thread = location(&mut builder, &[("start_thread", LIBC, 0)]);
    let nameless = location(&mut builder, &[("0x1234", "/usr/lib/libz.so.1", 0)]);
    let stacks = [
        (0, 10, builder.stack([start, main, parse])),
        (0, 150, builder.stack([start, main, parse, field])),
        (1, 120, builder.stack([thread, parse, hash])),
        (0, 60, builder.stack([start, main, write, kernel])),
        (2, 57, builder.stack([start, nameless])),
        (2, 3, None),
    ];
    let mut samples = Vec::new();
    for (thread, count, stack) in stacks {
        samples.extend((0..count).map(|at| CpuSample {
            time_ns: u64::from(thread) * 100_000_000 + at * PERIOD_NS,
            thread: ThreadIndex(thread),
            stack,
            totals: CpuTotals { samples: 1, time_ns: PERIOD_NS, ..CpuTotals::default() },
        }));
    }
    samples.sort_by_key(|sample| sample.time_ns);
    let process =
        |pid, name: &str| CpuProcess { pid, name: name.into(), program: format!("/usr/bin/{name}") };
    let thread =
        |process, tid, name: &str| CpuThread { process: ProcessIndex(process), tid, name: name.into() };
    let mut profile = CpuProfile {
        recording: CpuRecording {
            command: vec!["./rows".into(), "--fast".into()],
            started_unix_ns: 1_700_000_000_000_000_000,
            duration_ns: 500_000_000,
            event: "cpu-clock".into(),
            frequency_hz: Some(997),
        },
        processes: vec![process(7, "rows"), process(9, "gzip")],
        threads: vec![thread(0, 7, "rows"), thread(0, 8, "hasher"), thread(1, 9, "gzip")],
        stacks: builder.finish(),
        samples,
        known: CpuAvailability { samples: true, time: true, ..CpuAvailability::default() },
        quality: Some(Quality {
            samples: 400,
            lost: 0,
            whole: 392,
            kernel_only: 3,
            too_deep: 4,
            kernel_seen: true,
            not_seen_ns: None,
        }),
        ..CpuProfile::default()
    };
    profile.sites = profile.sums(profile.samples.iter());
    profile
}

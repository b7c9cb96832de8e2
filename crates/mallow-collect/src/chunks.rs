//! The model's figures as the trace's chunks hold them.

use mallow_profile::{Exit, Folded, Totals};
use mallow_wire::trace;
use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

/// What was recorded, where and when.
pub(crate) fn recording(command: &[OsString]) -> trace::Recording {
    let system = rustix::system::uname();
    let mut environment = vec![
        ("kernel".to_owned(), system.release().to_string_lossy().into_owned()),
        ("machine".to_owned(), system.machine().to_string_lossy().into_owned()),
    ];
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    environment.push(("processors".to_owned(), processors.to_string()));
    trace::Recording {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_us: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64),
        counting_version: mallow_wire::COUNTING_VERSION,
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        environment,
    }
}

/// Appends a process's figures.
pub(crate) fn encode_folded(folded: &Folded, out: &mut Vec<u8>) {
    let threads = folded
        .threads
        .iter()
        .map(|thread| trace::FoldedThread { allocations: thread.allocations, bytes: thread.bytes });
    let process = trace::FoldedProcess {
        totals: totals_in_trace(&folded.totals),
        peak_us: folded.peak_us,
        frees_unmatched: folded.frees_unmatched,
        threads: threads.collect(),
        sites: Vec::new(),
    };
    process.encode_with(folded.sites.iter().map(site_in_trace), out);
}

fn totals_in_trace(totals: &Totals) -> trace::FoldedTotals {
    trace::FoldedTotals {
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

fn site_in_trace(site: &mallow_profile::FoldedSite) -> trace::FoldedSite {
    let totals = &site.totals;
    trace::FoldedSite {
        stack: site.stack.0,
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

/// How a process ended.
pub(crate) fn exit(exit: Exit) -> trace::Exit {
    match exit {
        Exit::Status(status) => trace::Exit::Status(status),
        Exit::Signal(signal) => trace::Exit::Signal(signal),
        Exit::Exec => trace::Exit::Exec,
    }
}

//! Any bytes given to the reader of our own trace end in a profile with its warnings or in one named error: never a panic,
//! never an endless loop, never more memory than the input justifies.

use super::said::said;
use crate::bare_trace::{bare_chunks, trace_of};
use mallow_profile::ProcessIndex;
use mallow_profile::analysis::{Pass, Plan, Slices, Trend, Window};
use mallow_trace::{Trace, read_bytes};
use std::io::Cursor;

/// The walk from chunk to chunk.
pub(super) fn reader(data: &[u8]) {
    said(read_bytes(data).err());
}

/// Chunks with any payloads in any order, checksums right: what reaches the decoders.
pub(super) fn chunks(data: &[u8]) {
    said(read_bytes(&trace_of(&bare_chunks(data))).err());
}

/// Everything that events tell, whatever ids, sizes and times they claim.
pub(super) fn analyses(data: &[u8]) {
    let Ok(mut trace) = Trace::open(Cursor::new(data)) else { return };
    let plan = Plan {
        window: Window { from_us: 100, to_us: 1_000_000 },
        window_sites: true,
        timeline: Some(Slices::new(100, 1_000_000, 70)),
        histogram: true,
        threads: true,
        chains: true,
        temporary_within: Some(3),
        shorter_than_us: Some(1_000),
        trends: Some(Trend::slices(0, 1_000_000)),
        ..Plan::default()
    };
    for process in 0..3 {
        let mut pass = Pass::new(plan);
        if trace.analyse(ProcessIndex(process), &mut pass).is_ok() {
            for site in pass.finish().trends {
                let mut trend = Trend::new(Trend::slices(0, 1_000_000));
                trend.add(&site);
                trend.verdict();
                trend.grew_until_freed_at_end();
            }
        }
    }
}

//! Stored events, added up again where a process has no sums or where they are wanted by another rule.

use super::analyse::Feed;
use super::checked::Checked;
use super::gather::Parts;
use super::scan::Scan;
use crate::{TraceError, want_large_pages};
use mallow_base::Micros;
use mallow_profile::{Aggregator, ReallocAttribution};
use std::io::{Read, Seek};

/// The result of replaying one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replay {
    pid: u32,
    pub(super) events: u64,
    pub(super) last_us: u64,
    /// The offset at which the events became invalid.
    stopped: Option<u64>,
}

impl Replay {
    pub(super) fn warning(&self) -> Option<String> {
        self.stopped.map(|offset| {
            format!(
                "the events of process {} make no sense from byte {offset} on; its metrics are valid up to there, \
                 {} events until {}",
                self.pid,
                self.events,
                Micros(self.last_us)
            )
        })
    }
}

/// Computes the missing sums of processes, and all sums if reallocations were attributed in another way than is
/// requested.
pub(super) fn add_up_missing<R: Read + Seek>(
    scan: &mut Scan<R>,
    parts: &mut Parts,
    attribution: ReallocAttribution,
) -> Result<Vec<Replay>, TraceError> {
    let mut replays = Vec::new();
    let until = parts.damaged;
    for process in parts.processes.values_mut() {
        if process.summary.is_some() && attribution == ReallocAttribution::OwnSite {
            continue;
        }
        process.require_events()?;
        let mut aggregator = Aggregator::with_attribution(attribution).advised(want_large_pages);
        let mut checked = Checked::new(process, Feed { sink: &mut aggregator, stack_base: 0 });
        let stopped = checked.run(scan, process, until)?;
        let Checked { events, last_us, .. } = checked;
        if events > 0 || stopped.is_some() {
            process.last_event_us = last_us;
            process.summary = Some(aggregator.finish(process.end.map_or(last_us, |end| end.ended_us)));
            replays.push(Replay { pid: process.start.pid, events, last_us, stopped });
        }
    }
    Ok(replays)
}

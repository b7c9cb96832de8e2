//! Everything that a trace holds beside events, sorted by process.

use super::scan::{Found, Place, Scan};
use crate::TraceError;
use crate::{
    Accesses, ChunkKind, DecodeError, End, LiveSamples, MappedModule, Modules, Origin, Payload, ProcessEnd,
    ProcessStart, Samples, StackNode, Stacks, Symbols, ThreadName, Threads, TruncatedStacks, Unnamed, Unseen,
};
use mallow_profile::{
    Aggregator, EarlyEnds, LiveSample, Nameless, Recording, Sample, SiteSummary, SiteTotals, Summary,
};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// What the names of all frames of a chunk of symbols may come to, and for each byte that it stores: real ones have a quarter of it.
const EXPANDED_BYTES_ALLOWED: u64 = 160 << 20;
const EXPANDED_PER_STORED_MAX: u64 = 256;

/// One process's chunks.
#[derive(Debug, Default)]
pub(super) struct ProcessParts {
    pub(super) start: ProcessStart,
    pub(super) end: Option<ProcessEnd>,
    pub(super) modules: Vec<MappedModule>,
    pub(super) stacks: Vec<StackNode>,
    /// How many there were, if they were dropped.
    dropped: usize,
    /// Set when stack nodes are missing: later ones have no place.
    stacks_broken: bool,
    pub(super) threads: BTreeMap<u32, ThreadName>,
    pub(super) samples: Vec<Sample>,
    pub(super) live_samples: Vec<LiveSample>,
    pub(super) summary: Option<Summary>,
    pub(super) accesses: Accesses,
    /// The offsets of its events.
    pub(super) events: Vec<u64>,
    /// The time of the last event, if they had to be replayed.
    pub(super) last_event_us: u64,
}

/// A trace without its events.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) recording: Recording,
    /// The tool that wrote the profile, if it was imported.
    pub(super) origin: Option<Origin>,
    pub(super) end: Option<End>,
    /// What the recorder knows to be missing.
    pub(super) unseen: Vec<String>,
    /// The modules whose names could not be looked up.
    pub(super) nameless: Vec<Nameless>,
    pub(super) early_ends: Vec<EarlyEnds>,
    /// By the index in the chunks.
    pub(super) processes: BTreeMap<u32, ProcessParts>,
    pub(super) symbols: Vec<Symbols>,
    /// The first damaged chunk.
    pub(super) damaged: Option<u64>,
    /// The offset at which the file is truncated within a chunk.
    torn: Option<u64>,
}

impl Parts {
    /// Walks through the file.
    pub(super) fn gather<R: Read + Seek>(scan: &mut Scan<R>) -> Result<Parts, TraceError> {
        let mut parts = Parts::default();
        let (mut intact, mut damaged_before) = (0u64, false);
        loop {
            let damaged = match scan.next()? {
                Found::Chunk(place) => match parts.take(&place, scan) {
                    Ok(()) => None,
                    Err(_) => Some(place.offset),
                },
                Found::Damaged(place) => Some(place.offset),
                Found::Torn(offset) => {
                    parts.torn = Some(offset);
                    break;
                }
                Found::End => break,
            };
            intact += u64::from(damaged.is_none());
            parts.damaged = parts.damaged.or(damaged);
            // Two in a row: the lengths lead nowhere, so there are no chunks to be found any more.
            if damaged.is_some() && damaged_before {
                break;
            }
            damaged_before = damaged.is_some();
        }
        match parts.damaged.or(parts.torn) {
            Some(offset) if intact == 0 => Err(TraceError::Damaged { offset }),
            _ => Ok(parts),
        }
    }

    fn take<R: Read + Seek>(&mut self, place: &Place, scan: &mut Scan<R>) -> Result<(), DecodeError> {
        let header = &place.header;
        if header.kind == ChunkKind::EVENTS {
            // Events are not decoded until they are needed.
            self.processes.entry(header.process).or_default().events.push(place.offset);
            return Ok(());
        }
        let expected = DecodeError { offset: 0, expected: "a payload of the stated length" };
        let payload = scan.payload(header).ok_or(expected)?;
        match header.kind {
            ChunkKind::RECORDING => self.recording = Recording::decode(payload)?,
            ChunkKind::SYMBOLS => {
                let symbols = Symbols::decode(payload)?;
                let stored = u64::from(header.payload_bytes);
                if symbols.expanded_bytes() > EXPANDED_BYTES_ALLOWED.max(stored * EXPANDED_PER_STORED_MAX) {
                    return Err(DecodeError { offset: 0, expected: "names in proportion to their chunk" });
                }
                self.symbols.push(symbols);
            }
            ChunkKind::ORIGIN => self.origin = Some(Origin::decode(payload)?),
            ChunkKind::UNNAMED => self.nameless.extend(Unnamed::decode(payload)?.modules),
            ChunkKind::TRUNCATED_STACKS => {
                self.early_ends.extend(TruncatedStacks::decode(payload)?.early_ends)
            }
            ChunkKind::UNSEEN => self.unseen.extend(Unseen::decode(payload)?.sentences),
            ChunkKind::END => self.end = Some(End::decode(payload)?),
            kind => return self.take_process(kind, header.process, payload),
        }
        Ok(())
    }

    fn take_process(&mut self, kind: ChunkKind, process: u32, payload: &[u8]) -> Result<(), DecodeError> {
        // A newer mallow's chunk, which this version's reports do not need.
        let known = matches!(kind, ChunkKind::FOLDED | ChunkKind::LIVE_SAMPLES | ChunkKind::ACCESSES)
            || (ChunkKind::PROCESS_START..=ChunkKind::PROCESS_END).contains(&kind);
        if !known {
            return Ok(());
        }
        let process = self.processes.entry(process).or_default();
        match kind {
            ChunkKind::PROCESS_START => process.start = ProcessStart::decode(payload)?,
            ChunkKind::MODULES => process.modules.extend(Modules::decode(payload)?.modules),
            ChunkKind::STACKS => process.take_stacks(Stacks::decode(payload)?)?,
            ChunkKind::THREADS => {
                let threads = Threads::decode(payload)?.threads;
                process.threads.extend(threads.into_iter().map(|thread| (thread.index, thread)));
            }
            ChunkKind::SAMPLES => process.samples.extend(Samples::decode(payload)?.samples),
            ChunkKind::LIVE_SAMPLES => process.live_samples.extend(LiveSamples::decode(payload)?.samples),
            ChunkKind::ACCESSES => process.accesses = Accesses::decode(payload)?,
            ChunkKind::PROCESS_END => process.end = Some(ProcessEnd::decode(payload)?),
            ChunkKind::FOLDED => {
                process.summary = Some(process.with_known_stacks(Summary::decode(payload)?));
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops what events need not: they take half of a large file's memory.
    pub(super) fn keep_events(&mut self) {
        self.symbols = Vec::new();
        for process in self.processes.values_mut() {
            process.dropped = process.stacks.len();
            process.stacks = Vec::new();
            if let Some(summary) = &mut process.summary {
                summary.sites = Vec::new();
                summary.requests = None;
            }
            process.accesses = Accesses::default();
        }
    }

    /// Returns whether the recording was closed in order.
    pub(super) fn is_closed(&self) -> bool {
        self.end.is_some() && self.torn.is_none() && self.damaged.is_none()
    }
}

impl ProcessParts {
    /// Metrics whose stacks were lost to a damage stay, as those of no stack.
    fn with_known_stacks(&self, mut summary: Summary) -> Summary {
        let lost = |site: &SiteSummary| {
            site.stack != Aggregator::NO_STACK && site.stack.0 as usize >= self.stacks.len()
        };
        if summary.sites.iter().any(lost) {
            let (gone, mut known): (Vec<SiteSummary>, Vec<SiteSummary>) =
                summary.sites.drain(..).partition(|site| lost(site) || site.stack == Aggregator::NO_STACK);
            let mut totals = SiteTotals::default();
            gone.iter().for_each(|site| totals.add(&site.totals));
            known.push(SiteSummary { stack: Aggregator::NO_STACK, totals });
            summary.sites = known;
            summary.requests = None;
        }
        summary
    }

    /// How many stack nodes it has.
    pub(super) fn stack_count(&self) -> u32 {
        self.stacks.len().max(self.dropped) as u32
    }

    /// Adds stack nodes, unless some before them are missing.
    fn take_stacks(&mut self, stacks: Stacks) -> Result<(), DecodeError> {
        self.stacks_broken |= stacks.first as usize != self.stacks.len();
        if self.stacks_broken {
            return Err(DecodeError { offset: 0, expected: "stack nodes that follow those before" });
        }
        self.stacks.extend(stacks.nodes);
        Ok(())
    }

    /// Fails when there were events and only their sums were kept.
    pub(super) fn require_events(&self) -> Result<(), TraceError> {
        match &self.summary {
            Some(summary) if self.events.is_empty() && *summary != Summary::default() => {
                Err(TraceError::NoEvents)
            }
            _ => Ok(()),
        }
    }
}

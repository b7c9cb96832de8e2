//! pprof's protobuf, as Go's runtime, tcmalloc, jemalloc's converters and many others write it.
//!
//! The message is described in `pprof_proto`. Values are already estimates of all allocations; nothing is scaled
//! here. Samples of one stack that differ in labels are added up; what threads allocated is also kept separately.

mod columns;
mod cpu;
mod messages;
mod places;
mod recording;

use crate::pprof_proto::Label;
use crate::{AnyImported, Format, ImportError, Imported};
use columns::Columns;
use mallow_cpu::CpuAvailability;
use mallow_profile::{Availability, Process, ProfileBuilder, SiteTotals, Thread, Totals};
use messages::Messages;
use places::Places;
use recording::recording_of;
use std::collections::{BTreeMap, BTreeSet};

/// Parses a whole decompressed file that must be a heap profile.
pub(super) fn read(bytes: &[u8]) -> Result<Imported, ImportError> {
    let messages = Messages::decode(bytes)?;
    of_memory(&messages, bytes.len())
}

/// Parses a whole decompressed file.
pub(super) fn read_any(bytes: &[u8]) -> Result<AnyImported, ImportError> {
    let messages = Messages::decode(bytes)?;
    let columns = cpu::CpuColumns::of(&messages);
    if Columns::of(&messages).known() == Availability::NOTHING
        && columns.known() != CpuAvailability::default()
    {
        return Ok(AnyImported::Cpu(cpu::read(&messages, &columns, bytes.len())?));
    }
    Ok(AnyImported::Heap(of_memory(&messages, bytes.len())?))
}

fn of_memory(messages: &Messages, file_bytes: usize) -> Result<Imported, ImportError> {
    let columns = Columns::of(messages);
    let known = columns.known();
    if known == Availability::NOTHING {
        return Err(ImportError::Unsupported { format: Format::Pprof, reason: no_memory(&columns) });
    }
    let mut builder = ProfileBuilder::new(recording_of(messages), known);
    let command = builder.recording().command.join(" ");
    let process = builder.add_process(Process { command, ..Process::default() });
    let places = Places::of(messages, builder.stacks(), file_bytes)?;
    let mut labels = Labels::default();
    let mut totals = Totals::default();
    let mut negative = false;
    for (at, sample) in &messages.samples {
        let site = columns.totals(&sample.value);
        negative |= sample.value.iter().any(|&value| value < 0);
        let stack = places.stack(builder.stacks(), &sample.location_id, *at)?;
        labels.add(messages, &sample.label, &site);
        totals.add(&totals_of(&site));
        builder.add_site(process, stack, &site);
    }
    if known.allocations && known.leaked_blocks {
        totals.frees = totals.allocations.saturating_sub(totals.leaked_blocks);
    }
    builder.process(process).totals = totals;
    let mut warnings = warnings_of(messages, &columns, &labels);
    if negative {
        warnings.push(String::from(
            "the file is a difference of two profiles; what became less is counted as 0 here",
        ));
    }
    builder.process(process).threads =
        if known.allocations && known.bytes { labels.threads() } else { Vec::new() };
    Ok(Imported { profile: builder.finish(), warnings, complete: true })
}

fn no_memory(columns: &Columns) -> String {
    match &columns.others[..] {
        [] => String::from("it names no types of samples; it may be cut off or no pprof file at all"),
        others => format!("it holds {} and nothing about memory", others.join(", ")),
    }
}

fn totals_of(site: &SiteTotals) -> Totals {
    Totals {
        allocations: site.allocations,
        bytes: site.bytes,
        temporary: site.temporary,
        peak_bytes: site.peak_bytes,
        peak_blocks: site.peak_blocks,
        leaked_bytes: site.leaked_bytes,
        leaked_blocks: site.leaked_blocks,
        ..Totals::default()
    }
}

fn warnings_of(messages: &Messages, columns: &Columns, labels: &Labels) -> Vec<String> {
    let mut warnings = Vec::new();
    if messages.samples.is_empty() {
        warnings.push(String::from("the file holds no samples"));
    }
    let is_space = messages.period_type.is_some_and(|period| messages.text(period.kind) == "space");
    if is_space && messages.period > 1 {
        warnings.push(format!(
            "metrics are estimates: one allocation in about every {} bytes was sampled",
            messages.period
        ));
    }
    if !columns.others.is_empty() {
        warnings.push(format!("samples of these types are left out: {}", columns.others.join(", ")));
    }
    if !labels.others.is_empty() {
        let keys: Vec<&str> = labels.others.iter().map(String::as_str).collect();
        warnings.push(format!(
            "samples of one stack that differ only in a label ({}) are added up",
            keys.join(", ")
        ));
    }
    warnings
}

/// The labels of samples.
#[derive(Debug, Default)]
struct Labels {
    /// What each thread allocated.
    by_thread: BTreeMap<String, (u64, u64)>,
    /// The keys of labels that are not kept.
    others: BTreeSet<String>,
}

impl Labels {
    fn add(&mut self, messages: &Messages, labels: &[Label], site: &SiteTotals) {
        for label in labels {
            let (key, text) = (messages.text(label.key), messages.text(label.text));
            if key == "thread" && !text.is_empty() {
                let (allocations, bytes) = self.by_thread.entry(text.to_owned()).or_default();
                *allocations = allocations.saturating_add(site.allocations);
                *bytes = bytes.saturating_add(site.bytes);
            } else if !self.others.contains(key) {
                self.others.insert(key.to_owned());
            }
        }
    }

    fn threads(self) -> Vec<Thread> {
        let thread = |(name, (allocations, bytes))| Thread { tid: 0, name, allocations, bytes };
        self.by_thread.into_iter().map(thread).collect()
    }
}

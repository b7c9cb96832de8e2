//! A pprof file that is a CPU profile: those of Go, gperftools, perf's converters, and ours.
//!
//! Samples with a time are kept one by one; the others are added up.

use super::messages::Messages;
use super::places::Places;
use super::recording::recording_of;
use crate::cpu_labels::{self, Beside};
use crate::pprof_proto::{Label, ValueType};
use crate::{ImportError, ImportedCpu};
use mallow_cpu::{
    CpuAvailability, CpuMetric, CpuProcess, CpuProfile, CpuRecording, CpuSample, CpuThread, CpuTotals,
    ThreadIndex,
};
use mallow_stacks::{ProcessIndex, StacksBuilder};
use rustc_hash::FxHashMap;

/// The metrics by the index of their values, each with the factor of its unit.
#[derive(Debug, Default)]
pub(super) struct CpuColumns {
    metrics: Vec<Option<(CpuMetric, u64)>>,
    /// The event's name, if there is one.
    event: String,
    others: Vec<String>,
}

impl CpuColumns {
    pub(super) fn of(messages: &Messages) -> CpuColumns {
        let mut columns = CpuColumns::default();
        let own_event = beside_of(messages).map(Beside::into_event).unwrap_or_default();
        for sample_type in &messages.sample_types {
            let metric = metric_of(messages, sample_type, &own_event);
            let is_taken = |(metric, _): &(CpuMetric, u64)| {
                columns.metrics.iter().flatten().any(|(other, _)| other == metric)
            };
            let metric = metric.filter(|metric| !is_taken(metric));
            let kind = messages.text(sample_type.kind);
            match metric {
                Some((CpuMetric::Events, _)) => columns.event = kind.trim_end_matches("_event").to_owned(),
                Some(_) => {}
                None => columns.others.push(format!("{kind}/{}", messages.text(sample_type.unit))),
            }
            columns.metrics.push(metric);
        }
        columns
    }

    fn has(&self, metric: CpuMetric) -> bool {
        self.metrics.iter().flatten().any(|(other, _)| *other == metric)
    }

    pub(super) fn known(&self) -> CpuAvailability {
        CpuAvailability {
            samples: self.has(CpuMetric::Samples),
            time: self.has(CpuMetric::Time),
            events: self.has(CpuMetric::Events),
            off_cpu: self.has(CpuMetric::OffCpu),
            blocked: self.has(CpuMetric::Blocked),
            switches: self.has(CpuMetric::Switches),
        }
    }

    fn totals(&self, values: &[i64]) -> CpuTotals {
        let mut totals = CpuTotals::default();
        for (metric, value) in self.metrics.iter().zip(values) {
            let Some((metric, times)) = metric else { continue };
            let value = u64::try_from(*value).unwrap_or(0).saturating_mul(*times);
            match metric {
                CpuMetric::Samples => totals.samples = value,
                CpuMetric::Time => totals.time_ns = value,
                CpuMetric::Events => totals.events = value,
                CpuMetric::OffCpu => totals.off_cpu_ns = value,
                CpuMetric::Blocked => totals.blocked_ns = value,
                CpuMetric::Switches => totals.switches = value,
            }
        }
        totals
    }
}

/// Returns the additional data in the comment of a file that mallow wrote.
fn beside_of(messages: &Messages) -> Option<Beside> {
    let ours = |&comment| messages.text(comment).strip_prefix(cpu_labels::COMMENT);
    serde_json::from_str(messages.comments.iter().find_map(ours)?).ok()
}

/// Returns the metric of a sample type. `own_event` is the name of the sampled event in a file that mallow wrote, which may be any.
fn metric_of(messages: &Messages, sample_type: &ValueType, own_event: &str) -> Option<(CpuMetric, u64)> {
    let unit = messages.text(sample_type.unit);
    let nanoseconds = match unit {
        "nanoseconds" | "ns" => Some(1),
        "microseconds" | "us" => Some(1_000),
        "milliseconds" | "ms" => Some(1_000_000),
        "seconds" | "s" => Some(1_000_000_000),
        _ => None,
    };
    let is_count = matches!(unit, "count" | "");
    match (messages.text(sample_type.kind), nanoseconds) {
        ("cpu" | "cpu-time" | "cpu-clock" | "task-clock", Some(times)) => Some((CpuMetric::Time, times)),
        ("off-cpu", Some(times)) => Some((CpuMetric::OffCpu, times)),
        ("blocked", Some(times)) => Some((CpuMetric::Blocked, times)),
        ("switches", None) if is_count => Some((CpuMetric::Switches, 1)),
        ("samples" | "sample" | "cpu-samples", None) if is_count => Some((CpuMetric::Samples, 1)),
        (kind, None) if is_count && kind.ends_with("_sample") => Some((CpuMetric::Samples, 1)),
        (kind, None)
            if is_count && (kind.ends_with("_event") || EVENTS.contains(&kind) || kind == own_event) =>
        {
            Some((CpuMetric::Events, 1))
        }
        _ => None,
    }
}

/// perf's names of events that processors count, and of those that the kernel counts.
const EVENTS: [&str; 14] = [
    "events",
    "cycles",
    "instructions",
    "cpu-cycles",
    "ref-cycles",
    "bus-cycles",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "branch-instructions",
];

/// Parses a file with these columns.
pub(super) fn read(
    messages: &Messages,
    columns: &CpuColumns,
    file_bytes: usize,
) -> Result<ImportedCpu, ImportError> {
    let mut builder = StacksBuilder::default();
    let places = Places::of(messages, &mut builder, file_bytes)?;
    let recording = recording_of(messages);
    let mut profile = CpuProfile {
        recording: CpuRecording {
            command: recording.command,
            started_unix_ns: u64::try_from(messages.time_ns).unwrap_or(0),
            duration_ns: u64::try_from(messages.duration_ns).unwrap_or(0),
            event: columns.event.clone(),
            frequency_hz: None,
        },
        known: columns.known(),
        ..CpuProfile::default()
    };
    if let Some(beside) = beside_of(messages) {
        beside.fill(&mut profile);
    }
    let mut threads = Threads { is_told: !profile.threads.is_empty(), known: FxHashMap::default() };
    let (mut negative, mut is_timed) = (false, true);
    for (at, sample) in &messages.samples {
        negative |= sample.value.iter().any(|value| *value < 0);
        let stack = places.stack(&mut builder, &sample.location_id, *at)?;
        let labels = Labels::of(messages, &sample.label);
        let thread = threads.of(&labels, &mut profile);
        is_timed &= labels.time_ns.is_some();
        let totals = columns.totals(&sample.value);
        let end_ns = labels.time_ns.unwrap_or(0).saturating_sub(profile.recording.started_unix_ns);
        let time_ns = end_ns.saturating_sub(totals.off_cpu_ns);
        profile.samples.push(CpuSample { time_ns, thread, stack, totals });
    }
    profile.stacks = builder.finish();
    profile.samples.sort_by_key(|sample| sample.time_ns);
    profile.sites = profile.sums(profile.samples.iter());
    if !is_timed {
        profile.samples = Vec::new();
    }
    let mut warnings = Vec::new();
    if messages.samples.is_empty() {
        warnings.push(String::from("the file holds no samples"));
    }
    if negative {
        warnings.push(String::from(
            "the file is a difference of two profiles; what became less is counted as 0 here",
        ));
    }
    if !columns.others.is_empty() {
        warnings.push(format!("samples of these types are left out: {}", columns.others.join(", ")));
    }
    Ok(ImportedCpu { profile, warnings, complete: true })
}

/// The labels of samples.
#[derive(Debug, Default, PartialEq, Eq, Hash, Clone)]
struct Labels {
    pid: u32,
    tid: u32,
    name: String,
    index: Option<u32>,
    time_ns: Option<u64>,
}

impl Labels {
    fn of(messages: &Messages, labels: &[Label]) -> Labels {
        let mut known = Labels::default();
        for label in labels {
            let number = u32::try_from(label.number).unwrap_or(0);
            // Some tools write numbers as text.
            let text = messages.text(label.text);
            let number = if text.is_empty() { number } else { text.parse().unwrap_or(number) };
            match messages.text(label.key) {
                cpu_labels::PROCESS_ID | "pid" => known.pid = number,
                cpu_labels::THREAD_ID | "tid" | "thread_id" => known.tid = number,
                cpu_labels::THREAD_NAME | "thread" | "thread_name" | "comm" => {
                    text.clone_into(&mut known.name)
                }
                cpu_labels::THREAD_INDEX => known.index = Some(number),
                cpu_labels::TIME => known.time_ns = u64::try_from(label.number).ok(),
                _ => {}
            }
        }
        known
    }
}

/// The threads of a file.
struct Threads {
    /// Whether the file has a list of them.
    is_told: bool,
    known: FxHashMap<(u32, u32, String), ThreadIndex>,
}

impl Threads {
    fn of(&mut self, labels: &Labels, profile: &mut CpuProfile) -> ThreadIndex {
        let told = labels.index.filter(|index| self.is_told && (*index as usize) < profile.threads.len());
        if let Some(index) = told {
            return ThreadIndex(index);
        }
        *self.known.entry((labels.pid, labels.tid, labels.name.clone())).or_insert_with(|| {
            let known = profile.processes.iter().position(|process| process.pid == labels.pid);
            let process = known.unwrap_or_else(|| {
                let program = profile.recording.command.first().cloned().unwrap_or_default();
                profile.processes.push(CpuProcess { pid: labels.pid, name: String::new(), program });
                profile.processes.len() - 1
            });
            profile.threads.push(CpuThread {
                process: ProcessIndex(process as u32),
                tid: labels.tid,
                name: labels.name.clone(),
            });
            ThreadIndex(profile.threads.len() as u32 - 1)
        })
    }
}

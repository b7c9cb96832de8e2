//! CPU profiles as pprof files, which `mallow cpu` writes.
//!
//! Each sample has its time, thread and process as labels, named as in other profilers, so nothing is lost. Data
//! without a field in the format is in a comment.

use super::tables::{Tables, locations};
use crate::cpu_labels::{self, Beside};
use crate::pprof_proto::{self as proto, COMMAND_COMMENT};
use flate2::Compression;
use flate2::write::GzEncoder;
use mallow_cpu::{CpuMetric, CpuProfile, CpuThread, CpuTotals};
use mallow_stacks::{Metric, StackId};
use prost::Message;
use std::io::{self, Write};

/// Writes a profile.
pub(in crate::export) fn write(
    profile: &CpuProfile,
    metric: CpuMetric,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let mut tables = Tables::new();
    const ORDER: [CpuMetric; 6] = [
        CpuMetric::Samples,
        CpuMetric::Time,
        CpuMetric::Events,
        CpuMetric::OffCpu,
        CpuMetric::Blocked,
        CpuMetric::Switches,
    ];
    let columns: Vec<CpuMetric> = ORDER.into_iter().filter(|metric| profile.known.knows(*metric)).collect();
    for column in &columns {
        let (kind, unit) = type_of(*column, profile);
        let value_type = tables.value_type(kind, unit);
        tables.message.sample_type.push(value_type);
    }
    tables.message.default_sample_type = tables.text(type_of(metric, profile).0);
    if let (true, Some(hz)) = (profile.known.time, profile.recording.frequency_hz) {
        tables.message.period_type = Some(tables.value_type("cpu", "nanoseconds"));
        tables.message.period = (1_000_000_000 / hz.max(1)) as i64;
    }
    tables.message.time_nanos = signed(profile.recording.started_unix_ns);
    tables.message.duration_nanos = signed(profile.recording.duration_ns);
    if !profile.recording.command.is_empty() {
        let comment = tables.text(&format!("{COMMAND_COMMENT}{}", profile.recording.command.join(" ")));
        tables.message.comment.push(comment);
    }
    let beside = serde_json::to_string(&Beside::of(profile))?;
    let comment = tables.text(&format!("{}{beside}", cpu_labels::COMMENT));
    tables.message.comment.push(comment);
    tables.add_stacks(&profile.stacks, &[]);
    add_samples(&mut tables, profile, &columns);
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(&tables.message.encode_to_vec())?;
    packed.finish()?;
    Ok(Vec::new())
}

/// Returns the names that Go's profiles and `perf` use.
fn type_of(metric: CpuMetric, profile: &CpuProfile) -> (&str, &'static str) {
    match metric {
        CpuMetric::Samples => ("samples", "count"),
        CpuMetric::Time => ("cpu", "nanoseconds"),
        CpuMetric::OffCpu => (CpuMetric::OffCpu.word(), "nanoseconds"),
        CpuMetric::Blocked => (CpuMetric::Blocked.word(), "nanoseconds"),
        CpuMetric::Switches => (CpuMetric::Switches.word(), "count"),
        CpuMetric::Events if profile.recording.event.is_empty() => ("events", "count"),
        CpuMetric::Events => (&profile.recording.event, "count"),
    }
}

fn add_samples(tables: &mut Tables, profile: &CpuProfile, columns: &[CpuMetric]) {
    if profile.samples.is_empty() {
        // Without threads: a process is identified by its first one.
        for site in &profile.sites {
            let at = profile.threads.iter().position(|thread| thread.process == site.process);
            let label = at.map(|at| labels(tables, profile, at)).unwrap_or_default();
            add(tables, profile, site.stack, &site.totals, columns, label);
        }
    }
    for sample in &profile.samples {
        let mut label = labels(tables, profile, sample.thread.0 as usize);
        let end_ns = sample.time_ns.saturating_add(sample.totals.off_cpu_ns);
        let time = profile.recording.started_unix_ns.saturating_add(end_ns);
        label.push(number(tables, cpu_labels::TIME, signed(time)));
        add(tables, profile, sample.stack, &sample.totals, columns, label);
    }
}

fn add(
    tables: &mut Tables,
    profile: &CpuProfile,
    stack: Option<StackId>,
    totals: &CpuTotals,
    columns: &[CpuMetric],
    label: Vec<proto::Label>,
) {
    let value = columns.iter().map(|metric| signed(metric.of_site(totals))).collect();
    let location_id = match stack {
        Some(stack) => locations(&profile.stacks, stack),
        None => vec![tables.no_stack()],
    };
    tables.message.sample.push(proto::Sample { location_id, value, label });
}

fn labels(tables: &mut Tables, profile: &CpuProfile, at: usize) -> Vec<proto::Label> {
    let Some(CpuThread { process, tid, name }) = profile.threads.get(at) else { return Vec::new() };
    let pid = profile.processes.get(process.0 as usize).map_or(0, |process| process.pid);
    let name = proto::Label {
        key: tables.text(cpu_labels::THREAD_NAME),
        text: tables.text(name),
        ..proto::Label::default()
    };
    vec![
        number(tables, cpu_labels::PROCESS_ID, i64::from(pid)),
        number(tables, cpu_labels::THREAD_ID, i64::from(*tid)),
        number(tables, cpu_labels::THREAD_INDEX, at as i64),
        name,
    ]
}

fn number(tables: &mut Tables, key: &str, number: i64) -> proto::Label {
    proto::Label { key: tables.text(key), number, ..proto::Label::default() }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

//! The JSON document of a soak, `mallow.soak/3`, described by `docs/schema/soak.json`.
//!
//! Only samples are serialised as they are: their form is a promise already, made by the lines of `--samples`.

mod earlier;

pub use earlier::{EarlierError, earlier};

use crate::parts::FrameJson;
use crate::spelling::spelled;
use mallow_base::mirror;
use mallow_evidence::{Comparison, MappingGrowth, Sample, Series, SoakReport};
use mallow_growth::{Basis, Fault, Finding, Plateau, Shape};
use mallow_text::soak::text::Page;
use mallow_text::soak::{advice, finding, sentence};
use mallow_view::heap::{FieldRow, HeldRow};
use mallow_view::soak::{
    GrowingRow, Holder, Interval, LatencyRow, SeriesRow, SeriesUnit, Side, Split, asked, can_grow, elsewhere,
    growing, is_failure, latencies, outcome, pace, series_list, split,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name and version of the document.
pub const SCHEMA: &str = "mallow.soak/3";

/// The document.
#[derive(Serialize)]
pub struct SoakJson<'a> {
    schema: &'static str,
    verdict: Cow<'static, str>,
    sentence: String,
    exit_code: u8,
    command: &'a [String],
    pid: u32,
    work: &'a str,
    started_unix_us: u64,
    seconds: f64,
    server_end: &'a str,
    growth: GrowthJson,
    detectable_per_request: Option<f64>,
    detectable_outside_per_request: Option<f64>,
    plateau: Option<PlateauJson>,
    idle_per_hour: Option<IntervalJson>,
    findings: Vec<FindingJson>,
    faults: Vec<String>,
    needs: Vec<String>,
    advice: Vec<String>,
    window: [usize; 2],
    #[serde(rename = "planes")]
    series_list: Vec<SeriesJson>,
    split: Option<SplitJson>,
    stacks: Vec<StackJson<'a>>,
    mappings: Vec<MappingJson<'a>>,
    managed: Option<ManagedJson<'a>>,
    requests: RequestsJson,
    latency: Vec<LatencyJson>,
    comparison: Option<ComparisonJson<'a>>,
    /// What a later soak is held against.
    #[serde(rename = "figures")]
    metrics: MetricsJson,
    uncollected: bool,
    complete: bool,
    holder: Option<&'a str>,
    warnings: &'a [String],
    samples: &'a [Sample],
}

mirror! {
    /// A metric with its confidence interval.
    #[derive(Copy)]
    pub(crate) struct IntervalJson both ways of Interval { value: f64, low: f64, high: f64 }
}

#[derive(Serialize)]
struct GrowthJson {
    #[serde(rename = "plane")]
    series: &'static str,
    /// In each worker, by the age that it has when it is replaced.
    by_age: bool,
    bytes_per_request: Option<IntervalJson>,
    requests_per_second: Option<f64>,
    bytes_per_day: Option<f64>,
    memory_limit_bytes: Option<u64>,
    seconds_to_limit: Option<f64>,
}

mirror! {
    struct PlateauJson of Plateau { rise_bytes: f64, after_requests: u64 }
}

#[derive(Serialize)]
struct FindingJson {
    kind: &'static str,
    sentence: String,
    fails: bool,
}

#[derive(Serialize)]
struct SeriesJson {
    #[serde(rename = "plane")]
    series: &'static str,
    unit: &'static str,
    first: f64,
    last: f64,
    per_request: Option<IntervalJson>,
    course: Option<&'static str>,
}

mirror! {
    struct SplitJson of Split { managed: Option<f64>, native: Option<f64>, allocator: Option<f64>, resident: f64 }
}

#[derive(Serialize)]
struct StackJson<'a> {
    share: f64,
    bytes_per_request: f64,
    blocks_per_request: f64,
    bytes: [u64; 2],
    blocks: [u64; 2],
    frames: Vec<FrameJson<'a>>,
}

#[derive(Serialize)]
struct MappingJson<'a> {
    name: &'a str,
    bytes: [u64; 2],
    count: [u64; 2],
}

#[derive(Serialize)]
struct ManagedJson<'a> {
    pid: u32,
    runtime: &'a str,
    requests: u64,
    /// None when they are gone.
    files: Option<[String; 2]>,
    held: Vec<HeldJson<'a>>,
}

#[derive(Serialize)]
struct HeldJson<'a> {
    class: &'a str,
    kind: &'a str,
    holder: Option<&'a str>,
    objects: [u64; 2],
    retained_bytes: [u64; 2],
    site: Option<&'a str>,
    path_root: Option<&'a str>,
    path: Vec<PathJson<'a>>,
}

#[derive(Serialize)]
struct PathJson<'a> {
    field: &'a str,
    label: &'a str,
    id: &'a str,
}

#[derive(Serialize)]
struct RequestsJson {
    iterations: usize,
    requests: u64,
    failures: BTreeMap<String, u64>,
    generator_busy: Option<f64>,
    uncounted: bool,
}

mirror! {
    struct LatencyJson of LatencyRow {
        #[serde(rename = "corrected")]
        is_corrected: bool,
        p50_us: Option<f64>,
        p90_us: Option<f64>,
        p99_us: Option<f64>,
        p999_us: Option<f64>,
        worst_us: Option<u64>,
    }
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    baseline: &'a str,
    #[serde(rename = "planes")]
    series_list: Vec<ComparedJson>,
}

mirror! {
    struct ComparedJson of Series {
        name: &'static str,
        unit: &'static str,
        before: f64,
        after: f64,
        difference: [f64; 2],
        worse: bool,
    }
}

/// The metrics that two soaks are compared by; none for what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricsJson {
    heap_per_request: Option<IntervalJson>,
    resident_per_request: Option<IntervalJson>,
    heap_level: Option<IntervalJson>,
    resident_level: Option<IntervalJson>,
    allocations_per_request: Option<IntervalJson>,
    rate: Option<IntervalJson>,
    p99_us: Option<IntervalJson>,
}

impl<'a> SoakJson<'a> {
    /// The document of a page, with all its stacks.
    pub fn of(page: &Page<'a>) -> SoakJson<'a> {
        let Page { report, fail_on, .. } = *page;
        let conclusion = &report.conclusion;
        let finding = |found: &Finding| FindingJson {
            kind: kind(found),
            sentence: finding::finding(found),
            fails: is_failure(found, fail_on),
        };
        let idle = conclusion.idle_per_hour.map(|(value, low, high)| IntervalJson { value, low, high });
        SoakJson {
            schema: SCHEMA,
            verdict: spelled(conclusion.verdict.word()),
            sentence: sentence::verdict(report),
            exit_code: outcome(report, fail_on).exit_code(),
            command: &report.command,
            pid: report.pid,
            work: &report.work,
            started_unix_us: report.started_unix_us,
            seconds: report.seconds,
            server_end: &report.server_end,
            growth: growth(report),
            detectable_per_request: conclusion.detectable_per_request,
            detectable_outside_per_request: conclusion.detectable_outside_per_request,
            plateau: conclusion.plateau.map(PlateauJson::from),
            idle_per_hour: idle,
            findings: conclusion.findings.iter().map(finding).collect(),
            faults: report.evidence.faults.iter().map(sentence::fault).collect(),
            needs: advice::needs(report),
            advice: advice::places(report),
            window: [conclusion.window.start, conclusion.window.end],
            series_list: series_list(report).iter().map(SeriesJson::from).collect(),
            split: split(report).map(SplitJson::from),
            stacks: growing(report, usize::MAX).rows.iter().map(StackJson::from).collect(),
            mappings: report.mappings.iter().map(MappingJson::from).collect(),
            managed: managed(page),
            requests: requests(report),
            latency: latencies(&report.samples).iter().map(LatencyJson::from).collect(),
            comparison: report.comparison.as_ref().map(ComparisonJson::from),
            metrics: MetricsJson::from(&Side::of(report)),
            uncollected: report.evidence.uncollected,
            complete: report.unrecorded.is_none() && !conclusion.is_elsewhere && !is_lost(report),
            holder: elsewhere(report).map(|found| match found.holder {
                Holder::Go => "go",
                Holder::Linked(name) => name,
                Holder::OwnMalloc => "malloc",
                Holder::Unknown => "unknown",
            }),
            warnings: &report.warnings,
            samples: &report.samples,
        }
    }
}

fn managed<'a>(page: &Page<'a>) -> Option<ManagedJson<'a>> {
    let snapshots = page.report.snapshots.as_ref()?;
    let files = [&snapshots.before, &snapshots.after].map(|path| path.to_string_lossy().into_owned());
    let held = page.held.iter().map(|HeldRow { growth, example }| HeldJson {
        class: &growth.class,
        kind: &growth.kind,
        holder: growth.holder.as_deref(),
        objects: [growth.before.objects, growth.after.objects],
        retained_bytes: [growth.before.retained_bytes, growth.after.retained_bytes],
        site: growth.site.as_ref().map(|(site, _)| &site[..]),
        path_root: example.path_root.as_deref(),
        path: example.path.iter().map(PathJson::from).collect(),
    });
    Some(ManagedJson {
        pid: snapshots.pid,
        runtime: &snapshots.runtime,
        requests: snapshots.requests,
        files: page.are_snapshots_kept.then_some(files),
        held: held.collect(),
    })
}

impl<'a> From<&'a FieldRow> for PathJson<'a> {
    fn from(row: &'a FieldRow) -> Self {
        PathJson { field: &row.field, label: &row.object.label, id: &row.object.id }
    }
}

fn is_lost(report: &SoakReport) -> bool {
    report.evidence.faults.iter().any(|fault| matches!(fault, Fault::Lost { .. }))
}

fn growth(report: &SoakReport) -> GrowthJson {
    let trend = report.conclusion.trend();
    let (pace, by_age) = (pace(report), report.conclusion.by_age);
    // Of one observation nobody knows what grows; what a worker keeps goes with it.
    let can_grow = can_grow(report);
    let lasting = pace.filter(|_| can_grow && !by_age);
    GrowthJson {
        series: match report.conclusion.basis {
            Basis::LiveHeap => "live_heap",
            Basis::Stacks => "stacks",
            Basis::ManagedHeap => "managed_heap",
            Basis::Mapped => "mapped",
            Basis::Resident => "resident",
        },
        by_age,
        bytes_per_request: can_grow.then_some(IntervalJson {
            value: trend.per_request,
            low: trend.per_request_low,
            high: trend.per_request_high,
        }),
        requests_per_second: pace.map(|pace| pace.requests_per_second),
        bytes_per_day: lasting.map(|pace| pace.bytes_per_day),
        memory_limit_bytes: report.memory_limit_bytes,
        seconds_to_limit: lasting.and_then(|pace| pace.limit).and_then(|(_, seconds)| seconds),
    }
}

fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Descriptors { .. } => "descriptors",
        Finding::Threads { .. } => "threads",
        Finding::Throughput { .. } => "throughput",
        Finding::Managed { .. } => "managed",
        Finding::Limit { .. } => "limit",
    }
}

fn requests(report: &SoakReport) -> RequestsJson {
    let asked = asked(&report.samples);
    RequestsJson {
        iterations: asked.iterations,
        requests: asked.requests,
        failures: asked.failures.into_iter().collect(),
        generator_busy: asked.generator_busy,
        uncounted: asked.uncounted,
    }
}

impl From<&SeriesRow> for SeriesJson {
    fn from(row: &SeriesRow) -> Self {
        SeriesJson {
            series: row.key,
            unit: match row.unit {
                SeriesUnit::Bytes => "bytes",
                SeriesUnit::Count => "count",
            },
            first: row.first,
            last: row.last,
            per_request: row.per_request.map(|(value, low, high)| IntervalJson { value, low, high }),
            course: row.shape.map(Shape::key),
        }
    }
}

impl<'a> From<&GrowingRow<'a>> for StackJson<'a> {
    fn from(row: &GrowingRow<'a>) -> Self {
        StackJson {
            share: row.share,
            bytes_per_request: row.bytes_per_request,
            blocks_per_request: row.blocks_per_request,
            bytes: row.bytes.into(),
            blocks: row.blocks.into(),
            frames: row.frames.iter().copied().map(FrameJson::from).collect(),
        }
    }
}

impl<'a> From<&'a MappingGrowth> for MappingJson<'a> {
    fn from(growth: &'a MappingGrowth) -> Self {
        let bytes = [growth.before_bytes, growth.after_bytes];
        MappingJson { name: &growth.name, bytes, count: growth.count.into() }
    }
}

impl<'a> From<&'a Comparison> for ComparisonJson<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        ComparisonJson {
            baseline: &comparison.baseline,
            series_list: comparison.series_list.iter().map(ComparedJson::from).collect(),
        }
    }
}

impl From<&Side> for MetricsJson {
    fn from(side: &Side) -> Self {
        let of = |interval: Option<Interval>| {
            // What is no number is written as null, and null here means that it was not measured.
            let sound =
                interval.filter(|one| one.value.is_finite() && one.low.is_finite() && one.high.is_finite());
            sound.map(IntervalJson::from)
        };
        MetricsJson {
            heap_per_request: of(side.heap_per_request),
            resident_per_request: of(side.resident_per_request),
            heap_level: of(side.heap_level),
            resident_level: of(side.resident_level),
            allocations_per_request: of(side.allocations_per_request),
            rate: of(side.rate),
            p99_us: of(side.p99_us),
        }
    }
}

impl From<MetricsJson> for Side {
    fn from(metrics: MetricsJson) -> Self {
        let of = |interval: Option<IntervalJson>| interval.as_ref().map(Interval::from);
        Side {
            heap_per_request: of(metrics.heap_per_request),
            resident_per_request: of(metrics.resident_per_request),
            heap_level: of(metrics.heap_level),
            resident_level: of(metrics.resident_level),
            allocations_per_request: of(metrics.allocations_per_request),
            rate: of(metrics.rate),
            p99_us: of(metrics.p99_us),
        }
    }
}

#[cfg(test)]
#[path = "soak_tests.rs"]
mod tests;

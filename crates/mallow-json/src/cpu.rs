//! The JSON document of `mallow report` of a profile of a processor's time, described by `docs/schema/cpu.json`.

use crate::frame_table::FrameTable;
use crate::functions::{FunctionJson, PeekJson};
use crate::parts::FrameJson;
use crate::spelling::spelled;
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals, Quality};
use mallow_stacks::Metric;
use mallow_view::{
    CpuLayout, CpuOptions, FunctionOrder, Rest, Sites, TreeNode, TreeOptions, cpu_slices, cpu_threads,
    functions, peek, tree,
};
use serde::Serialize;
use std::borrow::Cow;
use std::path::Path;

/// Slices of a time line.
const SLICES: usize = 100;

/// `mallow report --json` of such a profile.
#[derive(Serialize)]
pub struct CpuJson<'a> {
    schema: &'static str,
    file: String,
    format: Cow<'static, str>,
    warnings: &'a [String],
    command: &'a [String],
    event: &'a str,
    frequency_hz: Option<u64>,
    started_unix_ns: u64,
    duration_ns: u64,
    by: Cow<'static, str>,
    totals: MetricsJson,
    quality: Option<QualityJson>,
    processes: Vec<ProcessJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<PartJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<FunctionJson<'a, MetricsJson>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peek: Option<Vec<PeekJson<'a, MetricsJson>>>,
    /// Only in a compact document: what the stacks are made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<FrameTable<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stacks: Option<Vec<StackJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<NodeJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineJson>,
}

/// Which part of the recording the document is about, and the metrics of the whole.
#[derive(Serialize)]
struct PartJson {
    from_us: Option<u64>,
    to_us: Option<u64>,
    filter: Option<String>,
    whole: MetricsJson,
}

/// Null where the source does not tell.
#[derive(Serialize)]
struct MetricsJson {
    samples: Option<u64>,
    time_ns: Option<u64>,
    events: Option<u64>,
    off_cpu_ns: Option<u64>,
    blocked_ns: Option<u64>,
    switches: Option<u64>,
}

#[derive(Serialize)]
struct QualityJson {
    samples: u64,
    lost: u64,
    whole: u64,
    truncated: u64,
    too_deep: u64,
    kernel_only: u64,
    kernel_seen: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_seen_ns: Option<u64>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    name: &'a str,
    program: &'a str,
}

#[derive(Serialize)]
struct StackJson<'a> {
    totals: MetricsJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<FrameJson<'a>>>,
    /// In a compact document: the frames' numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct NodeJson<'a> {
    frames: Vec<FrameJson<'a>>,
    totals: MetricsJson,
    #[serde(rename = "self")]
    own: Option<MetricsJson>,
    children: Vec<NodeJson<'a>>,
    rest: Option<RestJson>,
}

#[derive(Serialize)]
struct RestJson {
    nodes: usize,
    totals: MetricsJson,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    pid: u32,
    tid: u32,
    name: &'a str,
    totals: MetricsJson,
}

#[derive(Serialize)]
struct TimelineJson {
    slice_ns: u64,
    slices: Vec<MetricsJson>,
}

/// Writes metrics of a profile.
#[derive(Clone, Copy)]
struct Available<'a>(&'a CpuProfile);

impl Available<'_> {
    fn metrics(self, totals: &CpuTotals) -> MetricsJson {
        let told = |metric: CpuMetric| self.0.known.knows(metric).then(|| metric.of_site(totals));
        MetricsJson {
            samples: told(CpuMetric::Samples),
            time_ns: told(CpuMetric::Time),
            events: told(CpuMetric::Events),
            off_cpu_ns: told(CpuMetric::OffCpu),
            blocked_ns: told(CpuMetric::Blocked),
            switches: told(CpuMetric::Switches),
        }
    }

    fn node<'a>(self, node: &TreeNode<'a, CpuTotals>) -> NodeJson<'a> {
        let rest =
            |rest: &Rest<CpuTotals>| RestJson { nodes: rest.nodes, totals: self.metrics(&rest.under.totals) };
        NodeJson {
            frames: node.frames.iter().map(|line| FrameJson::from(line.frame)).collect(),
            totals: self.metrics(&node.under.totals),
            own: node.own.map(|own| self.metrics(&own.totals)),
            children: node.children.iter().map(|child| self.node(child)).collect(),
            rest: node.rest.as_ref().map(rest),
        }
    }
}

impl<'a> CpuJson<'a> {
    /// The document: everything, unless a limit was asked for. In a compact one each frame of stacks is written once.
    pub fn of(
        profile: &'a CpuProfile,
        options: &CpuOptions,
        compact: bool,
        file: &Path,
        format: &'static str,
        warnings: &'a [String],
    ) -> Self {
        let (told, by) = (Available(profile), options.by);
        let limit = options.limit.unwrap_or(usize::MAX);
        let of_functions = |order: FunctionOrder| {
            let rows = functions(profile, options.shown, &options.filter, by, order);
            let row = |row| FunctionJson::of(row, |totals| told.metrics(totals));
            rows.iter().take(limit).map(row).collect()
        };
        let mut document = Self {
            schema: "mallow.cpu/2",
            file: file.display().to_string(),
            format: spelled(format),
            warnings,
            command: &profile.recording.command,
            event: &profile.recording.event,
            frequency_hz: profile.recording.frequency_hz,
            started_unix_ns: profile.recording.started_unix_ns,
            duration_ns: profile.recording.duration_ns,
            by: spelled(by.word()),
            totals: told.metrics(&profile.totals()),
            quality: profile.quality.as_ref().map(QualityJson::from),
            processes: profile
                .processes
                .iter()
                .map(|process| ProcessJson {
                    pid: process.pid,
                    name: &process.name,
                    program: &process.program,
                })
                .collect(),
            part: options.part.as_ref().map(|part| PartJson {
                from_us: part.window.map(|window| window.from_us),
                to_us: part.window.map(|window| window.to_us),
                filter: part.filter.clone(),
                whole: told.metrics(&part.whole),
            }),
            functions: None,
            peek: None,
            frames: None,
            stacks: None,
            tree: None,
            threads: None,
            timeline: None,
        };
        match options.layout {
            CpuLayout::Peek(ref wanted) => {
                let peeks = peek(profile, options.shown, &options.filter, wanted, by);
                let peek = |peek| PeekJson::of(peek, |totals| told.metrics(totals));
                document.peek = Some(peeks.iter().map(peek).collect());
            }
            CpuLayout::Functions(order) => document.functions = Some(of_functions(order)),
            CpuLayout::Stacks => {
                let (frames, stacks) = of_stacks(profile, options, compact, limit);
                (document.frames, document.stacks) = (frames, Some(stacks));
            }
            CpuLayout::Tree { direction, threshold_ppm, depth } => {
                let sites = Sites::of(profile, options.shown, &options.filter);
                let (limit, shown) = (limit, options.shown);
                let options = TreeOptions { direction, key: by, threshold_ppm, depth, limit, shown };
                document.tree = Some(told.node(&tree(&sites, &options)));
            }
            CpuLayout::Threads => document.threads = Some(of_threads(profile, by, limit)),
            CpuLayout::Timeline => {
                let slices = cpu_slices(profile, SLICES);
                document.timeline = Some(TimelineJson {
                    slice_ns: profile.recording.duration_ns / SLICES as u64,
                    slices: slices.iter().map(|slice| told.metrics(slice)).collect(),
                });
            }
        }
        document
    }
}

fn of_stacks<'a>(
    profile: &'a CpuProfile,
    options: &CpuOptions,
    compact: bool,
    limit: usize,
) -> (Option<FrameTable<'a>>, Vec<StackJson<'a>>) {
    let mut sites = Sites::of(profile, options.shown, &options.filter);
    sites.sort(options.by);
    sites.rows.retain(|row| options.by.of_site(&row.totals) > 0);
    sites.rows.truncate(limit);
    let stacks = sites.rows.iter().map(|row| row.stack);
    let table = compact.then(|| FrameTable::of(&profile.stacks, stacks));
    let stack = |row: &mallow_view::SiteRow<CpuTotals>| StackJson {
        totals: Available(profile).metrics(&row.totals),
        frames: table.is_none().then(|| sites.frames(row).map(FrameJson::from).collect()),
        stack: table.as_ref().map(|table| table.stack(row.stack).skip(row.folded).collect()),
    };
    let rows = sites.rows.iter().map(stack).collect();
    (table, rows)
}

fn of_threads(profile: &CpuProfile, by: CpuMetric, limit: usize) -> Vec<ThreadJson<'_>> {
    let thread = |row: &mallow_view::ThreadRow| {
        let thread = &profile.threads[row.thread.0 as usize];
        ThreadJson {
            pid: profile.processes[thread.process.0 as usize].pid,
            tid: thread.tid,
            name: &thread.name,
            totals: Available(profile).metrics(&row.totals),
        }
    };
    cpu_threads(profile, by).iter().take(limit).map(thread).collect()
}

impl From<&Quality> for QualityJson {
    fn from(quality: &Quality) -> Self {
        Self {
            samples: quality.samples,
            lost: quality.lost,
            whole: quality.whole,
            truncated: quality.truncated(),
            too_deep: quality.too_deep,
            kernel_only: quality.kernel_only,
            kernel_seen: quality.kernel_seen,
            not_seen_ns: quality.not_seen_ns,
        }
    }
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;

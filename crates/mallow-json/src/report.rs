//! The document of `mallow report`, described by `docs/schema/report.json`.
//!
//! Metrics that the profile's source could not tell are null. Times are in the unit that `time_unit` names.

mod sites;

use crate::functions::{FunctionJson, PeekJson};
use crate::parts::{ExitJson, FrameJson, TotalsJson};
use crate::spelling::spelled;
use mallow_profile::{
    EarlyEnds, Nameless, Process, Profile, RequestTotals, Requested, SiteTotals, TimeUnit, Totals,
};
use mallow_view::{
    FrameVisibility, Layout, Line, Measure, PartOf, Point, ReportOptions, Sites, SortKey, Subject,
    TreeLayout, TreeNode, Under, functions, peek, rate_units, tree,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
pub use sites::SitesJson;
use sites::{FramesJson, RestOfSitesJson};
use std::borrow::Cow;

/// `mallow report --json`.
#[derive(Serialize)]
pub struct ReportJson<'a> {
    schema: &'static str,
    format: Cow<'static, str>,
    command: &'a [String],
    counting_version: u32,
    time_unit: &'static str,
    duration: u64,
    /// How much time a rate is of.
    rate_time: u64,
    complete: bool,
    warnings: &'a [String],
    /// Only where names could not be looked up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<NamelessJson<'a>>,
    /// Only where stacks end too early.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    early_ends: Vec<EarlyEndsJson<'a>>,
    totals: TotalsJson,
    /// Only where all processes tell them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<RequestsJson>,
    /// Only with `--per`.
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<PerJson>,
    /// Only with `--filter` or a window beside a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<PartJson<'a>>,
    /// Only with a filter: the metrics of the sites that passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<MetricsJson>,
    suppressed: SuppressedJson<'a>,
    processes: Vec<ProcessJson<'a>>,
    /// Only in a compact document: what the sites' stacks are made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<FramesJson<'a>>,
    sites: SitesJson<'a>,
    /// Only with `--top`: the sites beyond.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<RestOfSitesJson>,
    /// Only with `--tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<TreeJson<'a>>,
    /// Only with `--functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<FunctionJson<'a, MetricsJson>>>,
    /// Only with `--peek`.
    #[serde(skip_serializing_if = "Option::is_none")]
    peek: Option<Vec<PeekJson<'a, MetricsJson>>>,
}

/// A module whose names could not be looked up.
#[derive(Serialize)]
struct NamelessJson<'a> {
    module: &'a str,
    reason: &'a str,
}

impl<'a> NamelessJson<'a> {
    fn of(nameless: &'a Nameless) -> Self {
        Self { module: &nameless.module, reason: &nameless.reason }
    }
}

/// A module in which stacks end too early.
#[derive(Serialize)]
struct EarlyEndsJson<'a> {
    module: &'a str,
    allocations: u64,
    or_more: bool,
}

impl<'a> EarlyEndsJson<'a> {
    fn of(ends: &'a EarlyEnds) -> Self {
        Self { module: &ends.module, allocations: ends.allocations, or_more: ends.or_more }
    }
}

/// Which part of the recording the document is about, and the metrics of the whole.
#[derive(Serialize)]
struct PartJson<'a> {
    from: Option<u64>,
    to: Option<u64>,
    filter: Option<&'a str>,
    whole: WholeJson,
}

#[derive(Serialize)]
struct WholeJson {
    allocations: Option<u64>,
    bytes: Option<u64>,
    temporary: Option<u64>,
    peak_bytes: Option<u64>,
    leaked_bytes: Option<u64>,
}

/// Totals per operation.
#[derive(Serialize)]
struct PerJson {
    operations: u64,
    per_operation: PerOperationJson,
}

/// Metrics divided by the number of operations.
#[derive(Serialize)]
struct PerOperationJson {
    allocations: Option<f64>,
    bytes: Option<f64>,
    temporary: Option<f64>,
    leaked_bytes: Option<f64>,
    leaked_blocks: Option<f64>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    command: &'a str,
    exit: Option<ExitJson>,
    totals: TotalsJson,
}

/// What a site counts.
#[derive(Serialize)]
struct MetricsJson {
    allocations: Option<u64>,
    bytes: Option<u64>,
    reallocations: Option<u64>,
    temporary: Option<u64>,
    failed: Option<u64>,
    peak_bytes: Option<u64>,
    peak_blocks: Option<u64>,
    leaked_bytes: Option<u64>,
    leaked_blocks: Option<u64>,
    live_bytes_max: Option<u64>,
    live_blocks_at_max: Option<u64>,
    size_average: Option<f64>,
    lifetime_average: Option<f64>,
    lifetime_share: Option<f64>,
    allocations_rate: Option<f64>,
    bytes_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_bytes: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_operation: Option<PerOperationJson>,
}

/// The allocations that wanted more than a size.
#[derive(Serialize)]
struct RequestsJson {
    zeroed: RequestedJson,
    aligned: RequestedJson,
}

#[derive(Serialize)]
struct RequestedJson {
    allocations: u64,
    bytes: u64,
}

impl RequestsJson {
    fn of(totals: RequestTotals) -> RequestsJson {
        let of = |Requested { allocations, bytes }| RequestedJson { allocations, bytes };
        RequestsJson { zeroed: of(totals.zeroed), aligned: of(totals.aligned) }
    }
}

/// What suppressions took from the leaked metrics of sites. The totals still have it.
#[derive(Serialize)]
struct SuppressedJson<'a> {
    sites: usize,
    leaked_bytes: u64,
    leaked_blocks: u64,
    patterns: Vec<PatternJson<'a>>,
}

#[derive(Serialize)]
struct PatternJson<'a> {
    pattern: &'a str,
    file: &'a str,
    line: usize,
    embedded: bool,
    built_in: bool,
    sites: usize,
    leaked_bytes: u64,
    leaked_blocks: u64,
}

#[derive(Serialize)]
struct TreeJson<'a> {
    direction: &'static str,
    sort: Cow<'static, str>,
    /// A part of the whole, 0 to 1.
    threshold: f64,
    root: RootJson<'a>,
}

struct RootJson<'a> {
    of: Metrics<'a>,
    node: TreeNode<'a>,
}

/// How metrics of sites become JSON.
#[derive(Clone, Copy)]
struct Metrics<'a> {
    profile: &'a Profile,
    per: Option<u64>,
}

impl<'a> ReportJson<'a> {
    /// The document. In a compact one each frame is written once.
    pub fn of(
        subject: &Subject<'a>,
        view: &ReportOptions,
        compact: bool,
        complete: bool,
        warnings: &'a [String],
    ) -> Self {
        let profile = subject.profile;
        let (recording, totals) = (&profile.recording, profile.totals());
        let of = Metrics { profile, per: view.per };
        let mut sites = Sites::of(profile, FrameVisibility::All, &view.filter);
        sites.sort(view.layout.key().unwrap_or(SortKey::Measure(Measure::Bytes)));
        let selected = (!view.filter.is_empty()).then(|| of.metrics(&sites.totals()));
        let (sites, rest) = SitesJson::of(of, sites, view.limit.unwrap_or(usize::MAX), compact);
        Self {
            schema: "mallow.report/2",
            format: spelled(subject.origin.word),
            command: &recording.command,
            counting_version: recording.counting_version,
            time_unit: match recording.time_unit {
                TimeUnit::Microseconds => "microseconds",
                TimeUnit::Instructions => "instructions",
                TimeUnit::Bytes => "bytes",
            },
            duration: recording.duration_us,
            rate_time: rate_units(recording.time_unit),
            complete,
            warnings,
            names: recording.nameless.iter().map(NamelessJson::of).collect(),
            early_ends: recording.early_ends.iter().map(EarlyEndsJson::of).collect(),
            totals: TotalsJson::told(&totals, profile),
            requests: profile.request_totals().map(RequestsJson::of),
            per: view.per.map(|per| PerJson { operations: per, per_operation: of.totals_per(&totals, per) }),
            part: subject.part.map(|part| of.part(part)),
            selected,
            suppressed: SuppressedJson::of(subject, view),
            processes: profile.processes.iter().map(|process| ProcessJson::of(process, profile)).collect(),
            frames: sites.table(),
            sites,
            rest,
            tree: match view.layout {
                Layout::Tree(tree) => Some(TreeJson::of(of, view, tree)),
                _ => None,
            },
            functions: match view.layout {
                Layout::Functions(by, order) => {
                    let rows = functions(profile, view.shown, &view.filter, by, order);
                    let rows = rows.iter().take(view.limit.unwrap_or(usize::MAX));
                    Some(rows.map(|row| FunctionJson::of(row, |totals| of.metrics(totals))).collect())
                }
                _ => None,
            },
            peek: match &view.layout {
                Layout::Peek(by, wanted) => {
                    let peeks = peek(profile, view.shown, &view.filter, wanted, *by);
                    Some(peeks.iter().map(|peek| PeekJson::of(peek, |totals| of.metrics(totals))).collect())
                }
                _ => None,
            },
        }
    }
}

impl<'a> ReportJson<'a> {
    /// Takes the sites out, which are most of a document, to be written one by one.
    pub fn take_sites(&mut self) -> SitesJson<'a> {
        self.sites.take()
    }

    /// How many frames the sites' stacks are written with.
    pub fn frames_written(&self) -> u64 {
        self.sites.frames_written()
    }
}

impl<'a> TreeJson<'a> {
    fn of(of: Metrics<'a>, view: &ReportOptions, asked: TreeLayout) -> Self {
        let sites = Sites::of(of.profile, view.shown, &view.filter);
        let node = tree(&sites, &view.tree_options(asked));
        Self {
            direction: asked.direction.word(),
            sort: spelled(asked.key.word()),
            threshold: f64::from(asked.threshold_ppm) / 1e6,
            root: RootJson { of, node },
        }
    }
}

impl<'a> SuppressedJson<'a> {
    fn of(subject: &Subject<'a>, view: &ReportOptions) -> Self {
        let found = subject.suppressed(&ReportOptions { shown: FrameVisibility::All, ..view.clone() });
        // Of those that are built in, what fits nothing is no news.
        let patterns = subject.suppressions.suppressions.iter().zip(&found.by).enumerate();
        let patterns = patterns.filter(|(_, (one, by))| one.known.is_none() || by.sites > 0);
        let pattern =
            |(index, (one, by)): (usize, (&'a mallow_profile::Suppression, &mallow_view::SuppressedBy))| {
                let source = subject.suppressions.source(index);
                PatternJson {
                    pattern: &one.pattern,
                    file: source.map_or("", |source| &source.path),
                    line: one.line,
                    embedded: source.is_some_and(|source| source.is_embedded),
                    built_in: source.is_some_and(|source| source.is_built_in),
                    sites: by.sites,
                    leaked_bytes: by.bytes,
                    leaked_blocks: by.blocks,
                }
            };
        Self {
            sites: found.sites,
            leaked_bytes: found.bytes,
            leaked_blocks: found.blocks,
            patterns: patterns.map(pattern).collect(),
        }
    }
}

impl<'a> ProcessJson<'a> {
    fn of(process: &'a Process, profile: &Profile) -> Self {
        Self {
            pid: process.pid,
            command: &process.command,
            exit: process.exit.map(ExitJson::from),
            totals: TotalsJson::told(&process.totals, profile),
        }
    }
}

impl Metrics<'_> {
    fn part<'p>(&self, part: &'p PartOf) -> PartJson<'p> {
        let told =
            |measure: Measure| measure.is_known(&self.profile.known).then(|| measure.of_site(&part.whole));
        PartJson {
            from: part.window.map(|window| window.from_us),
            to: part.window.map(|window| window.to_us),
            filter: part.filter.as_deref(),
            whole: WholeJson {
                allocations: told(Measure::Allocations),
                bytes: told(Measure::Bytes),
                temporary: told(Measure::Temporary),
                peak_bytes: told(Measure::Peak),
                leaked_bytes: told(Measure::Leaked),
            },
        }
    }

    fn metrics(&self, totals: &SiteTotals) -> MetricsJson {
        let known = &self.profile.known;
        let point = Point::of(totals, &self.profile.recording, known);
        let told = |key: SortKey| key.is_known(known).then(|| key.of_site(totals));
        let called = totals.allocations > 0;
        MetricsJson {
            allocations: told(Measure::Allocations.into()),
            bytes: told(Measure::Bytes.into()),
            reallocations: told(SortKey::Reallocations),
            temporary: told(Measure::Temporary.into()),
            failed: known.calls.then_some(totals.failed),
            peak_bytes: told(Measure::Peak.into()),
            peak_blocks: told(SortKey::PeakBlocks),
            leaked_bytes: told(Measure::Leaked.into()),
            leaked_blocks: told(SortKey::LeakedBlocks),
            live_bytes_max: told(SortKey::Max),
            live_blocks_at_max: told(SortKey::MaxBlocks),
            size_average: point.size,
            lifetime_average: point.lifetime,
            lifetime_share: point.lifetime_share,
            allocations_rate: point.allocations_rate,
            bytes_rate: point.bytes_rate,
            read_bytes: told(SortKey::Reads),
            written_bytes: told(SortKey::Writes),
            first: (known.times && called).then_some(totals.first_us),
            last: (known.times && called).then_some(totals.last_us),
            per_operation: self.per.map(|per| self.site_per(totals, per)),
        }
    }

    fn site_per(&self, totals: &SiteTotals, per: u64) -> PerOperationJson {
        self.per_operation(|measure| measure.of_site(totals), totals.leaked_blocks, per)
    }

    fn totals_per(&self, totals: &Totals, per: u64) -> PerOperationJson {
        self.per_operation(|measure| measure.of_totals(totals), totals.leaked_blocks, per)
    }

    fn per_operation(&self, of: impl Fn(Measure) -> u64, blocks: u64, per: u64) -> PerOperationJson {
        let known = &self.profile.known;
        let each = |value: u64| value as f64 / per as f64;
        let divided = |measure: Measure| measure.is_known(known).then(|| each(of(measure)));
        PerOperationJson {
            allocations: divided(Measure::Allocations),
            bytes: divided(Measure::Bytes),
            temporary: divided(Measure::Temporary),
            leaked_bytes: divided(Measure::Leaked),
            leaked_blocks: known.leaked_blocks.then(|| each(blocks)),
        }
    }
}

impl Serialize for RootJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        NodeJson { of: self.of, node: &self.node }.serialize(serializer)
    }
}

struct NodeJson<'n, 'a> {
    of: Metrics<'a>,
    node: &'n TreeNode<'a>,
}

#[derive(Serialize)]
struct UnderJson {
    sites: usize,
    #[serde(rename = "figures")]
    metrics: MetricsJson,
}

#[derive(Serialize)]
struct RestJson {
    branches: usize,
    deeper: bool,
    sites: usize,
    #[serde(rename = "figures")]
    metrics: MetricsJson,
}

/// A call in a tree: a frame, and how often it stands there in a row.
#[derive(Serialize)]
struct CallJson<'a> {
    #[serde(flatten)]
    frame: FrameJson<'a>,
    times: usize,
}

impl Serialize for NodeJson<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of, node } = self;
        let under = |under: &Under| UnderJson { sites: under.sites, metrics: of.metrics(&under.totals) };
        let call =
            |line: &Line<'_>| serde_json::to_value(CallJson { frame: line.frame.into(), times: line.times });
        let calls: Result<Vec<_>, _> = node.frames.iter().map(call).collect();
        let rest = node.rest.map(|rest| RestJson {
            branches: rest.nodes,
            deeper: rest.is_deeper,
            sites: rest.under.sites,
            metrics: of.metrics(&rest.under.totals),
        });
        let children: Vec<_> = node.children.iter().map(|node| NodeJson { of: *of, node }).collect();
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("calls", &calls.map_err(serde::ser::Error::custom)?)?;
        map.serialize_entry("sites", &node.under.sites)?;
        map.serialize_entry("figures", &of.metrics(&node.under.totals))?;
        map.serialize_entry("own", &node.own.as_ref().map(under))?;
        map.serialize_entry("rest", &rest)?;
        map.serialize_entry("children", &children)?;
        map.end()
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(crate) mod tests;

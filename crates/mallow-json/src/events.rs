//! What events tell, as JSON: the optional parts of `mallow.report/2`.

use crate::parts::FrameJson;
use crate::report::ReportJson;
use mallow_base::mirror;
use mallow_profile::Profile;
use mallow_profile::analysis::{Bucket, ChainTotals, Growth, Slice, ThreadMetrics, WindowMetrics};
use mallow_view::histogram::HistogramRow;
use mallow_view::leaks::{LeakMetrics, Leaks};
use mallow_view::short_lived::{ShortLived, ShortLivedMetrics};
use mallow_view::timeline::SiteOverTime;
use mallow_view::{EventReport, PlaceRow, ProcessTimeline, TimelineRows};
use serde::Serialize;
use std::io::{self, Write};

/// A report with what events tell.
#[derive(Serialize)]
pub struct WithEvents<'a> {
    #[serde(flatten)]
    /// The report.
    pub report: ReportJson<'a>,
    #[serde(flatten)]
    /// Its events.
    pub events: EventsJson<'a>,
}

impl WithEvents<'_> {
    /// Writes it in one line. Of all documents this is the one of many megabytes, so it is made into text here, in optimised code, also where the
    /// command that prints it is not optimised.
    pub fn write_line(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

/// The parts that were asked for.
#[derive(Default, Serialize)]
pub struct EventsJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<HistogramJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    realloc_chains: Option<ChainsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temporary_within: Option<ShortLivedJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    short_lived: Option<ShortLivedJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaks: Option<LeaksJson<'a>>,
}

#[derive(Serialize)]
struct TimelineJson<'a> {
    pid: u32,
    start_us: u64,
    end_us: u64,
    peak_us: Option<u64>,
    peak_bytes: Option<u64>,
    slices: Vec<SliceJson>,
    sites: Vec<SiteJson<'a, OverTimeJson>>,
}

/// A slice; what the source could not tell is null.
#[derive(Default, Serialize)]
struct SliceJson {
    start_us: u64,
    #[serde(flatten)]
    metrics: SliceMetricsJson,
    rss_bytes: Option<u64>,
}

mirror! {
    #[derive(Default)]
    struct SliceMetricsJson of Slice {
        live_bytes: Option<u64>,
        live_blocks: Option<u64>,
        live_bytes_max: Option<u64>,
        live_blocks_max: Option<u64>,
        allocations: Option<u64>,
        bytes: Option<u64>,
        frees: Option<u64>,
    }
}

mirror! {
    struct OverTimeJson of SiteOverTime { peak_bytes: u64, live_bytes: Vec<u64> }
}

/// A site with metrics of its own.
#[derive(Serialize)]
struct SiteJson<'a, T> {
    #[serde(flatten)]
    metrics: T,
    frames: Vec<FrameJson<'a>>,
}

#[derive(Serialize)]
struct WindowJson<'a> {
    from_us: u64,
    to_us: u64,
    totals: WindowMetricsJson,
    sites: Vec<SiteJson<'a, WindowMetricsJson>>,
}

mirror! {
    struct WindowMetricsJson of WindowMetrics {
        allocations: u64,
        bytes: u64,
        frees: u64,
        freed_bytes: u64,
        live_blocks: u64,
        live_bytes: u64,
        kept_blocks: u64,
        kept_bytes: u64,
    }
}

#[derive(Serialize)]
struct HistogramJson {
    sizes: Vec<BucketJson>,
    /// Null where lifetimes are not told.
    lifetimes_us: Option<Vec<BucketJson>>,
    never_freed_blocks: u64,
    never_freed_bytes: u64,
}

#[derive(Serialize)]
struct BucketJson {
    least: u64,
    greatest: u64,
    blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    pid: u32,
    tid: u32,
    name: &'a str,
    #[serde(flatten)]
    metrics: ThreadMetricsJson,
}

mirror! {
    struct ThreadMetricsJson of ThreadMetrics {
        allocations: u64,
        bytes: u64,
        frees: u64,
        frees_of_others: u64,
        freed_by_others: u64,
        temporary: u64,
        live_blocks: u64,
        live_bytes: u64,
    }
}

#[derive(Serialize)]
struct ChainsJson<'a> {
    totals: ChainMetricsJson,
    sites: Vec<SiteJson<'a, ChainMetricsJson>>,
}

mirror! {
    struct ChainMetricsJson of ChainTotals {
        chains: u64,
        reallocations: u64,
        longest: u64,
        copied_bytes_max: u64,
        largest_growth: GrowthJson,
    }
}

mirror! {
    struct GrowthJson of Growth { first_bytes: u64, last_bytes: u64, reallocations: u64 }
}

#[derive(Serialize)]
struct ShortLivedJson<'a> {
    /// Further allocations of the thread, or microseconds.
    limit: u64,
    blocks: u64,
    bytes: u64,
    sites: Vec<SiteJson<'a, ShortLivedMetricsJson>>,
}

mirror! {
    struct ShortLivedMetricsJson of ShortLivedMetrics { blocks: u64, bytes: u64, allocations: u64 }
}

#[derive(Serialize)]
struct LeaksJson<'a> {
    leaked: Vec<SiteJson<'a, LeakJson>>,
    freed_at_end: Vec<SiteJson<'a, LeakJson>>,
}

#[derive(Serialize)]
struct LeakJson {
    #[serde(rename = "judgement")]
    conclusion: Option<&'static str>,
    leaked_bytes: u64,
    leaked_blocks: u64,
    freed_at_end_bytes: u64,
    first_us: u64,
    last_us: u64,
}

impl<'a> EventsJson<'a> {
    /// The document's parts, at most `limit` sites in each.
    pub fn of(shows: EventReport<'a>, limit: usize) -> Self {
        let profile = shows.profile;
        let duration_us = profile.recording.duration_us;
        let short_lived = |(within, found): (u64, ShortLived)| ShortLivedJson {
            limit: within,
            blocks: found.blocks,
            bytes: found.bytes,
            sites: sites(profile, &found.rows, limit),
        };
        let buckets = |rows: &[HistogramRow]| rows.iter().map(BucketJson::from).collect();
        let (from_us, to_us) =
            shows.window.map_or((0, duration_us), |window| (window.from_us, window.to_us.min(duration_us)));
        EventsJson {
            timeline: shows.timeline.map(|found| TimelineJson::of(profile, &found, limit)),
            window: shows.window_sites.map(|found| WindowJson {
                from_us,
                to_us,
                totals: (&found.totals).into(),
                sites: sites(profile, &found.rows, limit),
            }),
            histogram: shows.histograms.map(|found| HistogramJson {
                sizes: buckets(&found.sizes),
                lifetimes_us: found.has_lifetimes.then(|| buckets(&found.lifetimes)),
                never_freed_blocks: found.never_freed.blocks,
                never_freed_bytes: found.never_freed.bytes,
            }),
            threads: shows.threads.map(|found| {
                let row = |row: &mallow_view::threads::ThreadRow<'a>| ThreadJson {
                    pid: row.pid,
                    tid: row.tid,
                    name: row.name,
                    metrics: (&row.metrics).into(),
                };
                found.rows.iter().map(row).collect()
            }),
            realloc_chains: shows.chains.map(|found| ChainsJson {
                totals: (&found.totals).into(),
                sites: sites(profile, &found.rows, limit),
            }),
            temporary_within: shows.temporary.map(short_lived),
            short_lived: shows.short_lived.map(short_lived),
            leaks: None,
        }
    }

    /// Only the verdicts on leaks.
    pub fn of_leaks(profile: &'a Profile, leaks: &Leaks, limit: usize) -> Self {
        let leaks = LeaksJson {
            leaked: sites(profile, &leaks.leaked, limit),
            freed_at_end: sites(profile, &leaks.freed_at_end, limit),
        };
        EventsJson { leaks: Some(leaks), ..EventsJson::default() }
    }
}

fn sites<'a, F, T: for<'f> From<&'f F>>(
    profile: &'a Profile,
    rows: &[PlaceRow<F>],
    limit: usize,
) -> Vec<SiteJson<'a, T>> {
    let site = |row: &PlaceRow<F>| SiteJson {
        metrics: T::from(&row.metrics),
        frames: row.frames(profile).map(FrameJson::from).collect(),
    };
    rows.iter().take(limit).map(site).collect()
}

impl<'a> TimelineJson<'a> {
    fn of(profile: &'a Profile, found: &ProcessTimeline<'a>, limit: usize) -> Self {
        let pid = found.process.pid;
        match &found.rows {
            TimelineRows::Events(lines) => {
                let slices = lines.slices.iter().zip(&lines.rss_bytes).enumerate();
                let slice = |(at, (slice, rss)): (usize, (&Slice, &Option<u64>))| SliceJson {
                    start_us: lines.time.begin_us(at),
                    metrics: slice.into(),
                    rss_bytes: *rss,
                };
                TimelineJson {
                    pid,
                    start_us: lines.time.start_us(),
                    end_us: lines.time.begin_us(lines.time.count()),
                    peak_us: Some(lines.peak_us),
                    peak_bytes: Some(lines.peak_bytes),
                    slices: slices.map(slice).collect(),
                    sites: sites(profile, &lines.rows, limit),
                }
            }
            TimelineRows::Samples { time, live } => TimelineJson {
                pid,
                start_us: time.start_us(),
                end_us: time.begin_us(time.count()),
                peak_us: None,
                peak_bytes: None,
                slices: (live.iter().enumerate())
                    .map(|(at, sample)| {
                        let live_bytes_max = sample.map(|sample| sample.live_bytes);
                        let metrics = SliceMetricsJson { live_bytes_max, ..SliceMetricsJson::default() };
                        SliceJson { start_us: time.begin_us(at), metrics, rss_bytes: None }
                    })
                    .collect(),
                sites: Vec::new(),
            },
        }
    }
}

impl From<&HistogramRow> for BucketJson {
    fn from(row: &HistogramRow) -> Self {
        let Bucket { blocks, bytes } = row.bucket;
        Self { least: row.least, greatest: row.greatest, blocks, bytes }
    }
}

impl From<&LeakMetrics> for LeakJson {
    fn from(metrics: &LeakMetrics) -> Self {
        Self {
            conclusion: metrics.verdict.map(mallow_profile::analysis::Verdict::word),
            leaked_bytes: metrics.leaked_bytes,
            leaked_blocks: metrics.leaked_blocks,
            freed_at_end_bytes: metrics.freed_at_end_bytes,
            first_us: metrics.first_us,
            last_us: metrics.last_us,
        }
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

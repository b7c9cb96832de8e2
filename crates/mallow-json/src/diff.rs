//! The JSON document of `mallow diff`, described by `docs/schema/diff.json`.
//!
//! All metrics are whole: `per` is only told, since a division would lose digits.

use crate::parts::FrameJson;
use crate::spelling::spelled;
use mallow_cpu::CpuProfile;
use mallow_profile::Profile;
use mallow_stacks::{Level, Metric, MetricOf, Rename, StackProfile};
use mallow_stats::Proportion;
use mallow_view::diff::{Change, DiffInput, DiffReport, DiffRow, DiffSide, ShareVerdict, Stats, Verdict};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// `mallow diff --json`.
#[derive(Serialize)]
pub struct DiffJson<'a> {
    schema: &'static str,
    before: ProfileJson<'a>,
    after: ProfileJson<'a>,
    by: Cow<'static, str>,
    per: u64,
    totals: MetricsJson,
    /// Measures that one of the files does not tell.
    left_out: Vec<Cow<'static, str>>,
    limits: Vec<LimitJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Vec<ShareJson>>,
    renames: Vec<RenameJson<'a>>,
    sites: Vec<RowJson<'a>>,
    hidden: StatsJson,
    not_shown: StatsJson,
    unchanged: StatsJson,
}

#[derive(Serialize)]
struct ProfileJson<'a> {
    file: String,
    command: &'a [String],
    /// Of what allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    counting_version: Option<u32>,
    complete: bool,
    warnings: &'a [String],
}

/// Both sides of the measures that both files tell, by their words; null where one of them does not.
struct MetricsJson(Vec<(Cow<'static, str>, Option<ChangeJson>)>);

impl Serialize for MetricsJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(word, change)| (word, change)))
    }
}

#[derive(Clone, Copy, Serialize)]
struct ChangeJson {
    before: u64,
    after: u64,
    difference: i128,
}

#[derive(Serialize)]
struct LimitJson {
    limit: String,
    measure: Cow<'static, str>,
    broken: Option<bool>,
    #[serde(flatten)]
    change: ChangeJson,
}

#[derive(Serialize)]
struct ShareJson {
    limit: String,
    function: String,
    column: &'static str,
    broken: Option<bool>,
    before: SampledJson,
    after: SampledJson,
    least: Option<f64>,
    most: Option<f64>,
}

#[derive(Serialize)]
struct SampledJson {
    samples: u64,
    of: u64,
}

#[derive(Serialize)]
struct RenameJson<'a> {
    before: &'a str,
    after: &'a str,
}

#[derive(Serialize)]
struct RowJson<'a> {
    section: &'static str,
    /// How the two sides were matched; null for what only one side has.
    matched: Option<&'static str>,
    /// How alike similar stacks are.
    #[serde(skip_serializing_if = "Option::is_none")]
    alike_percent: Option<u8>,
    renames: &'a [usize],
    #[serde(rename = "figures")]
    metrics: MetricsJson,
    before: Option<SideJson<'a>>,
    after: Option<SideJson<'a>>,
}

/// One side of a site: how many stacks it is, and the heaviest of them.
#[derive(Serialize)]
struct SideJson<'a> {
    stacks: usize,
    frames: Vec<FrameJson<'a>>,
}

#[derive(Serialize)]
struct StatsJson {
    sites: usize,
    #[serde(flatten)]
    change: ChangeJson,
}

/// A profile whose differences are written.
pub trait Diffed: StackProfile {
    /// The document's schema.
    const SCHEMA: &'static str;

    /// Whether a function has a share of its samples, on which there may be limits.
    const HAS_SHARES: bool;

    /// By which rules it was counted, where there are several.
    fn counting_version(&self) -> Option<u32>;
}

impl Diffed for Profile {
    const SCHEMA: &'static str = "mallow.diff/1";
    const HAS_SHARES: bool = false;

    fn counting_version(&self) -> Option<u32> {
        Some(self.recording.counting_version)
    }
}

impl Diffed for CpuProfile {
    const SCHEMA: &'static str = "mallow.cpu-diff/2";
    const HAS_SHARES: bool = true;

    fn counting_version(&self) -> Option<u32> {
        None
    }
}

impl<'a> DiffJson<'a> {
    /// The document of a comparison; at most so many sites of each section as asked for.
    pub fn of<P: Diffed>(diff: &DiffReport<'a, P>) -> Self {
        let comparison = diff.comparison;
        let known: Vec<MetricOf<P>> = comparison.totals.iter().map(|(measure, _)| *measure).collect();
        let (mut sites, mut not_shown) = (Vec::new(), Stats::default());
        for section in mallow_view::diff::Section::SHOWN {
            for (at, row) in comparison.section(section).enumerate() {
                if at < diff.limit.unwrap_or(usize::MAX) {
                    sites.push(RowJson::of(row, diff, &known));
                } else {
                    not_shown.add(row.change(comparison.by));
                }
            }
        }
        let rename = |rename: &'a Rename| RenameJson { before: &rename.before, after: &rename.after };
        Self {
            schema: P::SCHEMA,
            before: ProfileJson::of(&diff.sides[0]),
            after: ProfileJson::of(&diff.sides[1]),
            by: spelled(comparison.by.word()),
            per: diff.per.get(),
            totals: MetricsJson::of(&known, |measure| comparison.total(measure).unwrap_or_default()),
            left_out: comparison.unknown.iter().map(|unknown| spelled(unknown.measure.word())).collect(),
            limits: diff.verdicts.iter().map(LimitJson::from).collect(),
            shares: P::HAS_SHARES.then(|| diff.shares.iter().map(ShareJson::from).collect()),
            renames: comparison.renames.iter().map(rename).collect(),
            sites,
            hidden: comparison.hidden.into(),
            not_shown: not_shown.into(),
            unchanged: comparison.unchanged.into(),
        }
    }
}

impl<'a> ProfileJson<'a> {
    fn of<P: Diffed>(side: &DiffInput<'a, P>) -> Self {
        Self {
            file: side.file.display().to_string(),
            command: side.profile.command(),
            counting_version: side.profile.counting_version(),
            complete: side.complete,
            warnings: side.warnings,
        }
    }
}

impl MetricsJson {
    fn of<M: Metric>(known: &[M], change: impl Fn(M) -> Change) -> Self {
        let metric =
            |measure: &M| (spelled(measure.word()), known.contains(measure).then(|| change(*measure).into()));
        Self(M::ALL.iter().map(metric).collect())
    }
}

impl<'a> RowJson<'a> {
    fn of<P: Diffed>(
        row: &'a DiffRow<'a, P::Weights>,
        diff: &DiffReport<'a, P>,
        known: &[MetricOf<P>],
    ) -> Self {
        let is_matched = row.before.is_some() && row.after.is_some();
        let change = |measure| row.change(measure);
        Self {
            section: row.section.word(),
            matched: is_matched.then(|| matched(row.level)),
            alike_percent: match row.level {
                Level::Similar(percent) if is_matched => Some(percent),
                _ => None,
            },
            renames: &row.renames,
            metrics: MetricsJson::of(known, change),
            before: row.before.as_ref().map(|side| SideJson::of(side, diff.sides[0].profile)),
            after: row.after.as_ref().map(|side| SideJson::of(side, diff.sides[1].profile)),
        }
    }
}

impl<'a> SideJson<'a> {
    fn of<P: StackProfile>(side: &DiffSide<'_, P::Weights>, profile: &'a P) -> Self {
        Self {
            stacks: side.stacks,
            frames: profile.stacks().frames(side.stack).map(FrameJson::from).collect(),
        }
    }
}

fn matched(level: Level) -> &'static str {
    match level {
        Level::Same => "same",
        Level::Lines => "lines",
        Level::Files => "files",
        Level::Inlining => "inlining",
        Level::Renamed => "renamed",
        Level::Frames => "frames",
        Level::Similar(_) => "similar",
    }
}

impl From<Change> for ChangeJson {
    fn from(change: Change) -> Self {
        Self { before: change.before, after: change.after, difference: change.difference() }
    }
}

impl From<Stats> for StatsJson {
    fn from(stats: Stats) -> Self {
        Self { sites: stats.sites, change: stats.change.into() }
    }
}

impl From<&ShareVerdict> for ShareJson {
    fn from(verdict: &ShareVerdict) -> Self {
        let side = |side: Proportion| SampledJson { samples: side.part, of: side.whole };
        Self {
            limit: verdict.limit.to_string(),
            function: verdict.limit.function.clone(),
            column: verdict.limit.word(),
            broken: verdict.is_broken,
            before: side(verdict.samples[0]),
            after: side(verdict.samples[1]),
            least: verdict.interval.map(|interval| interval.0),
            most: verdict.interval.map(|interval| interval.1),
        }
    }
}

impl<M: Metric> From<&Verdict<M>> for LimitJson {
    fn from(verdict: &Verdict<M>) -> Self {
        Self {
            limit: verdict.limit.to_string(),
            measure: spelled(verdict.limit.measure.word()),
            broken: verdict.is_broken,
            change: verdict.change.into(),
        }
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

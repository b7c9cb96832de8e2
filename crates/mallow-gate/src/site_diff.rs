//! Which sites changed since the baseline, whatever lines and names did meanwhile.

mod nearest;

use crate::baseline::{Baseline, kept_stack};
use crate::blame::{self, Before};
use crate::measurement::{Metric, Metrics, Run, Site};
use crate::result::SiteChange;
use mallow_base::Frame;
use mallow_profile::{Diff, DiffEntry, DiffSite, Level, Measure, SiteTotals};
use std::cmp::Reverse;

/// Returns whether both a baseline and a measurement have this metric of a site.
fn is_known(measure: Measure) -> bool {
    matches!(measure, Measure::Allocations | Measure::Bytes | Measure::Leaked)
}

/// The sites whose metrics changed, those with the largest change of `focus` first.
pub fn changes(baseline: &Baseline, run: &Run, focus: Metric) -> Vec<SiteChange> {
    // Both sides as a baseline keeps them, so that a path that it shortens is not a difference.
    let now: Vec<Vec<Frame>> = run.sites.iter().map(|site| kept_stack(&site.frames)).collect();
    let before: Vec<DiffSite<'_>> = baseline.sites.iter().map(|site| diff_site(&site.frames, site)).collect();
    let after: Vec<DiffSite<'_>> =
        now.iter().zip(&run.sites).map(|(frames, site)| diff_site(frames, site)).collect();
    let mut diff = Diff::of(&before, &after, is_known, &[]);
    nearest::by_lines(&mut diff.entries, &baseline.sites, &now);
    let known = known_before(&diff, baseline, run);
    // Metrics that the baseline does not have count as unchanged.
    let knows_temporary = baseline.spread(Metric::Temporary).is_some();
    let as_told = |site: &Site| {
        let temporary = site.metrics.temporary.filter(|_| knows_temporary);
        Site { frames: site.frames.clone(), metrics: Metrics { temporary, ..site.metrics } }
    };
    let told: Vec<Site> = run.sites.iter().map(as_told).collect();
    let mut changes: Vec<SiteChange> = diff
        .entries
        .iter()
        .map(|entry| change(entry, &baseline.sites, &told, &known))
        .filter(|change| change.before != change.after && !is_unknown_before(change, baseline))
        .collect();
    changes
        .sort_by_key(|change| (Reverse(weight(change, focus)), Reverse(weight(change, Metric::Allocations))));
    changes
}

/// The sites of a run that left blocks or descriptors, the largest first.
pub fn left(run: &Run) -> Vec<Site> {
    let is_left = |site: &&Site| site.metrics.remaining_blocks > 0 || site.metrics.descriptors > 0;
    let mut sites: Vec<Site> = run.sites.iter().filter(is_left).cloned().collect();
    sites.sort_by_key(|site| {
        let metrics = &site.metrics;
        Reverse((metrics.remaining_blocks.saturating_add(metrics.descriptors), metrics.remaining_bytes))
    });
    sites
}

fn diff_site<'a>(frames: &'a [Frame], site: &Site) -> DiffSite<'a> {
    let Metrics { allocations, bytes, remaining_blocks, remaining_bytes, .. } = site.metrics;
    let totals = SiteTotals {
        allocations,
        bytes,
        leaked_blocks: remaining_blocks,
        leaked_bytes: remaining_bytes,
        ..SiteTotals::default()
    };
    DiffSite { frames: frames.iter().collect(), totals }
}

/// The stacks that the baseline has: those of this build, where it has them still.
fn known_before<'a>(diff: &Diff, baseline: &'a Baseline, run: &'a Run) -> Before<'a> {
    let is_kept = |entry: &&DiffEntry| is_exact(entry) && !entry.before.is_empty() && !entry.after.is_empty();
    let kept = diff.entries.iter().filter(is_kept).flat_map(|entry| entry.after.iter().copied());
    let gone = diff.entries.iter().filter(|entry| !is_kept(entry));
    let gone = gone.flat_map(|entry| entry.before.iter().copied());
    Before { kept: blame::stacks(&run.sites, kept), gone: blame::stacks(&baseline.sites, gone) }
}

fn change(entry: &DiffEntry, before: &[Site], after: &[Site], known: &Before<'_>) -> SiteChange {
    let shown = match (entry.after.first(), entry.before.first()) {
        (Some(index), _) => &after[*index].frames,
        (None, Some(index)) => &before[*index].frames,
        (None, None) => &Vec::new(),
    };
    SiteChange {
        frames: shown.clone(),
        before: sum(before, &entry.before),
        after: sum(after, &entry.after),
        exact: is_exact(entry),
        blamed: if entry.before.is_empty() || !is_exact(entry) { known.blamed(shown) } else { None },
    }
}

fn is_exact(entry: &DiffEntry) -> bool {
    matches!(entry.level, Level::Same | Level::Lines | Level::Files)
}

/// None for no sites. The peak is not known by site.
fn sum(sites: &[Site], indices: &[usize]) -> Option<Metrics> {
    let metrics = indices.iter().map(|index| Metrics { peak_bytes: 0, ..sites[*index].metrics });
    metrics.reduce(|sum, more| sum.plus(&more))
}

/// A baseline keeps its largest sites only. What is new and small may well have been among the others.
fn is_unknown_before(change: &SiteChange, baseline: &Baseline) -> bool {
    let (None, Some(after)) = (change.before, change.after) else { return false };
    let is_small = |least: &Site| after.allocations <= least.metrics.allocations;
    let left_nothing = after.remaining_blocks == 0 && after.descriptors == 0;
    let least = baseline.sites.iter().min_by_key(|site| site.metrics.allocations);
    baseline.left_out.sites > 0 && left_nothing && least.is_none_or(is_small)
}

fn weight(change: &SiteChange, metric: Metric) -> u64 {
    let of = |side: Option<Metrics>| side.and_then(|metrics| metrics.of(metric)).unwrap_or(0);
    of(change.before).abs_diff(of(change.after))
}

#[cfg(test)]
#[path = "site_diff_tests.rs"]
mod tests;

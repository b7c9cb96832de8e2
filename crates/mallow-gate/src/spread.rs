//! The runs' values of a metric in five numbers, and whether they stand still.

use crate::measurement::{Metric, Run};
use crate::result::{Spread, VaryingSite};
use mallow_base::Frame;
use std::collections::BTreeMap;

/// So many runs must have the least value, or it is not known to be the floor.
pub const RUNS_AT_MIN: u32 = 3;

/// From so many runs on [`RUNS_AT_MIN`] is required.
pub const RUNS_TO_ASK: u32 = 5;

/// A difference between runs up to this is never too much.
pub const RANGE_FREE: u64 = 5;

/// Above [`RANGE_FREE`], runs may differ by one in so many.
pub const RANGE_ONE_IN: u64 = 1000;

/// At most so many sites are named as varying.
pub const VARYING_MAX: usize = 50;

impl Spread {
    /// Returns the spread of the runs' values; `None` without runs.
    pub fn of(values: &[u64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // Strictly longer only, so that of equally frequent values the least stays.
        let mode = sorted
            .chunk_by(|a, b| a == b)
            .fold((min, 0), |best, equal| if equal.len() > best.1 { (equal[0], equal.len()) } else { best });
        let at_min = sorted.partition_point(|value| *value == min);
        Some(Spread { min, mode: mode.0, max, at_min: as_u32(at_min), runs: as_u32(sorted.len()) })
    }

    /// Returns the spread of one metric of a measurement's runs; `None` if a run does not have it.
    pub fn of_runs(runs: &[Run], metric: Metric) -> Option<Spread> {
        let values: Option<Vec<u64>> = runs.iter().map(|run| run.of(metric)).collect();
        Spread::of(&values?)
    }

    /// Returns the difference between the maximum and the minimum.
    pub const fn range(&self) -> u64 {
        self.max.saturating_sub(self.min)
    }

    /// Returns whether the minimum is the floor: it occurred often enough, and no run is far from it.
    pub fn is_steady(&self) -> bool {
        self.is_floor() && self.range() <= self.free_range()
    }

    /// Returns whether the least value is the floor and at least nine in ten of the runs are near it: then the others were
    /// disturbed from outside, however far they are off. A test of which every fifth run costs more is not like that.
    pub fn has_only_outliers(&self, runs: &[Run], metric: Metric) -> bool {
        let is_near = |run: &&Run| {
            run.of(metric).is_some_and(|value| value.saturating_sub(self.min) <= self.free_range())
        };
        let near = runs.iter().filter(is_near).count();
        self.is_floor() && runs.len() >= RUNS_TO_ASK as usize && near * 10 >= runs.len() * 9
    }

    fn is_floor(&self) -> bool {
        self.runs < RUNS_TO_ASK || self.at_min >= RUNS_AT_MIN
    }

    fn free_range(&self) -> u64 {
        RANGE_FREE.max(self.min / RANGE_ONE_IN)
    }
}

/// The sites whose allocations differ between runs, the most varying first, at most [`VARYING_MAX`].
pub fn varying_sites(runs: &[Run]) -> Vec<VaryingSite> {
    let mut counts: BTreeMap<&[Frame], Vec<u64>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for site in &run.sites {
            // A run in which the site did nothing has a 0.
            let counts = counts.entry(&site.frames).or_insert_with(|| vec![0; runs.len()]);
            counts[index] = counts[index].saturating_add(site.metrics.allocations);
        }
    }
    let mut sites: Vec<VaryingSite> = counts
        .into_iter()
        .filter_map(|(stack, counts)| {
            let allocations = Spread::of(&counts)?;
            (allocations.range() > 0).then(|| VaryingSite { frames: stack.to_vec(), allocations })
        })
        .collect();
    // Stable, so that sites that vary alike stay in the order of their stacks.
    sites.sort_by_key(|site| std::cmp::Reverse((site.allocations.range(), site.allocations.max)));
    sites.truncate(VARYING_MAX);
    sites
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "spread_tests.rs"]
mod tests;

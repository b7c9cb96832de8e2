//! The baseline that a measurement makes.

use super::{Baseline, LeftOut, Machine, SITES_MAX, kept_stack};
use crate::measurement::{Measurement, Metric, Metrics, Site, judged_run};
use crate::result::Spread;
use mallow_base::Frame;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

impl Baseline {
    /// Returns the baseline of a measurement; `None` without runs.
    pub fn of(measurement: &Measurement, machine: &Machine) -> Option<Baseline> {
        let run = judged_run(&measurement.runs)?;
        let (sites, left_out) = table(&run.sites);
        Some(Baseline {
            name: measurement.name.clone(),
            region: measurement.region.clone(),
            environment: measurement.environment.clone(),
            machine: machine.clone(),
            ops: measurement.ops,
            runs: u32::try_from(measurement.runs.len()).unwrap_or(u32::MAX),
            spreads: Metric::ALL
                .into_iter()
                // No two machines take the same time, nor one machine twice.
                .filter(|metric| *metric != Metric::Wall)
                .filter_map(|metric| Some((metric, Spread::of_runs(&measurement.runs, metric)?)))
                .collect(),
            sites,
            left_out,
        })
    }
}

/// Returns the sites that are kept, and the sum of the others. First those that left blocks, then by allocations.
fn table(sites: &[Site]) -> (Vec<Site>, LeftOut) {
    let mut merged: BTreeMap<Vec<Frame>, Metrics> = BTreeMap::new();
    for site in sites {
        let metrics = merged.entry(kept_stack(&site.frames)).or_default();
        *metrics = metrics.plus(&Metrics { peak_bytes: 0, ..site.metrics });
    }
    let mut kept: Vec<Site> = merged.into_iter().map(|(frames, metrics)| Site { frames, metrics }).collect();
    kept.sort_by_key(|site| {
        let metrics = &site.metrics;
        let has_left = metrics.remaining_blocks > 0 || metrics.descriptors > 0;
        Reverse((has_left, metrics.allocations, metrics.bytes))
    });
    let rest = kept.split_off(kept.len().min(SITES_MAX));
    let mut left_out = LeftOut { sites: rest.len() as u64, allocations: 0 };
    for site in &rest {
        left_out.allocations = left_out.allocations.saturating_add(site.metrics.allocations);
    }
    kept.sort_by(|a, b| by_stack(&a.frames, &b.frames));
    (kept, left_out)
}

/// Orders from the outermost frame: stacks with common callers are adjacent.
fn by_stack(a: &[Frame], b: &[Frame]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

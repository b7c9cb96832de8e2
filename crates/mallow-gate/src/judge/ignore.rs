//! Sites that a test's limits tell to leave out.

use crate::baseline::Baseline;
use crate::glob;
use crate::measurement::{Measurement, Metrics, Site};
use mallow_base::grouped;
use std::borrow::Cow;

/// Subtracts sites that match a glob from all runs, and reports how much that was in the run where it was most. The
/// peak per site is unknown and stays.
pub(super) fn leave_out(measurement: &mut Measurement, globs: &[String]) {
    if globs.is_empty() {
        return;
    }
    let mut most = Metrics::default();
    let mut is_any = false;
    for run in &mut measurement.runs {
        let gone = take(&mut run.sites, globs);
        is_any |= gone.is_some();
        let Some(gone) = gone else { continue };
        run.metrics = minus(&run.metrics, &gone);
        if gone.allocations >= most.allocations {
            most = gone;
        }
    }
    let list = globs.join(", ");
    measurement.notes.push(if is_any {
        format!(
            "Left out by ignore_sites ({list}): up to {} allocations, {} bytes, {} remaining per run.",
            grouped(most.allocations),
            grouped(most.bytes),
            grouped(most.remaining_blocks)
        )
    } else {
        format!("No site matches ignore_sites ({list}).")
    });
}

/// The baseline without the same sites: it may be older than the globs.
pub(super) fn without<'a>(baseline: &'a Baseline, globs: &[String]) -> Cow<'a, Baseline> {
    let mut sites = baseline.sites.clone();
    let Some(gone) = take(&mut sites, globs) else { return Cow::Borrowed(baseline) };
    let mut rest = Baseline { sites, ..baseline.clone() };
    for (metric, spread) in &mut rest.spreads {
        let gone = gone.of(*metric).unwrap_or(0);
        for value in [&mut spread.min, &mut spread.mode, &mut spread.max] {
            *value = value.saturating_sub(gone);
        }
    }
    Cow::Owned(rest)
}

/// Removes the sites that match; their sum, none when there are none.
fn take(sites: &mut Vec<Site>, globs: &[String]) -> Option<Metrics> {
    let mut gone: Option<Metrics> = None;
    sites.retain(|site| {
        let is_ignored =
            site.frames.iter().any(|frame| globs.iter().any(|glob| glob::matches_frame(glob, frame)));
        if is_ignored {
            gone = Some(gone.unwrap_or_default().plus(&site.metrics));
        }
        !is_ignored
    });
    gone
}

fn minus(metrics: &Metrics, gone: &Metrics) -> Metrics {
    Metrics {
        allocations: metrics.allocations.saturating_sub(gone.allocations),
        bytes: metrics.bytes.saturating_sub(gone.bytes),
        peak_bytes: metrics.peak_bytes,
        remaining_blocks: metrics.remaining_blocks.saturating_sub(gone.remaining_blocks),
        remaining_bytes: metrics.remaining_bytes.saturating_sub(gone.remaining_bytes),
        descriptors: metrics.descriptors.saturating_sub(gone.descriptors),
        temporary: metrics.temporary.map(|all| all.saturating_sub(gone.temporary.unwrap_or(0))),
    }
}

//! Latencies of all judged iterations in one row.
//!
//! Percentiles of parts cannot be added up to one of the whole, so those shown are the middle ones of the iterations. The
//! worst latency can: it is the greatest of all, and never a percentile.

use super::measured;
use mallow_base::median;
use mallow_evidence::{LatencyMetrics, Sample};

/// Latency by one method; `None` for values that an external load generator does not report.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyRow {
    /// From the moment a request was due, and not from when it was sent.
    pub is_corrected: bool,
    /// The middle one of the iterations' medians; in microseconds, as all of these.
    pub p50_us: Option<f64>,
    /// The same of 90 of 100.
    pub p90_us: Option<f64>,
    /// The same of 99 of 100.
    pub p99_us: Option<f64>,
    /// The same of 999 of 1,000.
    pub p999_us: Option<f64>,
    /// The true maximum over all iterations.
    pub worst_us: Option<u64>,
}

/// Returns latencies as measured, and relative to the schedule; methods without measurements are omitted.
pub fn latencies(samples: &[Sample]) -> Vec<LatencyRow> {
    let loads = || measured(samples).filter_map(|sample| sample.load.as_ref());
    let raw = row(&loads().filter_map(|load| load.latency).collect::<Vec<_>>(), false);
    let corrected = row(&loads().filter_map(|load| load.corrected).collect::<Vec<_>>(), true);
    raw.into_iter().chain(corrected).collect()
}

fn row(metrics: &[LatencyMetrics], is_corrected: bool) -> Option<LatencyRow> {
    // A metric that one iteration lacks is not one of all.
    let all = |of: fn(&LatencyMetrics) -> Option<u64>| metrics.iter().map(of).collect::<Option<Vec<u64>>>();
    let middle = |of| all(of).and_then(|values| median(values.into_iter().map(|us| us as f64)));
    let row = LatencyRow {
        is_corrected,
        p50_us: middle(|one| Some(one.p50_us)),
        p90_us: middle(|one| Some(one.p90_us)),
        p99_us: middle(|one| Some(one.p99_us)),
        p999_us: middle(|one| one.p999_us),
        worst_us: all(|one| one.worst_us).and_then(|worst| worst.into_iter().max()),
    };
    (row.p50_us.is_some() || row.worst_us.is_some()).then_some(row)
}

//! A soak against another one: what is worse beyond doubt.
//!
//! Comparing with a version that is known to be sound beats any test of one version's trend (Matias et al., "Differential
//! software aging", 2014), and it sees growth below the threshold of a leak.

use super::measured;
use mallow_base::median;
use mallow_evidence::{Comparison, Series, SoakReport};
use mallow_growth::Trend;

/// A metric with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The metric.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The metrics of a soak that are compared; `None` if one was not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Live heap, bytes for each request.
    pub heap_per_request: Option<Interval>,
    /// Resident memory, bytes for each request.
    pub resident_per_request: Option<Interval>,
    /// Live heap over the iterations, in bytes.
    pub heap_level: Option<Interval>,
    /// Resident memory over the iterations, after trimming where that was done, in bytes.
    pub resident_level: Option<Interval>,
    /// Allocations for each request.
    pub allocations_per_request: Option<Interval>,
    /// Requests a second.
    pub rate: Option<Interval>,
    /// The latency that 99 of 100 requests do not exceed, in microseconds.
    pub p99_us: Option<Interval>,
}

impl Side {
    /// Of a report.
    pub fn of(report: &SoakReport) -> Side {
        let conclusion = &report.conclusion;
        let seen = &report.evidence.observations;
        let (half, grows) = (&seen[seen.len() / 2..], super::can_grow(report));
        let loads = || measured(&report.samples).filter_map(|sample| sample.load.as_ref());
        let level = |of: fn(&mallow_growth::Observation) -> Option<u64>| {
            spread(half.iter().filter_map(of).map(|bytes| bytes as f64).collect())
        };
        Side {
            heap_per_request: conclusion.heap.filter(|_| grows).map(slope),
            resident_per_request: grows.then(|| slope(conclusion.resident)),
            heap_level: level(|seen| seen.live_bytes),
            resident_level: level(|seen| Some(seen.trimmed_bytes.unwrap_or(seen.resident_bytes))),
            allocations_per_request: spread(allocations_per_request(report)),
            rate: spread(loads().map(|load| load.rate).collect()),
            p99_us: spread(loads().filter_map(|load| Some(load.latency?.p99_us as f64)).collect()),
        }
    }
}

fn slope(trend: Trend) -> Interval {
    Interval { value: trend.per_request, low: trend.per_request_low, high: trend.per_request_high }
}

fn allocations_per_request(report: &SoakReport) -> Vec<f64> {
    let pairs = report.samples.windows(2);
    let share = |pair: &[mallow_evidence::Sample]| {
        let [before, after] = pair else { return None };
        let more = after.heap?.allocations.checked_sub(before.heap?.allocations)?;
        let requests =
            after.requests_total.checked_sub(before.requests_total).filter(|requests| *requests > 0)?;
        (after.phase == mallow_evidence::Phase::Measured).then(|| more as f64 / requests as f64)
    };
    pairs.filter_map(share).collect()
}

/// The median with a 99 % interval from the median absolute deviation; a normal median's standard error is 1.2533 sigma over
/// the root of n.
fn spread(values: Vec<f64>) -> Option<Interval> {
    let count = values.len() as f64;
    let value = median(values.iter().copied())?;
    let deviation = median(values.iter().map(|one| (one - value).abs()))? * 1.4826;
    let half = 2.576 * 1.2533 * deviation / count.sqrt();
    Some(Interval { value, low: value - half, high: value + half })
}

/// From where on a difference counts.
struct Tolerance {
    /// At least so much.
    least: f64,
    /// And at least this share of what was before.
    share: f64,
    /// Less is worse.
    is_less_worse: bool,
}

/// Compares `after` with `before`. `per_request_min` is the growth in bytes per request that is significant.
pub fn compare(before: &Side, after: &Side, baseline: &str, per_request_min: f64) -> Comparison {
    let more = |least, share| Tolerance { least, share, is_less_worse: false };
    let rows = [
        (
            "live heap per request",
            "B/request",
            before.heap_per_request,
            after.heap_per_request,
            more(per_request_min, 0.0),
        ),
        (
            "resident per request",
            "B/request",
            before.resident_per_request,
            after.resident_per_request,
            more(per_request_min.max(64.0), 0.0),
        ),
        ("live heap", "B", before.heap_level, after.heap_level, more(65_536.0, 0.05)),
        ("resident", "B", before.resident_level, after.resident_level, more(4_194_304.0, 0.2)),
        (
            "allocations per request",
            "",
            before.allocations_per_request,
            after.allocations_per_request,
            more(0.05, 0.01),
        ),
        // Where processes land on processors moves these from run to run by more than they vary within one.
        (
            "requests a second",
            "/s",
            before.rate,
            after.rate,
            Tolerance { least: 0.0, share: 0.2, is_less_worse: true },
        ),
        ("latency, 99 of 100", "µs", before.p99_us, after.p99_us, more(1000.0, 0.5)),
    ];
    let series_list = rows.into_iter().filter_map(|(name, unit, before, after, tolerance)| {
        Some(series(name, unit, before?, after?, &tolerance))
    });
    Comparison { baseline: baseline.to_owned(), series_list: series_list.collect() }
}

fn series(
    name: &'static str,
    unit: &'static str,
    before: Interval,
    after: Interval,
    tolerance: &Tolerance,
) -> Series {
    let half = |side: Interval| (side.high - side.low).abs() / 2.0;
    let (difference, doubt) = (after.value - before.value, half(before).hypot(half(after)));
    let interval = (difference - doubt, difference + doubt);
    let allowed = tolerance.least.max(tolerance.share * before.value.abs());
    let worse = if tolerance.is_less_worse { interval.1 < -allowed } else { interval.0 > allowed };
    Series { name, unit, before: before.value, after: after.value, difference: interval, worse }
}

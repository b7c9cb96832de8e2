//! What a soak shows: the series side by side, the stacks that grow, the pace of a leak, latencies.
//!
//! Nothing is judged here; what the verdict says is taken apart into rows and brought into units that people plan with.

mod compare;
mod growth;
mod latency;
mod verdict;

pub use compare::{Interval, Side, compare};
pub use growth::{Growing, GrowingRow, growing};
pub use latency::{LatencyRow, latencies};
pub use verdict::{FailOn, is_failure, outcome, weight};

use mallow_base::median;
use mallow_evidence::{Phase, Sample, SoakReport};
use mallow_growth::{Shape, Trend};

/// The unit of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesUnit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
}

/// One series over the judged iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRow {
    /// A short name.
    pub name: &'static str,
    /// A name that a program can rely on.
    pub key: &'static str,
    /// Its unit.
    pub unit: SeriesUnit,
    /// The level at the first observation.
    pub first: f64,
    /// The level at the last.
    pub last: f64,
    /// Growth per request with its interval (growth, low, high); `None` without a trend, and of one observation alone.
    pub per_request: Option<(f64, f64, f64)>,
    /// The shape of the trend; `None` without a trend.
    pub shape: Option<Shape>,
}

/// Returns the series, those that decide the verdict first.
pub fn series_list(report: &SoakReport) -> Vec<SeriesRow> {
    let conclusion = &report.conclusion;
    let grows = can_grow(report);
    let bytes = |name, key, trend: Option<Trend>| trend.map(|trend| of_trend(name, key, trend, grows));
    let observations = &report.evidence.observations;
    let ends = |name, key, unit, of: fn(&mallow_growth::Observation) -> Option<u64>| {
        let (first, last) = (of(observations.first()?)?, of(observations.last()?)?);
        let (first, last) = (first as f64, last as f64);
        Some(SeriesRow { name, key, unit, first, last, per_request: None, shape: None })
    };
    let resident = (!observations.is_empty()).then_some(conclusion.resident);
    [
        bytes("live heap", "live_heap", conclusion.heap),
        bytes("  steady stacks", "stacks", conclusion.steady),
        ends("live blocks", "live_blocks", SeriesUnit::Count, |seen| seen.live_blocks),
        bytes("managed heap", "managed_heap", conclusion.managed),
        bytes("resident", "resident", resident),
        bytes("  after trimming", "trimmed", conclusion.trimmed),
        bytes("  files, shared", "mapped", conclusion.mapped),
        bytes("allocator holds", "allocator", conclusion.allocator),
        ends("  of that free", "held_free", SeriesUnit::Bytes, |seen| seen.held_free_bytes),
        ends("descriptors", "descriptors", SeriesUnit::Count, |seen| seen.descriptors),
        ends("threads", "threads", SeriesUnit::Count, |seen| seen.threads),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns whether there are two observations to compare: of one nobody knows what grows.
pub fn can_grow(report: &SoakReport) -> bool {
    report.evidence.observations.len().max(report.evidence.workers.len()) > 1
}

fn of_trend(name: &'static str, key: &'static str, trend: Trend, grows: bool) -> SeriesRow {
    let slope = (trend.per_request, trend.per_request_low, trend.per_request_high);
    SeriesRow {
        name,
        key,
        unit: SeriesUnit::Bytes,
        first: trend.first,
        last: trend.last,
        per_request: grows.then_some(slope),
        shape: Some(trend.shape),
    }
}

/// Which allocator holds memory that is on none of the observed heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder<'a> {
    /// Go's runtime.
    Go,
    /// An allocator that is linked into the program, by its name.
    Linked(&'a str),
    /// A `malloc` of the program's own.
    OwnMalloc,
    /// Unknown.
    Unknown,
}

/// A program whose memory is on none of the observed heaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elsewhere<'a> {
    /// Live heap at the last observation; none without a recorder.
    pub live_bytes: Option<u64>,
    /// Resident memory then.
    pub resident_bytes: u64,
    /// Its allocator.
    pub holder: Holder<'a>,
}

/// Returns what is known of memory outside every heap; `None` if there is none.
pub fn elsewhere(report: &SoakReport) -> Option<Elsewhere<'_>> {
    let last = report.evidence.observations.last().filter(|_| report.conclusion.is_elsewhere)?;
    let names = || report.samples.iter().filter_map(|sample| sample.foreign_heap.as_deref());
    let named = || names().filter(|name| *name != "unknown");
    let holder = match named().find(|name| *name == "go").or_else(|| named().next_back()) {
        Some("go") => Holder::Go,
        Some("malloc") => Holder::OwnMalloc,
        Some(name) => Holder::Linked(name),
        None => Holder::Unknown,
    };
    Some(Elsewhere { live_bytes: last.live_bytes, resident_bytes: last.resident_bytes, holder })
}

/// The managed runtimes of the server, each once, in the order of their names.
pub fn runtimes(samples: &[Sample]) -> Vec<&str> {
    let names = samples.iter().flat_map(|sample| &sample.runtimes).map(|runtime| runtime.name.as_str());
    names.collect::<std::collections::BTreeSet<&str>>().into_iter().collect()
}

/// A growth rate over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Requests a second over the judged iterations; the median.
    pub requests_per_second: f64,
    /// Bytes a day at this rate.
    pub bytes_per_day: f64,
    /// The limit, and the seconds until it is reached at this rate; no seconds when it is not.
    pub limit: Option<(u64, Option<f64>)>,
}

/// Returns the pace at which the judged series grows; `None` if no request was counted.
pub fn pace(report: &SoakReport) -> Option<Pace> {
    let requests_per_second = median(rates(&report.samples))?;
    let conclusion = &report.conclusion;
    let per_second = conclusion.trend().per_request * requests_per_second;
    let resident = report.evidence.observations.last()?.resident_bytes;
    let until = |limit: u64| {
        let left = limit.saturating_sub(resident) as f64;
        (per_second > 0.0).then(|| left / per_second).filter(|seconds| seconds.is_finite())
    };
    Some(Pace {
        requests_per_second,
        bytes_per_day: per_second * 86_400.0,
        limit: report.memory_limit_bytes.map(|limit| (limit, until(limit))),
    })
}

/// How growth is divided between the managed heap, the rest of the live heap, and what the allocator keeps; in bytes
/// per request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// In the managed heap; `None` if no runtime reported it.
    pub managed: Option<f64>,
    /// In the live heap outside the managed one; `None` without a recorder.
    pub native: Option<f64>,
    /// Held by the allocator beyond live blocks: rounding, headers, and free memory; `None` if it was not queried.
    pub allocator: Option<f64>,
    /// Resident memory as a whole.
    pub resident: f64,
}

/// The split; none where there is nothing to divide or to compare, or where the heap is one worker's and the rest that of all of them.
pub fn split(report: &SoakReport) -> Option<Split> {
    let conclusion = &report.conclusion;
    if conclusion.by_age || !can_grow(report) {
        return None;
    }
    let slope = |trend: Option<&Trend>| trend.map(|trend| trend.per_request);
    let heap = slope(conclusion.heap.as_ref());
    let managed = slope(conclusion.managed.as_ref());
    let last = report.samples.iter().rev().find(|sample| !sample.runtimes.is_empty());
    let is_in_malloc = last.is_some_and(|sample| sample.runtimes.iter().all(|runtime| runtime.in_malloc));
    let native = match (heap, managed) {
        (Some(heap), Some(managed)) if is_in_malloc => Some(heap - managed),
        (heap, _) => heap,
    };
    let allocator = slope(conclusion.allocator.as_ref()).zip(heap).map(|(held, live)| held - live);
    let split = Split { managed, native, allocator, resident: conclusion.resident.per_request };
    (managed.is_some() || allocator.is_some()).then_some(split)
}

/// Requests and failures of all judged iterations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Judged iterations.
    pub iterations: usize,
    /// Requests in them.
    pub requests: u64,
    /// Failures in them, by cause, the most frequent first.
    pub failures: Vec<(String, u64)>,
    /// The first and the last iteration's requests a second.
    pub rates: Option<(f64, f64)>,
    /// The highest share of its time that the generator was at work.
    pub generator_busy: Option<f64>,
    /// The outside generator did not say how many requests it sent.
    pub uncounted: bool,
}

/// Returns the requests of the judged iterations.
pub fn asked(samples: &[Sample]) -> Asked {
    let mut asked = Asked::default();
    let loads: Vec<_> = measured(samples).filter_map(|sample| sample.load.as_ref()).collect();
    for load in &loads {
        asked.iterations += 1;
        asked.requests = asked.requests.saturating_add(load.requests);
        asked.uncounted |= load.uncounted;
        let busy = load.generator_busy.into_iter().chain(asked.generator_busy);
        asked.generator_busy = busy.reduce(f64::max);
        for (cause, count) in &load.failures {
            match asked.failures.iter_mut().find(|(known, _)| known == cause) {
                Some((_, sum)) => *sum = sum.saturating_add(*count),
                None => asked.failures.push((cause.clone(), *count)),
            }
        }
    }
    asked.failures.sort_by_key(|failure| std::cmp::Reverse(failure.1));
    asked.rates = loads.first().zip(loads.last()).map(|(first, last)| (first.rate, last.rate));
    asked
}

/// The iterations that count.
pub fn measured(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    samples.iter().filter(|sample| sample.phase == Phase::Measured)
}

/// Returns by how much live heap grew in an iteration, per request; `None` if that was not observed.
pub fn heap_step(before: &Sample, after: &Sample) -> Option<f64> {
    let requests =
        after.requests_total.checked_sub(before.requests_total).filter(|requests| *requests > 0)?;
    Some((after.heap?.live_bytes as f64 - before.heap?.live_bytes as f64) / requests as f64)
}

/// The phases over requests: (phase, requests at its begin, requests at its end), neighbours of one phase together.
pub fn phases(samples: &[Sample]) -> Vec<(Phase, u64, u64)> {
    let mut phases: Vec<(Phase, u64, u64)> = Vec::new();
    let mut before = 0;
    for sample in samples {
        match phases.last_mut() {
            Some((phase, _, end)) if *phase == sample.phase => *end = sample.requests_total,
            _ => phases.push((sample.phase, before, sample.requests_total)),
        }
        before = sample.requests_total;
    }
    phases
}

fn rates(samples: &[Sample]) -> Vec<f64> {
    measured(samples)
        .filter_map(|sample| sample.load.as_ref())
        .map(|load| load.rate)
        .filter(|rate| rate.is_finite())
        .collect()
}

#[cfg(test)]
#[path = "soak/tests.rs"]
mod tests;

//! The counts of one thread in one run, and how threads are added up.
//!
//! Its size does not depend on the number of requests.

use super::cause::Cause;
use crate::{Latency, Metrics};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Three digits from a microsecond to an hour. Longer times count as an hour, except in the maximum and the mean.
const HIGHEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;
/// Status codes have three digits.
const STATUSES: usize = 1000;

/// The counts.
#[derive(Debug)]
pub(crate) struct Stats {
    statuses: Vec<u64>,
    failures: [u64; Cause::ALL.len()],
    /// Responses that lack a value which a flow extracts, and requests that could not be sent because of a value, by
    /// their message: at most as many as the flow has.
    lacking: BTreeMap<Arc<str>, u64>,
    body_bytes: u64,
    latency: Distribution,
    corrected: Option<Distribution>,
    first_begin: Option<Instant>,
    last_end: Option<Instant>,
    /// Processor time of the thread.
    pub(crate) cpu: Duration,
    /// The duration of the thread's run.
    pub(crate) wall: Duration,
}

/// A histogram, with the exact values that a histogram loses.
#[derive(Debug)]
struct Distribution {
    histogram: Histogram<u64>,
    sum_us: u128,
    worst_us: u64,
}

impl Stats {
    /// `is_scheduled`: latencies are also measured from when requests were due.
    pub(crate) fn new(is_scheduled: bool) -> Stats {
        Stats {
            statuses: vec![0; STATUSES],
            failures: [0; Cause::ALL.len()],
            lacking: BTreeMap::new(),
            body_bytes: 0,
            latency: Distribution::new(),
            corrected: is_scheduled.then(Distribution::new),
            first_begin: None,
            last_end: None,
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
        }
    }

    /// Counts a request that was answered; `due` is when it should have started.
    pub(crate) fn answered(
        &mut self,
        status: u16,
        body_bytes: u64,
        due: Instant,
        begun: Instant,
        end: Instant,
    ) {
        self.over(begun, end);
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
        self.body_bytes = self.body_bytes.saturating_add(body_bytes);
        self.latency.record(end - begun);
        if let Some(corrected) = &mut self.corrected {
            corrected.record(end - due);
        }
    }

    /// Counts a request without a response. It has no latency, except that a timeout counts with the time that it waited.
    pub(crate) fn failed(&mut self, cause: Cause, due: Instant, begun: Instant, end: Instant) {
        self.over(begun, end);
        self.failures[cause as usize] += 1;
        if cause == Cause::Timeout {
            self.latency.record(end - begun);
            if let Some(corrected) = &mut self.corrected {
                corrected.record(end - due);
            }
        }
    }

    /// Counts a response that lacks a value which a flow extracts, or a request that could not be built; `what` says which.
    pub(crate) fn lacking(&mut self, what: &Arc<str>, due: Instant, begun: Instant, end: Instant) {
        self.over(begun, end);
        *self.lacking.entry(Arc::clone(what)).or_default() += 1;
        self.latency.record(end - begun);
        if let Some(corrected) = &mut self.corrected {
            corrected.record(end - due);
        }
    }

    fn over(&mut self, begun: Instant, end: Instant) {
        self.first_begin = Some(self.first_begin.map_or(begun, |first| first.min(begun)));
        self.last_end = Some(self.last_end.map_or(end, |last| last.max(end)));
    }

    /// Returns the metrics of all threads together.
    pub(crate) fn metrics(tallies: &[Stats]) -> Metrics {
        let mut statuses = BTreeMap::new();
        let mut failures = BTreeMap::new();
        for stats in tallies {
            for (status, count) in stats.statuses.iter().enumerate().filter(|(_, count)| **count > 0) {
                *statuses.entry(status as u16).or_insert(0) += count;
            }
            for (cause, count) in Cause::ALL.iter().zip(stats.failures).filter(|(_, count)| *count > 0) {
                *failures.entry(cause.name().to_owned()).or_insert(0) += count;
            }
            for (what, count) in &stats.lacking {
                *failures.entry(what.as_ref().to_owned()).or_insert(0) += count;
            }
        }
        let first = tallies.iter().filter_map(|stats| stats.first_begin).min();
        let last = tallies.iter().filter_map(|stats| stats.last_end).max();
        let busy = |stats: &Stats| stats.cpu.as_secs_f64() / stats.wall.as_secs_f64().max(1e-9);
        Metrics {
            requests: statuses.values().sum::<u64>() + failures.values().sum::<u64>(),
            succeeded: statuses.range(..400).map(|(_, count)| count).sum(),
            statuses,
            failures,
            body_bytes: tallies.iter().fold(0, |sum, stats| sum.saturating_add(stats.body_bytes)),
            elapsed: first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first),
            latency: Distribution::merged(tallies.iter().map(|stats| &stats.latency)),
            corrected: tallies
                .iter()
                .any(|stats| stats.corrected.is_some())
                .then(|| Distribution::merged(tallies.iter().filter_map(|stats| stats.corrected.as_ref()))),
            generator_cpu: tallies.iter().map(|stats| stats.cpu).sum(),
            generator_busy: tallies.iter().map(busy).fold(0.0, f64::max).min(1.0),
        }
    }
}

impl Distribution {
    fn new() -> Distribution {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_US, DIGITS)
            .expect("constant bounds that the histogram accepts");
        Distribution { histogram, sum_us: 0, worst_us: 0 }
    }

    fn record(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(us.max(1));
        self.sum_us += u128::from(us);
        self.worst_us = self.worst_us.max(us);
    }

    fn merged<'a>(parts: impl Iterator<Item = &'a Distribution>) -> Latency {
        let mut all = Distribution::new();
        for part in parts {
            all.histogram.add(&part.histogram).expect("histograms of the same bounds");
            all.sum_us += part.sum_us;
            all.worst_us = all.worst_us.max(part.worst_us);
        }
        let count = all.histogram.len();
        // The upper end of a bucket can be above the maximum.
        let quantile = |share: f64| all.histogram.value_at_quantile(share).min(all.worst_us);
        Latency {
            count,
            mean_us: if count == 0 { 0.0 } else { all.sum_us as f64 / count as f64 },
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            worst_us: all.worst_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut one = Stats::new(true);
        one.answered(200, 10, at(0), at(5), at(15));
        one.failed(Cause::Refused, at(20), at(20), at(21));
        one.cpu = Duration::from_millis(5);
        one.wall = Duration::from_millis(20);
        let mut two = Stats::new(true);
        two.answered(404, 1, at(10), at(10), at(40));
        two.failed(Cause::Timeout, at(50), at(50), at(70));
        two.wall = Duration::from_millis(60);
        let metrics = Stats::metrics(&[one, two]);
        assert_eq!((metrics.requests, metrics.succeeded, metrics.failed()), (4, 1, 3));
        assert_eq!(metrics.statuses, BTreeMap::from([(200, 1), (404, 1)]));
        assert_eq!(
            metrics.failures,
            BTreeMap::from([("connection refused".to_owned(), 1), ("timeout".to_owned(), 1)])
        );
        assert_eq!((metrics.body_bytes, metrics.elapsed), (11, Duration::from_millis(65)));
        let corrected = metrics.corrected.unwrap();
        assert_eq!((metrics.latency.count, metrics.latency.worst_us), (3, 30_000));
        assert_eq!((metrics.latency.mean_us, corrected.mean_us), (20_000.0, 65_000.0 / 3.0));
        assert_eq!((metrics.latency.p50_us, corrected.p50_us), (20_015, 20_015));
        assert_eq!((metrics.generator_cpu, metrics.generator_busy), (Duration::from_millis(5), 0.25));
    }

    #[test]
    fn nothing_counted_is_nothing() {
        let metrics = Stats::metrics(&[Stats::new(false)]);
        assert_eq!((metrics.requests, metrics.elapsed, metrics.rate()), (0, Duration::ZERO, 0.0));
        assert_eq!((metrics.latency, metrics.corrected), (Latency::default(), None));
    }

    #[test]
    fn what_takes_longer_than_the_histogram_still_has_its_true_maximum() {
        let mut stats = Stats::new(false);
        let start = Instant::now();
        stats.answered(200, 0, start, start, start + Duration::from_secs(7200));
        let latency = Stats::metrics(&[stats]).latency;
        assert_eq!((latency.worst_us, latency.mean_us), (7_200_000_000, 7.2e9));
    }
}

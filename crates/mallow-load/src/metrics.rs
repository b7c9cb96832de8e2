//! What came back.

use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics of one run.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Requests sent, all of them over: answered, failed or given up.
    pub requests: u64,
    /// Answers with a status below 400.
    pub succeeded: u64,
    /// Answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without an answer, by a short name of the cause, such as `connection refused` or `timeout`.
    pub failures: BTreeMap<String, u64>,
    /// Bytes of the answers' bodies.
    pub body_bytes: u64,
    /// From the first request's begin to the last one's end.
    pub elapsed: Duration,
    /// From the moment a request was sent to the end of its answer.
    pub latency: Latency,
    /// The same from the moment it was due by the schedule; none without a rate.
    pub corrected: Option<Latency>,
    /// Processor time that the generator's threads used.
    pub generator_cpu: Duration,
    /// The share of its threads' time that the busiest was at work, 0 to 1.
    pub generator_busy: f64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// Nine of ten are not above.
    pub p90_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// 999 of 1,000.
    pub p999_us: u64,
    /// The worst of all: the true maximum.
    pub worst_us: u64,
}

impl Metrics {
    /// Requests that got no answer, or one with a status of 400 or above.
    pub fn failed(&self) -> u64 {
        self.requests.saturating_sub(self.succeeded)
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.requests as f64 / seconds } else { 0.0 }
    }
}

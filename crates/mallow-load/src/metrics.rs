//! The results of a run.

use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics of one run.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Requests that have ended: answered, failed or timed out.
    pub requests: u64,
    /// Responses with a status below 400.
    pub succeeded: u64,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response, by a short name of the cause, such as `connection refused` or `timeout`.
    pub failures: BTreeMap<String, u64>,
    /// Bytes of the response bodies.
    pub body_bytes: u64,
    /// From the start of the first request to the end of the last one.
    pub elapsed: Duration,
    /// From the moment a request was sent to the end of its response.
    pub latency: Latency,
    /// The same from the moment it was due by the schedule; `None` without a rate.
    pub corrected: Option<Latency>,
    /// CPU time that the generator's threads used.
    pub generator_cpu: Duration,
    /// The share of time in which the busiest thread was running, 0 to 1.
    pub generator_busy: f64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// The number of samples.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The 99.9th percentile.
    pub p999_us: u64,
    /// The true maximum.
    pub worst_us: u64,
}

impl Metrics {
    /// Returns the number of requests that got no response, or one with a status of 400 or above.
    pub fn failed(&self) -> u64 {
        self.requests.saturating_sub(self.succeeded)
    }

    /// Returns requests a second.
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.requests as f64 / seconds } else { 0.0 }
    }
}

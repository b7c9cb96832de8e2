//! ApacheBench's summary (<https://httpd.apache.org/docs/2.4/programs/ab.html>, 2.3).
//!
//! ab calls an answer failed whose length differs from the first one's, as that of every page with a date in it does:
//! those are not counted as failed here. It tells whole milliseconds.

use super::labels::{after, figure, finite};
use super::{Outside, OutsideLatency};

pub(super) fn read(output: &str) -> Option<Outside> {
    let requests: u64 = figure(output, "Complete requests:")?;
    let failed: u64 = figure(output, "Failed requests:").unwrap_or(0);
    let lengths: u64 = after(output, "(Connect:")
        .and_then(|line| {
            line.split(',').find_map(|part| part.trim().strip_prefix("Length:")?.trim().parse().ok())
        })
        .unwrap_or(0);
    let bad: u64 = figure(output, "Non-2xx responses:").unwrap_or(0);
    let percentile = |label: &str| figure::<u64>(output, label)?.checked_mul(1000);
    let latency = OutsideLatency {
        p50_us: percentile("50%"),
        p90_us: percentile("90%"),
        p99_us: percentile("99%"),
        p999_us: None,
        worst_us: percentile("100%"),
    };
    Some(Outside {
        tool: "ab",
        requests: Some(requests),
        failed: failed.saturating_sub(lengths).saturating_add(bad).min(requests),
        seconds: finite(output, "Time taken for tests:"),
        rate: finite(output, "Requests per second:"),
        latency: latency.known(),
    })
}

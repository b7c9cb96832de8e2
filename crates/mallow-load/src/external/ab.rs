//! ApacheBench's summary (<https://httpd.apache.org/docs/2.4/programs/ab.html>, 2.3).
//!
//! ab counts a response as failed if its length differs from the first one's, as that of every page with a date in it
//! does: those are not counted as failed here. It reports whole milliseconds.

use super::labels::{after, finite, metric};
use super::{External, ExternalLatency};

pub(super) fn read(output: &str) -> Option<External> {
    let requests: u64 = metric(output, "Complete requests:")?;
    let failed: u64 = metric(output, "Failed requests:").unwrap_or(0);
    let lengths: u64 = after(output, "(Connect:")
        .and_then(|line| {
            line.split(',').find_map(|part| part.trim().strip_prefix("Length:")?.trim().parse().ok())
        })
        .unwrap_or(0);
    let bad: u64 = metric(output, "Non-2xx responses:").unwrap_or(0);
    let percentile = |label: &str| metric::<u64>(output, label)?.checked_mul(1000);
    let latency = ExternalLatency {
        p50_us: percentile("50%"),
        p90_us: percentile("90%"),
        p99_us: percentile("99%"),
        p999_us: None,
        worst_us: percentile("100%"),
    };
    Some(External {
        tool: "ab",
        requests: Some(requests),
        failed: failed.saturating_sub(lengths).saturating_add(bad).min(requests),
        seconds: finite(output, "Time taken for tests:"),
        rate: finite(output, "Requests per second:"),
        latency: latency.known(),
    })
}

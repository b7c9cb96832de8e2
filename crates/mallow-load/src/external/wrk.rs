//! wrk's summary (<https://github.com/wg/wrk>, 4.1.0).
//!
//! wrk counts responses; requests that ended with a socket error are listed separately. Those that it calls timeouts
//! may have been answered later, so they count as failures, but not as additional requests.

use super::labels::{after, finite, metric};
use super::times::{seconds, us_of_seconds};
use super::{External, ExternalLatency};

pub(super) fn read(output: &str) -> Option<External> {
    let (count, time) = output.lines().find_map(|line| line.trim().split_once(" requests in "))?;
    let answered: u64 = count.parse().ok()?;
    let time = seconds(time.split(',').next()?)?;
    let errors = after(output, "Socket errors:").unwrap_or("");
    let error = |name: &str| -> u64 {
        errors.split(',').find_map(|part| part.trim().strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    };
    let unanswered = error("connect").saturating_add(error("read")).saturating_add(error("write"));
    let bad: u64 = metric(output, "Non-2xx or 3xx responses:").unwrap_or(0);
    let requests = answered.saturating_add(unanswered);
    let percentile = |label: &str| us_of_seconds(seconds(after(output, label)?.split_whitespace().next()?)?);
    let latency = ExternalLatency {
        p50_us: percentile("50%"),
        p90_us: percentile("90%"),
        p99_us: percentile("99%"),
        p999_us: None,
        // Of `Latency  0.90ms  1.29ms  14.76ms  90.79%`: mean, deviation, maximum, share within the deviation.
        worst_us: after(output, "Latency  ")
            .and_then(|columns| us_of_seconds(seconds(columns.split_whitespace().nth(2)?)?))
            .filter(|_| answered > 0),
    };
    Some(External {
        tool: "wrk",
        requests: Some(requests),
        failed: unanswered.saturating_add(bad).saturating_add(error("timeout")).min(requests),
        seconds: Some(time),
        rate: finite(output, "Requests/sec:"),
        latency: latency.known(),
    })
}

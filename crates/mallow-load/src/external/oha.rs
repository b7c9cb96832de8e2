//! oha's JSON (<https://github.com/hatoo/oha>, `schema.json` of 1.9).
//!
//! Requests that it aborted because its time was over are neither answered nor failed.

use super::labels::failed_statuses;
use super::times::us_of_seconds;
use super::{External, ExternalLatency};
use serde_json::Value;

const BROKEN_OFF: &str = "aborted due to deadline";

pub(super) fn read_json(object: &Value) -> Option<External> {
    let summary = object.get("summary")?;
    let number = |name: &str| summary.get(name)?.as_f64();
    let rate = number("requestsPerSec")?;
    let codes = object.get("statusCodeDistribution")?.as_object()?;
    let codes: Vec<(u64, u64)> =
        codes.iter().filter_map(|(code, count)| Some((code.parse().ok()?, count.as_u64()?))).collect();
    let errors = object.get("errorDistribution").and_then(Value::as_object);
    let unanswered = errors.map_or(0, |errors| {
        let counts =
            errors.iter().filter(|(name, _)| *name != BROKEN_OFF).filter_map(|(_, count)| count.as_u64());
        counts.fold(0, u64::saturating_add)
    });
    let answered = codes.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let percentile = |name: &str| us_of_seconds(object.get("latencyPercentiles")?.get(name)?.as_f64()?);
    let latency = ExternalLatency {
        p50_us: percentile("p50"),
        p90_us: percentile("p90"),
        p99_us: percentile("p99"),
        p999_us: percentile("p99.9"),
        worst_us: number("slowest").and_then(us_of_seconds),
    };
    Some(External {
        tool: "oha",
        requests: Some(answered.saturating_add(unanswered)),
        failed: failed_statuses(codes.into_iter()).saturating_add(unanswered),
        seconds: number("total"),
        rate: Some(rate),
        latency: latency.known(),
    })
}

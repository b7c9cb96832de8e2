//! `vegeta report` (<https://github.com/tsenart/vegeta>, 12), as text and as JSON. Its code 0 means no response.

use super::labels::{after, failed_statuses};
use super::times::{seconds, us_of_ns, us_of_seconds};
use super::{External, ExternalLatency};
use serde_json::Value;

pub(super) fn read(output: &str) -> Option<External> {
    let columns = |label: &str| -> Option<Vec<&str>> {
        Some(after(output, label)?.split_once(']')?.1.split(',').map(str::trim).collect())
    };
    let requests = columns("Requests      [")?;
    let latencies = columns("Latencies     [").unwrap_or_default();
    // Of [min, mean, 50, 90, 95, 99, max].
    let latency = |index: usize| us_of_seconds(seconds(latencies.get(index)?)?);
    let codes = after(output, "Status Codes  [code:count]").unwrap_or("");
    let codes = codes.split_whitespace().filter_map(|pair| {
        let (code, count) = pair.split_once(':')?;
        Some((code.parse().ok()?, count.parse().ok()?))
    });
    Some(External {
        tool: "vegeta",
        requests: Some(requests.first()?.parse().ok()?),
        failed: failed_statuses(codes),
        seconds: columns("Duration      [").and_then(|columns| seconds(columns.first()?)),
        rate: requests.get(1).and_then(|rate| rate.parse().ok()),
        latency: ExternalLatency {
            p50_us: latency(2),
            p90_us: latency(3),
            p99_us: latency(5),
            p999_us: None,
            worst_us: latency(6),
        }
        .known(),
    })
}

pub(super) fn read_json(object: &Value) -> Option<External> {
    let requests = object.get("requests")?.as_u64()?;
    let codes = object.get("status_codes")?.as_object()?;
    let codes = codes.iter().filter_map(|(code, count)| Some((code.parse().ok()?, count.as_u64()?)));
    let latency = |name: &str| us_of_ns(object.get("latencies")?.get(name)?.as_f64()?);
    let ns = |name: &str| object.get(name).and_then(Value::as_f64);
    Some(External {
        tool: "vegeta",
        requests: Some(requests),
        failed: failed_statuses(codes),
        seconds: ns("duration").map(|attack| (attack + ns("wait").unwrap_or(0.0)) / 1e9),
        rate: ns("rate"),
        latency: ExternalLatency {
            p50_us: latency("50th"),
            p90_us: latency("90th"),
            p99_us: latency("99th"),
            p999_us: None,
            worst_us: latency("max"),
        }
        .known(),
    })
}

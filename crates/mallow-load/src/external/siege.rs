//! siege's summary (<https://www.joedog.org/siege-manual/>, 4.0.7), as text and as JSON.
//!
//! Its transactions are the responses, those of 400 and above included; "successful" ones are those below 400, and
//! "failed" ones got no response. It reports hundredths of seconds, and no percentiles.

use super::labels::{finite, metric};
use super::times::us_of_seconds;
use super::{External, ExternalLatency};
use serde_json::Value;

pub(super) fn read(output: &str) -> Option<External> {
    summary(
        metric(output, "Transactions:")?,
        metric(output, "Successful transactions:"),
        metric(output, "Failed transactions:")?,
        [finite(output, "Elapsed time:"), finite(output, "Transaction rate:")],
        finite(output, "Longest transaction:"),
    )
}

pub(super) fn read_json(object: &Value) -> Option<External> {
    let count = |name: &str| object.get(name)?.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64);
    let number = |name: &str| object.get(name)?.as_f64();
    summary(
        count("transactions")?,
        count("successful_transactions"),
        count("failed_transactions")?,
        [number("elapsed_time"), number("transaction_rate")],
        number("longest_transaction"),
    )
}

fn summary(
    answered: u64,
    succeeded: Option<u64>,
    unanswered: u64,
    [seconds, rate]: [Option<f64>; 2],
    longest: Option<f64>,
) -> Option<External> {
    let requests = answered.checked_add(unanswered)?;
    let worst_us = longest.filter(|_| answered > 0).and_then(us_of_seconds);
    Some(External {
        tool: "siege",
        requests: Some(requests),
        failed: requests.saturating_sub(succeeded.unwrap_or(answered)),
        seconds,
        rate,
        latency: ExternalLatency { worst_us, ..ExternalLatency::default() }.known(),
    })
}

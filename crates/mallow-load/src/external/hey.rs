//! hey's summary (<https://github.com/rakyll/hey>, 0.1.4).

use super::labels::{failed_statuses, finite};
use super::times::us_of_seconds;
use super::{External, ExternalLatency};

pub(super) fn read(output: &str) -> Option<External> {
    let summary = &output[output.find("Summary:\n")?..];
    let seconds = finite(summary, "Total:")?;
    let codes: Vec<(u64, u64)> = bracketed(summary, "Status code distribution:").collect();
    let errors =
        bracketed(summary, "Error distribution:").fold(0_u64, |sum, (count, _)| sum.saturating_add(count));
    let answered = codes.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let percentile = |label: &str| us_of_seconds(finite(summary, label)?);
    let latency = ExternalLatency {
        p50_us: percentile("50% in"),
        p90_us: percentile("90% in"),
        p99_us: percentile("99% in"),
        p999_us: None,
        worst_us: finite(summary, "Slowest:").filter(|_| answered > 0).and_then(us_of_seconds),
    };
    Some(External {
        tool: "hey",
        requests: Some(answered.saturating_add(errors)),
        failed: failed_statuses(codes.into_iter()).saturating_add(errors),
        seconds: Some(seconds),
        rate: finite(summary, "Requests/sec:"),
        latency: latency.known(),
    })
}

/// Parses lines such as `[200] 2000 responses` below a heading: the number in brackets, and the one after it, or 0.
fn bracketed<'a>(summary: &'a str, heading: &str) -> impl Iterator<Item = (u64, u64)> + 'a {
    let start = summary.find(heading).map_or(summary.len(), |at| at + heading.len());
    let lines = summary[start..].lines().skip(1).take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| {
        let (first, rest) = line.trim().strip_prefix('[')?.split_once(']')?;
        let second = rest.split_whitespace().next().and_then(|word| word.parse().ok());
        Some((first.parse().ok()?, second.unwrap_or(0)))
    })
}

//! Parses the output of other load generators for counts and times.
//!
//! Each tool has a file of its own. They parse the summary for people, because that is what existing commands print;
//! if a tool can write JSON, that is parsed as well. No metric is guessed: what a tool does not report is absent.

mod ab;
mod hey;
mod labels;
mod oha;
mod siege;
mod times;
mod vegeta;
mod wrk;

use serde_json::Value;

/// What a load generator reported of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct External {
    /// `hey`, `wrk`, `siege`, `ab`, `oha` or `vegeta`.
    pub tool: &'static str,
    /// Requests sent, failed ones included; `None` if it does not say.
    pub requests: Option<u64>,
    /// Requests that got no response, or one with a status of 400 or above.
    pub failed: u64,
    /// The duration of the run.
    pub seconds: Option<f64>,
    /// Requests a second, as the tool computes it.
    pub rate: Option<f64>,
    /// Its latencies; `None` if it reports none at all.
    pub latency: Option<ExternalLatency>,
}

/// Latencies in microseconds, as far as a tool reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExternalLatency {
    /// The median.
    pub p50_us: Option<u64>,
    /// The 90th percentile.
    pub p90_us: Option<u64>,
    /// The 99th percentile.
    pub p99_us: Option<u64>,
    /// The 99.9th percentile.
    pub p999_us: Option<u64>,
    /// The true maximum.
    pub worst_us: Option<u64>,
}

impl External {
    /// Returns the number of responses with a status below 400.
    pub fn succeeded(&self) -> Option<u64> {
        self.requests.map(|requests| requests.saturating_sub(self.failed))
    }
}

impl ExternalLatency {
    /// Returns `None` if nothing is known.
    fn known(self) -> Option<ExternalLatency> {
        (self != ExternalLatency::default()).then_some(self)
    }
}

/// Finds the summary of a load generator in the output of a command, which may contain other text. Returns `None` if
/// there is no known summary.
pub fn read(output: &str) -> Option<External> {
    hey::read(output)
        .or_else(|| wrk::read(output))
        .or_else(|| ab::read(output))
        .or_else(|| siege::read(output))
        .or_else(|| vegeta::read(output))
        .or_else(|| objects(output).find_map(|object| of_json(&object)))
}

fn of_json(object: &Value) -> Option<External> {
    siege::read_json(object).or_else(|| oha::read_json(object)).or_else(|| vegeta::read_json(object))
}

/// Returns the JSON objects that begin at the beginning of a line.
fn objects(output: &str) -> impl Iterator<Item = Value> + '_ {
    let starts = output.match_indices('{').map(|(at, _)| at);
    let mut read_until = 0;
    starts.filter(|at| *at == 0 || output.as_bytes()[*at - 1] == b'\n').filter_map(move |at| {
        if at < read_until {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(&output[at..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        read_until = at + values.byte_offset();
        value.is_object().then_some(value)
    })
}

#[cfg(test)]
mod tests;

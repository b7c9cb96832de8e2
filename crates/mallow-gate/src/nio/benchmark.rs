//! Limits as package-benchmark keeps them: a file for each benchmark, `TARGET.BENCHMARK.p90.json`, with a limit for each metric.
//!
//! Its limits are for the 90th percentile of many runs, ours are held against the least: what disturbs a count adds to it, so the
//! least is never above. A bare number is exact there unless the benchmark's code allows a tolerance, which no file tells; here
//! the suite's tolerance stands for it.

use super::ThresholdsError;
use crate::json_error::placed;
use crate::limit::{Limit, Tolerance};
use crate::measurement::Metric;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The ending of such a file's name.
pub const BENCHMARK_ENDING: &str = ".p90.json";

/// The names that package-benchmark has for what is counted here.
const METRICS: [(&str, Metric); 4] = [
    ("mallocCountTotal", Metric::Allocations),
    ("mallocBytesCount", Metric::Bytes),
    ("mallocFreeDelta", Metric::Remaining),
    ("memoryLeakedBytes", Metric::RemainingBytes),
];

/// The limits of a project's benchmarks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchmarkLimits {
    /// By `TARGET.BENCHMARK`.
    of: BTreeMap<String, Vec<(Metric, Allowed)>>,
    /// Metrics of the file that are none of ours.
    others: BTreeSet<String>,
}

/// A limit as it stands in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Allowed {
    /// So much.
    Exactly(u64),
    /// Between two ends, near a value, or both.
    Within(Within),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Within {
    min: Option<u64>,
    max: Option<u64>,
    base: Option<u64>,
    tolerance_percentage: Option<f64>,
}

impl BenchmarkLimits {
    /// Adds a file's content. `name` is the file's own, `path` what an error calls it.
    ///
    /// # Errors
    /// When it is no such file: a sentence with the place.
    pub fn add(&mut self, name: &str, text: &str, path: &str) -> Result<(), ThresholdsError> {
        let wrong = |what: String| ThresholdsError(format!("{path} is not a file of thresholds: {what}."));
        let limits: BTreeMap<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(placed(&error)))?;
        let mut known = Vec::new();
        for (word, limit) in limits {
            let Some(allowed) = Allowed::of(limit) else {
                return Err(wrong(format!(
                    "the limit of {word:?} is neither a whole number, nor has it a min and a max that is no less, or a base and a \
                     tolerancePercentage"
                )));
            };
            match METRICS.iter().find(|(theirs, _)| *theirs == word) {
                Some((_, metric)) => known.push((*metric, allowed)),
                None => _ = self.others.insert(word),
            }
        }
        self.of.insert(plain(name.strip_suffix(BENCHMARK_ENDING).unwrap_or(name)), known);
        Ok(())
    }

    /// Returns metrics of the files that are not judged, in the order of their names.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(String::as_str)
    }

    /// The limits of what has one of these names; none where no file is for it. A name without its target is enough where only one target
    /// has such a benchmark.
    pub fn of(&self, names: &[&str], tolerance: Option<Tolerance>) -> Vec<(Metric, Limit)> {
        let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let whole = names.iter().find_map(|name| self.of.get(name));
        let limits = whole.or_else(|| names.iter().find_map(|name| self.only_one_called(name)));
        let limit = |(metric, allowed): &(Metric, Allowed)| (*metric, allowed.limit(tolerance));
        limits.into_iter().flatten().map(limit).collect()
    }

    fn only_one_called(&self, benchmark: &str) -> Option<&Vec<(Metric, Allowed)>> {
        let is_called = |whole: &String| whole.split_once('.').is_some_and(|(_, own)| own == benchmark);
        let mut found = self.of.iter().filter(|(whole, _)| is_called(whole));
        found.next().filter(|_| found.next().is_none()).map(|(_, limits)| limits)
    }
}

impl Allowed {
    /// Returns `None` if there is no limit that can be judged.
    fn of(limit: Value) -> Option<Allowed> {
        if let Some(exactly) = limit.as_u64() {
            return Some(Allowed::Exactly(exactly));
        }
        let within: Within = serde_json::from_value(limit).ok()?;
        within.makes_sense().then_some(Allowed::Within(within))
    }

    fn limit(&self, tolerance: Option<Tolerance>) -> Limit {
        let (min, max) = match self {
            Allowed::Exactly(value) => {
                let slack = tolerance.map_or(0, |tolerance| tolerance.of(*value));
                (value.saturating_sub(slack), value.saturating_add(slack))
            }
            Allowed::Within(within) => within.ends(),
        };
        Limit::Absolute { min: Some(min), max: Some(max) }
    }
}

impl Within {
    fn makes_sense(&self) -> bool {
        let ends = self.min.zip(self.max).map(|(min, max)| min <= max);
        let near =
            self.base.zip(self.tolerance_percentage).map(|(_, share)| share > 0.0 && share.is_finite());
        (ends.is_some() || near.is_some()) && ends != Some(false) && near != Some(false)
    }

    /// Returns the intersection of all of its conditions.
    fn ends(&self) -> (u64, u64) {
        let mut ends = (self.min.unwrap_or(0), self.max.unwrap_or(u64::MAX));
        if let (Some(base), Some(share)) = (self.base, self.tolerance_percentage) {
            let slack = (base as f64 * share / 100.0).floor() as u64;
            ends.0 = ends.0.max(base.saturating_sub(slack));
            ends.1 = ends.1.min(base.saturating_add(slack));
        }
        ends
    }
}

/// A name as files have it: what is no letter, digit, `_`, `-` or `.` is a `_`.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars().map(|c| if is_plain(&c) { c } else { '_' }).collect()
}

#[cfg(test)]
#[path = "benchmark_tests.rs"]
mod tests;

//! Files of limits: one flat JSON object, test name to greatest number of allocations.

use super::LogTest;
use crate::json_error::placed;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;

/// Counts below this get no slack.
const EXACT_BELOW: u64 = 1000;

/// Limits are multiples of this.
const STEP: u64 = 50;

/// The limits of a project, by test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds(BTreeMap<String, u64>);

/// Why a file of limits cannot be used: a sentence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ThresholdsError(pub String);

/// The limit that the framework's script makes of a count: below 1000 the count itself, else the next multiple of 50
/// that is greater.
pub const fn slack(raw: u64) -> u64 {
    if raw < EXACT_BELOW { raw } else { (raw - raw % STEP).saturating_add(STEP) }
}

impl Thresholds {
    /// Reads a file's content. `path` is for the error's sentence.
    pub fn from_text(text: &str, path: &str) -> Result<Thresholds, ThresholdsError> {
        let wrong =
            |error| ThresholdsError(format!("{path} is not a file of thresholds: {}.", placed(&error)));
        serde_json::from_str(text).map_err(wrong)
    }

    /// Limits with the framework's slack from a log. Tests without a total have none, nor those whose runs were all thrown
    /// away.
    pub fn of_log(tests: &[LogTest]) -> Thresholds {
        let limit = |test: &LogTest| {
            let total = u64::try_from(test.total_allocations?).ok()?;
            Some((test.name.clone(), slack(total)))
        };
        Thresholds(tests.iter().filter_map(limit).collect())
    }

    /// The limit of a test.
    pub fn get(&self, test: &str) -> Option<u64> {
        self.0.get(test).copied()
    }

    /// Sets the limit of a test.
    pub fn set(&mut self, test: &str, limit: u64) {
        self.0.insert(test.to_owned(), limit);
    }

    /// All limits in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, limit)| (name.as_str(), *limit))
    }

    /// The file's content: sorted, indented by four blanks, a newline at the end.
    pub fn to_text(&self) -> String {
        let name = |name: &String| serde_json::to_string(name).unwrap_or_default();
        let lines: Vec<String> =
            self.0.iter().map(|(test, limit)| format!("    {}: {limit}", name(test))).collect();
        if lines.is_empty() { "{}\n".to_owned() } else { format!("{{\n{}\n}}\n", lines.join(",\n")) }
    }
}

impl<'de> Deserialize<'de> for Thresholds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByTest)
    }
}

struct ByTest;

impl<'de> Visitor<'de> for ByTest {
    type Value = Thresholds;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of test names and whole numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Thresholds, A::Error> {
        let mut limits = BTreeMap::new();
        // A name that occurs twice is the result of a bad merge; which limit was meant is unknown.
        while let Some((name, limit)) = map.next_entry::<String, u64>()? {
            if limits.insert(name.clone(), limit).is_some() {
                return Err(serde::de::Error::custom(format!("{name:?} is there twice")));
            }
        }
        Ok(Thresholds(limits))
    }
}

#[cfg(test)]
#[path = "thresholds_tests.rs"]
mod tests;

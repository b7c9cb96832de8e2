//! Regions of a program: what each is called, and which of two builds' are the same.

use crate::measurement::Measurement;
use crate::result::{Outcome, TestResult};

/// The name of a region beside others; the test's own where the region is called as the test is.
pub fn name_among_others(test: &str, region: &str) -> String {
    let short = test.strip_prefix("test_").unwrap_or(test);
    if region == test || region == short || region.is_empty() {
        return test.to_owned();
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    format!("{test}.{}", region.chars().map(safe).collect::<String>())
}

/// Returns another build's measurement of the same region; its only one if that has another name there.
pub fn of_same<'a>(measurement: &Measurement, before: &'a [Measurement]) -> Option<&'a Measurement> {
    let by = |is_same: fn(&Measurement, &Measurement) -> bool| {
        before.iter().find(|other| is_same(other, measurement))
    };
    by(|a, b| a.region == b.region).or_else(|| by(|a, b| a.name == b.name))
}

/// A result for each region that another build has and this one has not.
pub fn vanished(before: &[Measurement], measured: &[Measurement]) -> Vec<TestResult> {
    let is_met = |other: &&Measurement| {
        measured
            .iter()
            .any(|measurement| of_same(measurement, before).is_some_and(|same| same.name == other.name))
    };
    let gone = before.iter().filter(|other| !is_met(other));
    let result = |gone: &Measurement| {
        let sentence =
            format!("The other build has the region `{}`, and this one ran without it.", gone.region);
        TestResult::unmeasured(&gone.name, Outcome::Stale, sentence)
    };
    gone.map(result).collect()
}

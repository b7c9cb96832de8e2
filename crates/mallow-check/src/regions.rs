//! A region keeps the name of its baseline, however many regions its program has.
//!
//! A program's only region is called as its test is, and several are told apart behind a dot. So a second region would rename the first,
//! and one that is gone would rename the other: what they cost would be held against nothing.

use crate::baseline::{Baseline, BaselineError, Baselines, Found};
use crate::measurement::Measurement;
use crate::result::{Outcome, TestResult};
use crate::run::name_among_others;

/// Gives the regions of a test the names that their baselines have.
pub(crate) fn keep_names(
    test: &str,
    measured: &mut [Measurement],
    baselines: &Baselines,
) -> Result<(), BaselineError> {
    for measurement in measured {
        let long = name_among_others(test, &measurement.region);
        if long == test || is_there(baselines, &long, measurement, |_| true)? {
            measurement.name = long;
        } else if is_there(baselines, test, measurement, |baseline| baseline.region == measurement.region)? {
            measurement.name = test.to_owned();
        }
    }
    Ok(())
}

/// Whether a name has a baseline of a kind, in whatever environment.
fn is_there(
    baselines: &Baselines,
    name: &str,
    measurement: &Measurement,
    is_wanted: impl Fn(&Baseline) -> bool,
) -> Result<bool, BaselineError> {
    Ok(match baselines.find(name, &measurement.environment)? {
        Found::Exact(baseline) => is_wanted(&baseline),
        Found::OtherEnvironment(baselines) => baselines.iter().any(is_wanted),
        Found::None => false,
    })
}

/// What another build measured of the same region; of the only one when it has another name there.
pub(crate) fn of_same<'a>(measurement: &Measurement, before: &'a [Measurement]) -> Option<&'a Measurement> {
    let by = |is_same: fn(&Measurement, &Measurement) -> bool| {
        before.iter().find(|other| is_same(other, measurement))
    };
    by(|a, b| a.region == b.region).or_else(|| by(|a, b| a.name == b.name))
}

/// A result for each region that another build has and this one has not.
pub(crate) fn vanished(before: &[Measurement], measured: &[Measurement]) -> Vec<TestResult> {
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

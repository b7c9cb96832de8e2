//! A region keeps the name of its baseline, however many regions its program has.
//!
//! A program's only region is called as its test is, and several are told apart behind a dot. So a second region would rename the first,
//! and one that is gone would rename the other: what they cost would be held against nothing.

use crate::baselines::Baselines;
use mallow_gate::baseline::{Baseline, BaselineError, Found};
use mallow_gate::measurement::Measurement;
use mallow_gate::regions::name_among_others;

/// Renames the regions of a test to the names that their baselines have.
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

/// Returns whether a name has a baseline of a kind, in whatever environment.
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

//! Files that a suite or a command line names: baselines, limits, logs, earlier reports.

use super::request::Check;
use mallow_check::baselines::Baselines;
use mallow_check::suite::Suite;
use mallow_query::Failure;
use std::path::Path;

/// A file's text, or why it cannot be had.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read {}: {}.", path.display(), mallow_query::reason(&error)))
    })
}

/// Where a suite's baselines are.
pub(crate) fn baselines(check: &Check, suite: &Suite) -> Result<Baselines, Failure> {
    let folder = check.baselines.folder.as_ref().unwrap_or(&suite.gate.baselines);
    Ok(Baselines::open(folder)?)
}

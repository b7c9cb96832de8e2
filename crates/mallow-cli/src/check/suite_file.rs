//! Files that a suite or a command line names: baselines, limits, logs, earlier reports.

use super::request::{Check, Job};
use mallow_check::baselines::Baselines;
use mallow_check::suite::Suite;
use mallow_query::Failure;
use std::path::Path;

/// Reads a file's text.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    mallow_files::open_input(path).and_then(std::io::read_to_string).map_err(|error| {
        Failure::new(format!("cannot read {}: {}.", path.display(), mallow_query::reason(&error)))
    })
}

/// Returns where the requested baselines of a suite are.
pub(crate) fn baselines(check: &Check, suite: &Suite) -> Result<Baselines, Failure> {
    let all = all_baselines(check, suite)?;
    let Some(name) = &check.baselines.name else { return Ok(all) };
    let named = all.named(name)?;
    let is_written = matches!(check.job, Job::Update { .. } | Job::UpdateFrom { .. });
    if !is_written && !named.is_there() {
        return Err(Failure::new(format!(
            "there is no baseline {name:?}{}; `mallow check --update --baseline {name}` makes it.",
            known(&all)?
        )));
    }
    Ok(named)
}

/// Returns the folder of all of a suite's baselines.
pub(crate) fn all_baselines(check: &Check, suite: &Suite) -> Result<Baselines, Failure> {
    let folder = check.baselines.folder.as_ref().unwrap_or(&suite.gate.baselines);
    Ok(Baselines::open(folder)?)
}

/// Returns the existing names.
fn known(all: &Baselines) -> Result<String, Failure> {
    let names: Vec<String> = all.list_named()?.into_iter().map(|named| named.name).collect();
    Ok(if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) })
}

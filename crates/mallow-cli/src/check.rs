//! `mallow check`: runs a project's allocation tests and shows the results.

mod checkout;
mod ci_environment;
mod judging;
mod list;
mod markers;
mod outputs;
mod prepared;
pub(crate) mod request;
mod shell;
mod suite_file;
mod unhooked;
mod update;

use mallow_query::Failure;
use request::{Check, Job};

/// Executes what was requested.
pub(crate) fn run(check: &Check) -> Result<u8, Failure> {
    match &check.job {
        Job::Judge | Job::Against(_) | Job::Update { .. } => judging::run(check),
        Job::UpdateFrom { report, allow_missing_counts } => {
            update::from_report(check, report, *allow_missing_counts)
        }
        Job::List => list::list(check),
        Job::ListBaselines => list::baselines(check),
        Job::Unhooked => unhooked::run(check),
        Job::Shell(name) => shell::open(check, name),
        Job::Markers(folder) => markers::write(folder),
    }
}

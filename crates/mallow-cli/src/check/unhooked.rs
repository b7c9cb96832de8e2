//! `mallow check --no-hooks`: runs the tests without mallow.

use super::judging::workdir;
use super::prepared::{command, line, prepared};
use super::request::Check;
use crate::{exit_code, output};
use mallow_check::suite::Suite;
use mallow_query::{Failure, reason};

/// Builds and runs the tests without mallow; returns the first status that is not 0.
pub(crate) fn run(check: &Check) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &check.only)?.without_possible_ones();
    let workdir = workdir(&suite.folder)?;
    let mut status = exit_code::FINE;
    for prepared in prepared(check, &suite, &workdir)? {
        output::tell(&format!("- {}\n", line(&prepared)));
        let ended = command(&prepared)
            .status()
            .map_err(|error| Failure::new(format!("cannot run {}: {}.", prepared.name, reason(&error))))?;
        if !ended.success() {
            output::tell(&format!("mallow: {} ended with {ended}.\n", prepared.name));
            status = exit_code::FAILED;
        }
    }
    Ok(status)
}

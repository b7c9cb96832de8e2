//! Tests that are built and not measured: building, running, and printing their command.

use super::judging::tools;
use super::request::Check;
use crate::output;
use mallow_check::build::{self, Prepared};
use mallow_check::suite::Suite;
use mallow_check::workdir::Workdir;
use mallow_query::Failure;
use std::process::Command;

/// Builds the tests of a suite. The compiler's output precedes an error.
pub(super) fn prepared(check: &Check, suite: &Suite, workdir: &Workdir) -> Result<Vec<Prepared>, Failure> {
    let prepared =
        build::prepare(suite, workdir, &tools(check)).and_then(|tests| tests.into_iter().collect());
    prepared.map_err(|error| {
        output::tell(&error.output);
        error.into()
    })
}

/// Returns a test's command with its folder and its variables.
pub(super) fn command(test: &Prepared) -> Command {
    let mut command = Command::new(&test.command[0]);
    command.args(&test.command[1..]).current_dir(&test.directory);
    command.envs(test.environment.iter().map(|(name, value)| (name, value)));
    command
}

/// Returns the command as it can be typed.
pub(super) fn line(test: &Prepared) -> String {
    let words: Vec<String> =
        test.command.iter().map(|word| mallow_text::shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

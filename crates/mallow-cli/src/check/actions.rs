//! What else can be done with a suite: list it, run it without hooks, open a shell in it, take the markers out.

use super::judging::{self, tools, workdir};
use super::request::Check;
use crate::{exit_code, output};
use mallow_check::build::{self, Prepared};
use mallow_check::shims;
use mallow_check::suite::Suite;
use mallow_check::workdir::Workdir;
use mallow_query::Failure;
use mallow_text::printable;
use std::path::Path;
use std::process::Command;

/// All names that `--only` takes, one on a line: the tests', each with those of its regions behind it, as far as they are known from
/// the last run or from baselines.
pub(crate) fn list(check: &Check) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &check.only)?;
    let with_baseline = judging::baselines(check, &suite)?.all_names()?;
    let mut names: Vec<String> = Vec::new();
    for test in &suite.tests {
        let mut results = Workdir::noted_regions(&suite.folder, &test.name);
        if results.is_empty() {
            results = with_baseline.iter().filter(|name| suite.test_of(name) == test.name).cloned().collect();
        }
        results.retain(|result| *result != test.name && suite.test_of(result) == test.name);
        let all = std::iter::once(test.name.clone()).chain(results);
        names.extend(all.filter(|name| suite.selection.names(&test.name, name)));
    }
    output::to_stdout(|out| names.iter().try_for_each(|name| writeln!(out, "{}", printable(name))))?;
    Ok(exit_code::FINE)
}

/// Writes the header and the shims.
pub(crate) fn markers(folder: &Path) -> Result<u8, Failure> {
    shims::write_into(folder).map_err(|error| Failure::writing(folder, &error))?;
    output::tell(&format!("The header and the shims are in {}.\n", folder.display()));
    Ok(exit_code::FINE)
}

/// Builds and runs the tests as anybody would run them; gives the first status that is not 0.
pub(crate) fn without_hooks(check: &Check) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &check.only)?.without_possible_ones();
    let workdir = workdir(&suite.folder)?;
    let mut status = exit_code::FINE;
    for prepared in prepared(check, &suite, &workdir)? {
        output::tell(&format!("- {}\n", line(&prepared)));
        let ended = command(&prepared).status().map_err(|error| {
            Failure::new(format!("cannot run {}: {}.", prepared.name, mallow_query::reason(&error)))
        })?;
        if !ended.success() {
            output::tell(&format!("mallow: {} ended with {ended}.\n", prepared.name));
            status = exit_code::FAILED;
        }
    }
    Ok(status)
}

/// Leaves the person in the working folder, with the test built and its variables set.
pub(crate) fn shell(check: &Check, name: &str) -> Result<u8, Failure> {
    let suite = Suite::open(check.suite.as_deref(), &[name.to_owned()])?.without_possible_ones();
    let workdir = workdir(&suite.folder)?;
    let Some(test) = prepared(check, &suite, &workdir)?.into_iter().next() else {
        return Err(Failure::new(format!("there is no test {name}.")));
    };
    output::tell(&format!("Built. To run it: {}\nLeave with exit.\n", line(&test)));
    let shell =
        std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(&shell);
    command.envs(test.environment.iter().map(|(name, value)| (name, value)));
    let ended = command.current_dir(workdir.root()).status().map_err(|error| {
        let shell = shell.to_string_lossy().into_owned();
        Failure::new(format!("cannot run the shell {shell}: {}.", mallow_query::reason(&error)))
    })?;
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit_code::FAILED))
}

fn prepared(check: &Check, suite: &Suite, workdir: &Workdir) -> Result<Vec<Prepared>, Failure> {
    let prepared =
        build::prepare(suite, workdir, &tools(check)).and_then(|tests| tests.into_iter().collect());
    prepared.map_err(|error| {
        output::tell(&error.output);
        error.into()
    })
}

fn command(test: &Prepared) -> Command {
    let mut command = Command::new(&test.command[0]);
    command.args(&test.command[1..]).current_dir(&test.directory);
    command.envs(test.environment.iter().map(|(name, value)| (name, value)));
    command
}

/// The command as it can be typed.
fn line(test: &Prepared) -> String {
    let words: Vec<String> =
        test.command.iter().map(|word| mallow_text::shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

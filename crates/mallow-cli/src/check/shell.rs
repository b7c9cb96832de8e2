//! `mallow check --shell`: builds one test and starts a shell.

use super::judging::workdir;
use super::prepared::{line, prepared};
use super::request::Check;
use crate::{exit_code, output};
use mallow_check::suite::Suite;
use mallow_query::{Failure, reason};
use std::process::Command;

/// Starts a shell in the work directory, with the test built and its variables set.
pub(crate) fn open(check: &Check, name: &str) -> Result<u8, Failure> {
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
        Failure::new(format!("cannot run the shell {shell}: {}.", reason(&error)))
    })?;
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit_code::FAILED))
}

//! Commands of a build, run to their end, with what they print.

use super::BuildError;
use crate::suite::Suite;
use crate::workdir::Workdir;
use mallow_launch::open_files;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Runs a command that has to succeed. `purpose` is what it does, as in `cannot …`.
pub(super) fn run(purpose: &str, command: &[OsString], directory: &Path) -> Result<(), BuildError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(BuildError::new(format!("cannot {purpose}: there is no command for it")));
    };
    let mut process = Command::new(program);
    // Compilers believe PWD when it leads to the working directory, and write it into debug information.
    process.args(arguments).current_dir(directory).env("PWD", directory);
    finish(purpose, &program.to_string_lossy(), process)
}

/// Runs the suite's `build` line with the shell, in the suite's folder. It finds `mallow.h` by `MALLOW_INCLUDE`.
pub(super) fn run_build_line(line: &str, suite: &Suite, workdir: &Workdir) -> Result<(), BuildError> {
    let mut process = Command::new("/bin/sh");
    process.args(["-c", line]).current_dir(&suite.folder).env("PWD", &suite.folder);
    process.env("MALLOW_INCLUDE", workdir.include());
    finish(&format!("build with `{line}`"), "it", process)
}

fn finish(purpose: &str, who: &str, mut process: Command) -> Result<(), BuildError> {
    match run_with_output(&mut process) {
        Ok((status, _)) if status.success() => Ok(()),
        Ok((status, output)) => {
            Err(BuildError { sentence: format!("cannot {purpose}: {who} ended with {status}"), output })
        }
        Err(error) => Err(BuildError::new(format!("cannot {purpose}: {who} cannot be run: {error}"))),
    }
}

/// Both streams into one file, so that what they say stays in its order.
pub(super) fn run_with_output(process: &mut Command) -> io::Result<(ExitStatus, String)> {
    let mut output = anonymous_file()?;
    process.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let status = open_files::as_inherited(|| process.spawn())?.wait()?;
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

fn anonymous_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

//! Starting the command with the recorder in its environment.

use crate::error::CollectError;
use crate::executable;
use crate::preload;
use crate::session::Session;
use crate::setting::Setting;
use mallow_wire::hello::SESSION_VARIABLE;
use mallow_wire::shared::MODE_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Child, Command};

/// What the recorder is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every event with its stack.
    Record,
    /// The same, with the program's marks and its file descriptors.
    Check,
    /// Every event, and an aide that speaks to the allocator.
    Soak,
    /// Sums only.
    Stat,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Record => "record",
            Mode::Check => "check",
            Mode::Soak => "soak",
            Mode::Stat => "stat",
        }
    }
}

/// A command that can be recorded.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    command: &'a [OsString],
}

impl<'a> Launch<'a> {
    /// Checks the command; nothing has been started or written yet.
    pub(crate) fn new(command: &'a [OsString]) -> Result<Launch<'a>, CollectError> {
        let program = command.first().ok_or_else(|| CollectError::CannotRun {
            command: String::new(),
            cause: std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command was given"),
        })?;
        executable::check(program)?;
        Ok(Launch { command })
    }

    /// The program's name without directories.
    pub(crate) fn name(&self) -> String {
        let program = Path::new(&self.command[0]);
        program.file_name().unwrap_or(OsStr::new("program")).to_string_lossy().into_owned()
    }

    /// The command line, blanks between arguments.
    pub(crate) fn line(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Starts it.
    pub(crate) fn start(
        &self,
        session: &Session,
        library: &[u8],
        mode: Mode,
        setting: &Setting,
    ) -> Result<Child, CollectError> {
        let path = preload::unpack(library)?;
        let mut preloads = path.into_os_string();
        // Ours first: a preloaded allocator is then the next library behind us.
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preloads.push(":");
            preloads.push(others);
        }
        let refused = |cause| CollectError::CannotRun {
            command: self.command[0].to_string_lossy().into_owned(),
            cause,
        };
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .env("LD_PRELOAD", preloads)
            .env(SESSION_VARIABLE, session.variable())
            .env(MODE_VARIABLE, mode.word());
        setting.put_around(&mut command).map_err(refused)?;
        setting.within_processors(|| command.spawn()).map_err(refused)
    }
}

/// Starts a command as it is, without the recorder.
///
/// # Errors
/// When it cannot be run.
pub fn start_unrecorded(words: &[OsString], setting: &Setting) -> Result<Child, CollectError> {
    let refused = |cause| CollectError::CannotRun {
        command: words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default(),
        cause,
    };
    let (program, arguments) =
        words.split_first().ok_or_else(|| refused(std::io::ErrorKind::InvalidInput.into()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    setting.put_around(&mut command).map_err(refused)?;
    setting.within_processors(|| command.spawn()).map_err(refused)
}

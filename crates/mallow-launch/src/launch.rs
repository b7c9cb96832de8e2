//! Starting a command, with a library in it or without.

use crate::executable::obstacle_sentence;
use crate::{Content, LaunchError, SpawnOptions, executable, preload, static_start};
use mallow_wire::executable::Obstacle;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// What is put into the command's processes.
#[derive(Clone, Copy, Debug)]
pub struct Preload<'a> {
    /// How the library's file name begins.
    pub name_start: &'a str,
    /// The library.
    pub library: Content<'a>,
    /// Variables that tell the library what to do.
    pub variables: &'a [(&'a str, &'a str)],
}

/// A command that a library can be put into.
#[derive(Debug)]
pub struct Launch<'a> {
    command: &'a [OsString],
    static_program: Option<PathBuf>,
    /// It has the recorder in it, and wants nothing put there.
    records_itself: bool,
}

impl<'a> Launch<'a> {
    /// Checks the command; nothing has been started or written yet.
    ///
    /// # Errors
    /// When there is no such program, or a library does not get into it.
    pub fn new(command: &'a [OsString]) -> Result<Launch<'a>, LaunchError> {
        let program = command.first().ok_or_else(|| LaunchError::CannotRun {
            command: String::new(),
            cause: std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command was given"),
        })?;
        let static_program = executable::check(program)?;
        let records_itself = static_program.as_deref().is_some_and(executable::records_itself);
        Ok(Launch { command, static_program, records_itself })
    }

    /// The same for a library that a loader has to load.
    ///
    /// # Errors
    /// When there is no loader, too.
    pub fn by_loader(command: &'a [OsString]) -> Result<Launch<'a>, LaunchError> {
        let launch = Launch::new(command)?;
        match &launch.static_program {
            Some(path) => Err(LaunchError::CannotPreload {
                path: path.clone(),
                reason: obstacle_sentence(Obstacle::Static),
            }),
            None => Ok(launch),
        }
    }

    /// The static executable that the command becomes, which no loader starts and which has no recorder of its own.
    pub fn static_program(&self) -> Option<&Path> {
        self.static_program.as_deref().filter(|_| !self.records_itself)
    }

    /// Checks only whether there is such a program: enough for who puts nothing into it.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(command: &[OsString]) -> Result<(), LaunchError> {
        let program = command.first().map_or(OsStr::new(""), |program| program);
        executable::find(program).map(drop).map_err(LaunchError::cannot_run(program))
    }

    /// The program's name without directories.
    pub fn name(&self) -> String {
        let program = Path::new(&self.command[0]);
        program.file_name().unwrap_or(OsStr::new("program")).to_string_lossy().into_owned()
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the library cannot be unpacked, or the system refuses the program.
    pub fn start(&self, inside: Preload<'_>, options: &SpawnOptions) -> Result<Child, LaunchError> {
        let path = preload::unpack_library(inside.name_start, inside.library)?;
        let mut preloads = path.clone().into_os_string();
        // Ours first: a preloaded allocator is then the next library behind us.
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preloads.push(":");
            preloads.push(others);
        }
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("LD_PRELOAD", preloads).envs(inside.variables.iter().copied());
        match self.static_program() {
            None => options.spawn(command).map_err(LaunchError::cannot_run(&self.command[0])),
            Some(program) => static_start::start(command, &path, options)
                .map_err(|error| error.named(&self.command[0], program)),
        }
    }
}

/// Starts a command as it is, without the recorder.
///
/// # Errors
/// When it cannot be run.
pub fn start_unrecorded(words: &[OsString], options: &SpawnOptions) -> Result<Child, LaunchError> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| LaunchError::cannot_run(OsStr::new(""))(std::io::ErrorKind::InvalidInput.into()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    options.spawn(command).map_err(LaunchError::cannot_run(program))
}

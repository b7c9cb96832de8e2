//! Why a command could not be started: a sentence with its cause and, where there is one, its cure.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such program.
    #[error("cannot run '{command}': {cause}")]
    CannotRun {
        /// The command's first word.
        command: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The program is there, but the preload library cannot get into it.
    #[error("cannot record '{path}' by preload: {reason}")]
    CannotPreload {
        /// The program.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: &'static str,
    },
    /// The program is static, and the library cannot be mapped into it.
    #[error("cannot record '{path}', a static program: {reason}")]
    CannotInject {
        /// The program.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: String,
    },
    /// The preload library could not be unpacked.
    #[error(
        "cannot unpack the recorder into {places}; a directory that allows execution is needed, name one with TMPDIR"
    )]
    CannotUnpack {
        /// What was tried, with what the system said.
        places: String,
    },
    /// No handlers for signals.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
}

impl LaunchError {
    /// What the system said of a program.
    pub(crate) fn cannot_run(program: &OsStr) -> impl FnOnce(io::Error) -> LaunchError {
        let command = program.to_string_lossy().into_owned();
        |cause| LaunchError::CannotRun { command, cause }
    }
}

//! What can keep a recording from being made. Each error is a sentence with its cause and, where there is
//! one, its cure.

use mallow_launch::LaunchError;
use std::io;
use std::path::PathBuf;

/// A recording that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The command could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The trace's file exists.
    #[error("'{path}' exists; choose another name with -o, or overwrite it with --force")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The trace would go where it cannot be read again.
    #[error(
        "'{path}' is no regular file, and a trace is read again when the program has ended; name a file with -o"
    )]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The trace cannot be written.
    #[error("cannot write the trace '{path}': {cause}")]
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Something else that the system refused.
    #[error("cannot {what}: {cause}")]
    System {
        /// What failed.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

impl CollectError {
    /// For `map_err` on system calls.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> CollectError {
        move |cause| CollectError::System { what, cause: cause.into() }
    }
}

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
    /// The preload library could not be opened.
    #[error(
        "cannot unpack the recorder: mallow may have only {most} files open (ulimit -Hn), too few to start"
    )]
    TooFewFiles {
        /// How many may be open.
        most: u64,
    },
    /// No handlers for signals.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
}

impl LaunchError {
    /// What the system said of a program.
    pub(crate) fn cannot_run(program: &OsStr) -> impl FnOnce(io::Error) -> LaunchError {
        let command = program.to_string_lossy().into_owned();
        |cause| LaunchError::CannotRun { command, cause: explained(cause) }
    }
}

/// What the system said when it refused to run a program, in words that say what to do.
pub fn explained(cause: io::Error) -> io::Error {
    match cause.raw_os_error() {
        // A shell would take it for a script of its own.
        Some(code) if code == rustix::io::Errno::NOEXEC.raw_os_error() => {
            io::Error::new(cause.kind(), NO_FORMAT)
        }
        Some(code) if code == rustix::io::Errno::AGAIN.raw_os_error() => {
            io::Error::new(cause.kind(), TOO_MANY)
        }
        _ => cause,
    }
}

const NO_FORMAT: &str = "it is a script without a line of #!, before which its shell has to be named (sh FILE), or no program for this machine";

const TOO_MANY: &str = "this user may have no more processes and threads (ulimit -u, or a container's limit), of which mallow needs six itself";

#[cfg(test)]
mod tests {
    use super::explained;
    use crate::{SpawnOptions, start_unrecorded};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_limit_on_processes_is_named() {
        let again = std::io::Error::from_raw_os_error(rustix::io::Errno::AGAIN.raw_os_error());
        assert!(explained(again).to_string().contains("(ulimit -u,"));
    }

    #[test]
    fn a_script_without_its_shell_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "exit 3\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = start_unrecorded(&[script.into()], &SpawnOptions::default()).unwrap_err().to_string();
        assert!(error.contains("script': it is a script without a line of #!"), "{error}");
    }
}

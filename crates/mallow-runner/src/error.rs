//! Why a benchmark could not be made: a sentence with its cause and, where there is one, its cure.

use mallow_launch::LaunchError;
use std::io;

/// Why a benchmark, or a run of it, could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// A command cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A line has no words, or quotes that do not close.
    #[error("'{line}' has no command in it, or its quotes do not close")]
    NoWords {
        /// The line.
        line: String,
    },
    /// The kernel refused to run the program.
    #[error("cannot run '{line}': {cause}")]
    CannotRun {
        /// The command line.
        line: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A command ended with something else than 0.
    #[error(
        "'{line}' ended with {end} in {run}; see what it says with --show-output, or go on in spite of it with --ignore-failure"
    )]
    Failed {
        /// The command line.
        line: String,
        /// The status or the signal.
        end: String,
        /// Which run it was.
        run: String,
    },
    /// Something that has to succeed did not.
    #[error("the {what} command '{line}' ended with {end}; put `|| true` behind it if that does no harm")]
    Step {
        /// Which one, such as setup.
        what: &'static str,
        /// The command line.
        line: String,
        /// The status or the signal.
        end: String,
    },
    /// A file for stdin or stdout cannot be used.
    #[error("cannot use '{path}': {cause}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The spawner said nothing.
    #[error("the spawner of '{line}' ended without a report ({end}); another user may have killed it")]
    NoReport {
        /// The command line.
        line: String,
        /// How it ended.
        end: String,
    },
    /// The shell cannot be measured.
    #[error("the shell '{shell}' cannot run an empty command: {reason}")]
    Shell {
        /// Its words.
        shell: String,
        /// Why.
        reason: String,
    },
    /// Anything of the system's.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
}

//! Errors: why there is no verdict.

use mallow_collect::CollectError;
use mallow_launch::LaunchError;
use mallow_load::LoadError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a soak cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The port is already in use.
    #[error(
        "{address} is taken{}; stop that program yourself (mallow ends nothing that it did not start) or choose another port",
        by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default()
    )]
    PortTaken {
        /// The address.
        address: SocketAddr,
        /// Its owner: `nginx (process 123)`.
        by: Option<String>,
    },
    /// It did not become ready.
    #[error("the server was not ready after {seconds:.0} s: {last}{}{}", listens(elsewhere), said(said_last))]
    NotReady {
        /// How long it was waited for.
        seconds: f64,
        /// What was seen last.
        last: String,
        /// The addresses on which it listens instead.
        elsewhere: Vec<SocketAddr>,
        /// The end of its output.
        said_last: String,
    },
    /// It exited before it was ready.
    #[error("the server ended before it was ready ({how}){}", said(said_last))]
    EndedEarly {
        /// How.
        how: String,
        /// The end of its output.
        said_last: String,
    },
    /// It was interrupted before there was anything to judge.
    #[error("interrupted before there was anything to judge")]
    Interrupted,
    /// There is no such process, or it must not be read.
    #[error("cannot look at process {pid}: {cause}")]
    NoProcess {
        /// The process.
        pid: u32,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// The load cannot be sent.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The server cannot be started or recorded.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// The server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A file cannot be written.
    #[error("cannot write '{}': {cause}", path.display())]
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read '{}': {cause}", path.display())]
    CannotRead {
        /// The file.
        path: PathBuf,
        /// A sentence.
        cause: String,
    },
    /// The system refused something.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The system's reason.
        cause: std::io::Error,
    },
}

fn listens(elsewhere: &[SocketAddr]) -> String {
    let Some(first) = elsewhere.first() else { return String::new() };
    let all: Vec<String> = elsewhere.iter().map(SocketAddr::to_string).collect();
    format!("; it listens at {}, so perhaps --url http://{first}/ is meant", all.join(" and "))
}

fn said(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("; its last words:\n{text}"),
    }
}

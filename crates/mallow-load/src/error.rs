//! Errors of this crate.

use std::path::PathBuf;

/// Why a load cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file with targets cannot be read.
    #[error("cannot read '{}': {cause}", path.display())]
    CannotRead {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// A line of it is invalid.
    #[error("'{}', line {line}: {what}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// A sentence.
        what: String,
    },
    /// There is nothing to request.
    #[error("'{}' holds no request: {hint}", path.display())]
    NoTargets {
        /// The file.
        path: PathBuf,
        /// How to fix it.
        hint: &'static str,
    },
    /// An address that cannot be used.
    #[error("'{url}' cannot be loaded: {what}")]
    BadUrl {
        /// As given.
        url: String,
        /// A sentence.
        what: String,
    },
    /// The address is another machine's.
    #[error("'{host}' is not this machine; add --allow-remote to send load there")]
    NotLoopback {
        /// The host.
        host: String,
    },
    /// An invalid load.
    #[error("this load cannot be made: {what}")]
    BadLoad {
        /// A sentence.
        what: String,
    },
    /// A certificate file that cannot be used.
    #[error("'{}' cannot be used as an authority: {what}", path.display())]
    BadAuthority {
        /// The file.
        path: PathBuf,
        /// A sentence.
        what: String,
    },
    /// TLS with a server failed.
    #[error("there is no TLS with {endpoint}: {what}")]
    NoTls {
        /// The server.
        endpoint: String,
        /// A sentence.
        what: String,
    },
    /// A server does not answer.
    #[error("{endpoint} does not answer ({what})")]
    NoAnswer {
        /// The server.
        endpoint: String,
        /// Why, in a few words.
        what: String,
    },
    /// The generator itself failed.
    #[error("the load generator cannot {what}: {cause}")]
    System {
        /// What it tried to do.
        what: &'static str,
        /// The system's reason.
        cause: std::io::Error,
    },
}

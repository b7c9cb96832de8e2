//! Why a library could not be mapped into a static executable.

use nix::errno::Errno;

/// Why a library could not be mapped into a static executable. The end of a sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The system refused something.
    #[error("the system does not let mallow {what} before its first instruction ({cause})")]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The process ended meanwhile.
    #[error("it ended before its first instruction")]
    Ended,
    /// The executable is not what its headers should say.
    #[error("its headers are damaged")]
    Damaged,
    /// The library is not what the loader understands: a fault of mallow's.
    #[error("the recorder's library cannot be mapped ({0})")]
    Library(&'static str),
}

impl InjectError {
    /// What the system refused.
    pub(crate) fn refused<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> InjectError {
        move |cause| InjectError::Refused { what, cause: cause.into() }
    }

    /// The same for an answer of `ptrace`: a process that is gone has ended.
    pub(crate) fn of_trace(what: &'static str) -> impl FnOnce(Errno) -> InjectError {
        move |cause| match cause {
            Errno::ESRCH => InjectError::Ended,
            cause => InjectError::Refused { what, cause: cause.into() },
        }
    }
}

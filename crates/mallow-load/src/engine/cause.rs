//! Why a request got no response, in two words.

use super::connector::OpenError;
use std::error::Error;
use std::io::ErrorKind;

/// The short names that reports group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Refused,
    Reset,
    Timeout,
    ClosedEarly,
    BadAnswer,
    NoPort,
    NoDescriptor,
    Unreachable,
    Handshake,
}

impl Cause {
    /// Every cause; its index here is its number.
    pub(crate) const ALL: [Cause; 9] = [
        Cause::Refused,
        Cause::Reset,
        Cause::Timeout,
        Cause::ClosedEarly,
        Cause::BadAnswer,
        Cause::NoPort,
        Cause::NoDescriptor,
        Cause::Unreachable,
        Cause::Handshake,
    ];

    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::Refused => "connection refused",
            Cause::Reset => "connection reset",
            Cause::Timeout => "timeout",
            Cause::ClosedEarly => "closed early",
            Cause::BadAnswer => "bad answer",
            Cause::NoPort => "no free port",
            Cause::NoDescriptor => "too many open files",
            Cause::Unreachable => "cannot connect",
            Cause::Handshake => "TLS handshake failed",
        }
    }

    /// Returns whether this is how an exchange fails on a connection that the server had closed in the meantime.
    pub(crate) fn is_of_a_closed_connection(self) -> bool {
        matches!(self, Cause::ClosedEarly | Cause::Reset)
    }

    /// Why a connection could not be opened.
    pub(crate) fn of_opening(error: &OpenError) -> Cause {
        match error {
            OpenError::Connecting(error) => Cause::of_connecting(error),
            OpenError::Handshake(_) => Cause::Handshake,
        }
    }

    fn of_connecting(error: &std::io::Error) -> Cause {
        match (error.kind(), error.raw_os_error().map(rustix::io::Errno::from_raw_os_error)) {
            (_, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)) => Cause::NoDescriptor,
            (ErrorKind::ConnectionRefused, _) => Cause::Refused,
            (ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted, _) => Cause::Reset,
            (ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse, _) => Cause::NoPort,
            (ErrorKind::TimedOut, _) => Cause::Timeout,
            _ => Cause::Unreachable,
        }
    }

    /// Why an exchange failed.
    pub(crate) fn of_exchange(error: &hyper::Error) -> Cause {
        if let Some(kind) = system_reason(error) {
            return match kind {
                ErrorKind::TimedOut => Cause::Timeout,
                ErrorKind::UnexpectedEof => Cause::ClosedEarly,
                _ => Cause::Reset,
            };
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Cause::ClosedEarly;
        }
        Cause::BadAnswer
    }
}

fn system_reason(error: &hyper::Error) -> Option<ErrorKind> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.kind());
        }
        source = error.source();
    }
    None
}

//! Why a trace could not be read.

use crate::{FileHeaderError, TRACE_VERSION, TRACE_VERSION_OLDEST, looks_like};
use std::io;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Another kind of file.
    #[error("this is not a mallow trace but {looks_like}")]
    NotATrace {
        /// Such as `a gzip file`.
        looks_like: &'static str,
    },
    /// Written by a mallow whose traces are no longer read.
    #[error(
        "this trace has version {found}, and this mallow reads versions from {oldest} on: \
         read it with the mallow that recorded it, or record again"
    )]
    TooOld {
        /// The file's version.
        found: u32,
        /// The oldest that can be read.
        oldest: u32,
    },
    /// Written by a newer mallow.
    #[error(
        "this trace has version {found}, and this mallow reads versions up to {newest}: use a newer mallow"
    )]
    TooNew {
        /// The file's version.
        found: u32,
        /// The newest that can be read.
        newest: u32,
    },
    /// Nothing can be read from it.
    #[error("this trace is damaged at byte {offset}, and nothing before it can be used: record again")]
    Damaged {
        /// Where the first damaged chunk begins.
        offset: u64,
    },
    /// The request needs events, and the trace has metrics only.
    #[error(
        "this trace has no events, only their sums, so reallocations cannot be attributed at their origin: \
         record again without --summary-only"
    )]
    NoEvents,
    /// The system refused.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl TraceError {
    /// The error for a file that begins with these bytes.
    pub(crate) fn of_header(error: FileHeaderError, bytes: &[u8]) -> TraceError {
        match error {
            FileHeaderError::NotATrace => TraceError::NotATrace { looks_like: looks_like(bytes) },
            FileHeaderError::Damaged => TraceError::Damaged { offset: 0 },
            FileHeaderError::TooOld { found } => TraceError::TooOld { found, oldest: TRACE_VERSION_OLDEST },
            FileHeaderError::TooNew { found } => TraceError::TooNew { found, newest: TRACE_VERSION },
        }
    }
}

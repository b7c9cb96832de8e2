//! Errors of reading a file: one sentence with the position.

use crate::Format;
use crate::gc_log::GcLogError;
use mallow_trace::TraceError;
use std::fmt;
use std::io;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The system reported an error, or a compressed file cannot be decompressed.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// An error in a trace of mallow's.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file violates the rules of its format.
    #[error("this {format} makes no sense at {position}: {expected} was expected")]
    Damaged {
        /// The format that was assumed.
        format: Format,
        /// The position.
        position: Position,
        /// What was expected, such as `a number of blocks`.
        expected: String,
    },
    /// An unsupported version or variant.
    #[error("this {format} cannot be read: {reason}")]
    Unsupported {
        /// The format that was assumed.
        format: Format,
        /// The reason and the cure, without a full stop.
        reason: String,
    },
    /// The beginning matches no known format.
    #[error(
        "this is not a profile but {looks_like}; mallow reads its own traces and the files of heaptrack, DHAT, massif, memcheck \
         (XML), jemalloc, gperftools, pprof, perf, dtrace and bpftrace, folded stacks, and heap dumps of Ruby, Python, V8 and the JVM"
    )]
    Unknown {
        /// Such as `an ELF program or library`.
        looks_like: &'static str,
    },
    /// A file without sites.
    #[error(
        "this {format} tells {} and not what allocated; show it with {}",
        format.kind().subject(), format.kind().command()
    )]
    NotAProfile {
        /// Its format.
        format: Format,
    },
    /// A file that is not a log of a garbage collector.
    #[error("this {format} tells {} and is no gc_tracer log; show it with {}", format.kind().subject(), format.kind().command())]
    NotAGcLog {
        /// Its format.
        format: Format,
    },
    /// A file that is not a snapshot of a heap.
    #[error("this {format} tells {} and is no snapshot of a heap; show it with {}", format.kind().subject(), format.kind().command())]
    NotASnapshot {
        /// Its format.
        format: Format,
    },
    /// An error in a log of a garbage collector.
    #[error(transparent)]
    GcLog(#[from] GcLogError),
}

/// A position in the decompressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

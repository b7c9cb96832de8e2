//! Why a file could not be read: one sentence with the place.

use crate::Format;
use crate::gc_log::GcLogError;
use mallow_trace::TraceError;
use std::fmt;
use std::io;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The system refused, or a compressed file does not unpack.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// About a trace of ours.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file breaks its format's rules.
    #[error("this {format} makes no sense at {position}: {expected} was expected")]
    Damaged {
        /// What it was read as.
        format: Format,
        /// Where.
        position: Position,
        /// What should have stood there, such as `a number of blocks`.
        expected: String,
    },
    /// A version or variant that is not read.
    #[error("this {format} cannot be read: {reason}")]
    Unsupported {
        /// What it was read as.
        format: Format,
        /// What is in the way and what to do, without a full stop.
        reason: String,
    },
    /// No format that we know begins like this.
    #[error(
        "this is not a profile but {looks_like}; mallow reads its own traces and the files of heaptrack, DHAT, massif, memcheck \
         (XML), jemalloc, gperftools, pprof, perf, dtrace and bpftrace, folded stacks, and heap dumps of Ruby, Python, V8 and the JVM"
    )]
    Unknown {
        /// Such as `an ELF program or library`.
        looks_like: &'static str,
    },
    /// A file that has no sites.
    #[error(
        "this {format} tells {} and not what allocated; show it with {}",
        format.kind().subject(), format.kind().command()
    )]
    NotAProfile {
        /// What it is.
        format: Format,
    },
    /// A file that is no log of a collector.
    #[error("this {format} tells {} and is no gc_tracer log; show it with {}", format.kind().subject(), format.kind().command())]
    NotAGcLog {
        /// What it is.
        format: Format,
    },
    /// A file that is no snapshot of a heap.
    #[error("this {format} tells {} and is no snapshot of a heap; show it with {}", format.kind().subject(), format.kind().command())]
    NotASnapshot {
        /// What it is.
        format: Format,
    },
    /// About a log of a collector.
    #[error(transparent)]
    GcLog(#[from] GcLogError),
}

/// A place in a file, after its compression is undone.
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

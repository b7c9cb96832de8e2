//! Why a trace could not be read, and what the file seems to be instead.

use mallow_wire::trace::{FileHeaderError, TRACE_VERSION, TRACE_VERSION_OLDEST};
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
    /// Nothing can be had from it.
    #[error("this trace is damaged at byte {offset}, and nothing before it can be used: record again")]
    Damaged {
        /// Where the first damaged chunk begins.
        offset: u64,
    },
    /// What was asked for needs events, and the trace has figures only.
    #[error(
        "this trace holds no events, only their sums, so reallocations cannot be booked at their origin: \
         record again without --summary-only"
    )]
    NoEvents,
    /// The system refused.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl TraceError {
    /// The error for a file that begins with these bytes.
    pub(super) fn of_header(error: FileHeaderError, bytes: &[u8]) -> TraceError {
        match error {
            FileHeaderError::NotATrace => TraceError::NotATrace { looks_like: looks_like(bytes) },
            FileHeaderError::Damaged => TraceError::Damaged { offset: 0 },
            FileHeaderError::TooOld { found } => TraceError::TooOld { found, oldest: TRACE_VERSION_OLDEST },
            FileHeaderError::TooNew { found } => TraceError::TooNew { found, newest: TRACE_VERSION },
        }
    }
}

/// Whether it goes on as JSON does: many scripts begin with a brace, and many settings with a bracket.
fn begins_json(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else { return false };
    let next = rest.trim_ascii_start().first();
    match first {
        b'{' => matches!(next, None | Some(b'"' | b'}')),
        b'[' => matches!(next, None | Some(b'"' | b']' | b'{' | b'[' | b'-' | b'0'..=b'9')),
        _ => false,
    }
}

/// What a file seems to be that is not a trace.
pub(crate) fn looks_like(bytes: &[u8]) -> &'static str {
    const BEGINNINGS: [(&[u8], &str); 10] = [
        (b"\x7fELF", "an ELF program or library"),
        (b"\x1f\x8b", "a gzip file (heaptrack and pprof write such files)"),
        (b"\x28\xb5\x2f\xfd", "a zstd file (heaptrack writes such files)"),
        (b"PK\x03\x04", "a zip file"),
        (b"#!", "a script"),
        (b"JAVA PROFILE ", "a Java heap dump"),
        (b"heap profile:", "a heap profile of gperftools"),
        (b"heap_v2/", "a heap profile of jemalloc"),
        (b"desc: ", "a massif file"),
        (b"<?xml", "an XML file"),
    ];
    if bytes.is_empty() {
        return "an empty file";
    }
    if let Some((_, what)) = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)) {
        return what;
    }
    let text = bytes.trim_ascii_start();
    match text.first() {
        // Heaptrack's text begins with a line of its version: `v 10500 3`.
        _ if text.starts_with(b"v ") && text.get(2).is_some_and(u8::is_ascii_hexdigit) => "a heaptrack file",
        _ if begins_json(text) => "a JSON file",
        _ if bytes.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace()) => "a text file",
        _ => "a file of an unknown kind",
    }
}

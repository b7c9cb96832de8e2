//! The trace file: its format, its writer and its reader.
//!
//! The collector writes a trace while the program runs ([`TraceWriter`]); an import or a soak writes only the metrics of a profile
//! ([`write_profile()`]). A reader ([`Trace`]) turns it into a profile again, or iterates over its events. Metrics, names and exits
//! are types of `mallow_profile`, so a new one is encoded in one place ([`Payload`] of [`Summary`]). This crate must never decide
//! what a metric means, and must never panic on the contents of a file. The format below does not change: old traces stay readable
//! for ever.
//!
//! In reading order: `chunk` and `varint`, `payload`, then the contents of chunks: `recording`, `process`, `stacks`, `symbols`,
//! `summary` and `events`; `writer` and `write_profile`; `reader`.
//!
//! # The file
//!
//! All fixed numbers are little endian. A file is a header of 16 bytes and then chunks up to the end of the
//! file:
//!
//! ```text
//! file header   magic 89 4D 41 4C 4C 4F 57 0A | version u32 | crc32 of the 12 bytes before
//! chunk         kind u16 | flags u16 | process u32 | payload_bytes u32 | raw_bytes u32 | reserved u32 = 0 | crc32 u32
//!               payload, payload_bytes long
//! ```
//!
//! A chunk's crc32 (IEEE, as in gzip) covers the other 20 bytes of its header and the payload as stored. Flag
//! bit 0 says that the payload is one zstd frame of `raw_bytes` bytes; without it both lengths are equal.
//! `process` is the process's index, counted from 0 in the order of registration, or `u32::MAX` in a chunk of the whole
//! recording. A reader skips unknown kinds.
//!
//! Payloads are made of varints (LEB128: seven bits per byte, the lowest first, the high bit set in all but
//! the last), signed numbers as zigzag varints (0, −1, 1, −2 are 0, 1, 2, 3), and strings (a varint length,
//! then UTF-8). Bytes that follow a payload's last field are ignored, so that a field can be added at the
//! end.
//!
//! | kind | payload | belongs to |
//! |---|---|---|
//! | 1 | [`Recording`] | the recording, first |
//! | 2 | [`ProcessStart`] | a process, before its other chunks |
//! | 3 | [`Modules`] | a process, any number |
//! | 4 | [`Stacks`] | a process, any number; ids continue from the chunk before |
//! | 5 | [`Threads`] | a process, any number; a later name replaces an earlier one |
//! | 6 | events, see [`EventEncoder`] | a process, any number, in order |
//! | 7 | [`Samples`] | a process, any number |
//! | 8 | [`ProcessEnd`] | a process, at most one |
//! | 9 | [`Symbols`] | the recording, any number |
//! | 10 | [`Summary`] | a process, at most one |
//! | 11 | [`End`] | the recording, last |
//! | 12 | [`Origin`] | the recording, if it was imported from another tool's file |
//! | 13 | [`LiveSamples`] | a process, any number, if there are no events |
//! | 14 | [`Unseen`] | the recording, if something is missing from it |
//! | 15 | [`Unnamed`] | the recording, if names could not be looked up |
//! | 16 | [`Accesses`] | a process, at most one, if its source knows reads and writes |
//! | 17 | [`TruncatedStacks`] | the recording, if stacks of it end too early |
//!
//! For example, a file that contains only an end after 300 µs (`AC 02`) is:
//!
//! ```text
//! 89 4D 41 4C 4C 4F 57 0A  01 00 00 00  <crc>          file header, version 1
//! 0B 00  00 00  FF FF FF FF  02 00 00 00  02 00 00 00  00 00 00 00  <crc>   END, stored plain, no process, 2 bytes
//! AC 02                                                300 = 0b10_0101100
//! ```

mod accesses;
mod chunk;
mod column;
mod error;
mod event_copy;
mod events;
mod large_pages;
mod looks_like;
mod payload;
mod process;
mod reader;
mod recording;
mod stacks;
mod summary;
mod symbols;
mod varint;
mod write_profile;
mod writer;

pub use accesses::{Accesses, SiteAccess};
pub use chunk::{
    CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, FILE_HEADER_BYTES, FLAG_ZSTD, FileHeaderError, NO_PROCESS,
    TRACE_MAGIC, TRACE_VERSION, TRACE_VERSION_OLDEST, check_file_header, file_header,
};
pub use error::TraceError;
pub use event_copy::EventCopy;
pub use events::{EVENTS_PER_CHUNK, EventDecoder, EventEncoder, EventVisitor, decode_events};
pub use large_pages::want_large_pages;
pub use looks_like::looks_like;
pub use payload::Payload;
pub use process::{LiveSamples, ProcessEnd, ProcessStart, Samples, ThreadName, Threads};
pub use reader::{Trace, read_bytes, read_bytes_with, read_file, read_file_with};
pub use recording::{End, Origin, TruncatedStacks, Unnamed, Unseen};
pub use stacks::{MappedModule, Modules, StackNode, Stacks};
pub use summary::encode_ended;
pub use symbols::{SymbolFrame, SymbolKey, SymbolLocation, SymbolProcess, SymbolStrings, Symbols};
pub use varint::DecodeError;
pub use write_profile::{write_profile, write_profile_with};
pub use writer::TraceWriter;

#[cfg(doc)]
use mallow_profile::{Recording, Summary};

//! The trace file while it grows.

use crate::error::CollectError;
use mallow_trace::{ChunkKind, Payload, TraceWriter};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes chunks, and knows what the file is called.
#[derive(Debug)]
pub(crate) struct TraceFile {
    path: PathBuf,
    writer: TraceWriter<BufWriter<File>>,
}

/// Fast enough to keep up with 20 million events a second on part of one core; higher levels gain a tenth in
/// size.
const ZSTD_LEVEL: i32 = 1;

impl TraceFile {
    /// Begins a trace in a file that is open for writing.
    pub(crate) fn begin(path: &Path, file: File) -> Result<TraceFile, CollectError> {
        let writer = TraceWriter::new(BufWriter::with_capacity(1 << 18, file), ZSTD_LEVEL)
            .map_err(|cause| CollectError::CannotWrite { path: path.to_owned(), cause })?;
        Ok(TraceFile { path: path.to_owned(), writer })
    }

    /// The file's present name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file has got its final name.
    pub(crate) fn renamed(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Appends a chunk of one process.
    pub(crate) fn put<P: Payload>(&mut self, process: u32, payload: &P) -> Result<(), CollectError> {
        self.writer.put(process, payload).map_err(|cause| self.cannot_write(cause))
    }

    /// Appends a chunk of the whole recording.
    pub(crate) fn put_whole<P: Payload>(&mut self, payload: &P) -> Result<(), CollectError> {
        self.writer.put_whole(payload).map_err(|cause| self.cannot_write(cause))
    }

    /// Appends a chunk of a process's events.
    pub(crate) fn put_events(
        &mut self,
        process: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), CollectError> {
        self.writer.put_bytes(ChunkKind::EVENTS, process, encode).map_err(|cause| self.cannot_write(cause))
    }

    /// Hands everything to the system, so that a reader sees it.
    pub(crate) fn flush(&mut self) -> Result<(), CollectError> {
        self.writer.flush().map_err(|cause| self.cannot_write(cause))
    }

    fn cannot_write(&self, cause: io::Error) -> CollectError {
        CollectError::CannotWrite { path: self.path.clone(), cause }
    }
}

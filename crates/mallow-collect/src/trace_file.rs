//! The trace file while it grows.
//!
//! Chunks are appended and never rewritten, so a trace whose writer was killed is readable up to its last
//! complete chunk.

use crate::error::CollectError;
use mallow_wire::trace::{ChunkHeader, ChunkKind, FLAG_ZSTD, file_header};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes chunks.
#[derive(Debug)]
pub(crate) struct TraceFile {
    path: PathBuf,
    file: BufWriter<File>,
    compressor: Compressor,
    packed: Vec<u8>,
}

struct Compressor(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor")
    }
}

/// Fast enough to keep up with 20 million events a second on part of one core; higher levels gain a tenth in
/// size.
const ZSTD_LEVEL: i32 = 1;

/// Payloads below this many bytes are stored as they are.
const PLAIN_BYTES: usize = 256;

impl TraceFile {
    /// Begins a trace in a file that is open for writing.
    pub(crate) fn begin(path: &Path, file: File) -> Result<TraceFile, CollectError> {
        let compressor =
            zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(CollectError::system("start compression"))?;
        let mut trace = TraceFile {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 18, file),
            compressor: Compressor(compressor),
            packed: Vec::new(),
        };
        trace.file.write_all(&file_header()).map_err(|cause| trace.cannot_write(cause))?;
        Ok(trace)
    }

    /// The file's present name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file has got its final name.
    pub(crate) fn renamed(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Appends a chunk.
    pub(crate) fn chunk(
        &mut self,
        kind: ChunkKind,
        process: u32,
        payload: &[u8],
    ) -> Result<(), CollectError> {
        self.append(kind, process, payload).map_err(|cause| self.cannot_write(cause))
    }

    fn append(&mut self, kind: ChunkKind, process: u32, payload: &[u8]) -> io::Result<()> {
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "a chunk of more than 4 GiB");
        if payload.len() < PLAIN_BYTES {
            let header = ChunkHeader::new(kind, process, payload, None).ok_or_else(too_long)?;
            self.file.write_all(&header.to_bytes())?;
            return self.file.write_all(payload);
        }
        self.packed.resize(zstd::zstd_safe::compress_bound(payload.len()), 0);
        let packed_bytes = self.compressor.0.compress_to_buffer(payload, &mut self.packed)?;
        let packed = &self.packed[..packed_bytes];
        let header = ChunkHeader::new(kind, process, packed, Some(payload.len())).ok_or_else(too_long)?;
        debug_assert_eq!(header.flags, FLAG_ZSTD);
        self.file.write_all(&header.to_bytes())?;
        self.file.write_all(packed)
    }

    /// Hands everything to the system, so that a reader sees it.
    pub(crate) fn flush(&mut self) -> Result<(), CollectError> {
        self.file.flush().map_err(|cause| self.cannot_write(cause))
    }

    fn cannot_write(&self, cause: io::Error) -> CollectError {
        CollectError::CannotWrite { path: self.path.clone(), cause }
    }
}

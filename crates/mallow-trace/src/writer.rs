//! Writes chunks: frames them, and compresses those that are large enough.
//!
//! Chunks are appended and never rewritten, so a trace whose writer was killed is readable up to its last complete chunk.

use crate::{ChunkHeader, ChunkKind, NO_PROCESS, Payload, file_header};
use std::fmt;
use std::io::{self, Write};

/// Payloads below this many bytes are stored as they are.
const PLAIN_BYTES: usize = 256;

/// A trace in the making.
pub struct TraceWriter<W> {
    out: W,
    zstd: zstd::bulk::Compressor<'static>,
    payload: Vec<u8>,
    packed: Vec<u8>,
}

impl<W> fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceWriter")
    }
}

impl<W: Write> TraceWriter<W> {
    /// Writes the file's header. The level is that of zstd.
    ///
    /// # Errors
    /// What `out` refused, as in all that writes.
    pub fn new(mut out: W, zstd_level: i32) -> io::Result<TraceWriter<W>> {
        let zstd = zstd::bulk::Compressor::new(zstd_level)?;
        out.write_all(&file_header())?;
        Ok(TraceWriter { out, zstd, payload: Vec::new(), packed: Vec::new() })
    }

    /// Appends a chunk of one process, by its index.
    ///
    /// # Errors
    /// What `out` refused, or a payload of more than 4 GiB.
    pub fn put<P: Payload>(&mut self, process: u32, payload: &P) -> io::Result<()> {
        self.put_bytes(P::KIND, process, |out| payload.encode(out))
    }

    /// Appends a chunk of the whole recording.
    ///
    /// # Errors
    /// As [`TraceWriter::put`].
    pub fn put_whole<P: Payload>(&mut self, payload: &P) -> io::Result<()> {
        self.put(NO_PROCESS, payload)
    }

    /// Appends a chunk whose payload `encode` appends to its argument.
    ///
    /// # Errors
    /// As [`TraceWriter::put`].
    pub fn put_bytes(
        &mut self,
        kind: ChunkKind,
        process: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        self.payload.clear();
        encode(&mut self.payload);
        let raw_bytes = (self.payload.len() >= PLAIN_BYTES).then_some(self.payload.len());
        let stored = match raw_bytes {
            None => &self.payload[..],
            Some(raw_bytes) => {
                self.packed.resize(zstd::zstd_safe::compress_bound(raw_bytes), 0);
                let packed_bytes = self.zstd.compress_to_buffer(&self.payload, &mut self.packed)?;
                &self.packed[..packed_bytes]
            }
        };
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "a chunk of more than 4 GiB");
        let header = ChunkHeader::new(kind, process, stored, raw_bytes).ok_or_else(too_long)?;
        self.out.write_all(&header.to_bytes())?;
        self.out.write_all(stored)
    }

    /// Appends a chunk of another trace as it is.
    pub(crate) fn put_stored(&mut self, header: &ChunkHeader, stored: &[u8]) -> io::Result<()> {
        self.out.write_all(&header.to_bytes())?;
        self.out.write_all(stored)
    }

    /// Hands everything to the system, so that a reader sees it.
    ///
    /// # Errors
    /// What `out` refused.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

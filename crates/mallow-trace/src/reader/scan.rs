//! Walks a file from chunk to chunk, checks each, and decompresses.

use crate::TraceError;
use crate::{CHUNK_HEADER_BYTES, ChunkHeader, FILE_HEADER_BYTES, FLAG_ZSTD, check_file_header};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// Above this, decompression grows with what comes out, since a chunk's header may promise anything.
const RAW_BYTES_RESERVED_MAX: usize = 16 << 20;

/// How many bytes of a foreign file are looked at to name it.
const LOOK_BYTES: u64 = 64;

/// What stands at a place of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An intact chunk, whose payload is now in the buffer.
    Chunk(Place),
    /// A chunk that does not match its checksum. The walk goes on behind it.
    Damaged(Place),
    /// Fewer bytes than a chunk, or than the chunk there promises. The walk is over.
    Torn(u64),
    /// The file's end.
    End,
}

/// A chunk and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) header: ChunkHeader,
}

pub(super) struct Scan<R> {
    source: R,
    length: u64,
    offset: u64,
    stored: Vec<u8>,
    raw: Vec<u8>,
    zstd: zstd::bulk::Decompressor<'static>,
}

impl<R> fmt::Debug for Scan<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("length", &self.length)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl<R: Read + Seek> Scan<R> {
    /// Checks the file's header.
    pub(super) fn open(mut source: R) -> Result<Scan<R>, TraceError> {
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let mut beginning = Vec::new();
        source.by_ref().take(LOOK_BYTES).read_to_end(&mut beginning)?;
        check_file_header(&beginning).map_err(|error| TraceError::of_header(error, &beginning))?;
        let mut scan = Scan {
            source,
            length,
            offset: 0,
            stored: Vec::new(),
            raw: Vec::new(),
            zstd: zstd::bulk::Decompressor::new()?,
        };
        scan.go_to(FILE_HEADER_BYTES as u64)?;
        Ok(scan)
    }

    /// Continues the walk at a chunk seen before.
    pub(super) fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.offset = self.source.seek(SeekFrom::Start(offset))?;
        Ok(())
    }

    /// Reads and checks the next chunk.
    pub(super) fn next(&mut self) -> io::Result<Found> {
        let offset = self.offset;
        let left = self.length.saturating_sub(offset);
        if left == 0 {
            return Ok(Found::End);
        }
        let mut header = [0; CHUNK_HEADER_BYTES];
        if left < header.len() as u64 {
            return Ok(Found::Torn(offset));
        }
        self.source.read_exact(&mut header)?;
        let header = ChunkHeader::from_bytes(&header);
        let chunk_bytes = CHUNK_HEADER_BYTES as u64 + u64::from(header.payload_bytes);
        if left < chunk_bytes {
            return Ok(Found::Torn(offset));
        }
        self.stored.resize(header.payload_bytes as usize, 0);
        self.source.read_exact(&mut self.stored)?;
        self.offset = offset + chunk_bytes;
        let place = Place { offset, header };
        Ok(if header.is_intact(&self.stored) { Found::Chunk(place) } else { Found::Damaged(place) })
    }

    /// The payload of the chunk that [`Scan::next`] gave, decompressed. None when it does not decompress to
    /// the length that its header states.
    pub(super) fn payload(&mut self, header: &ChunkHeader) -> Option<&[u8]> {
        let raw_bytes = header.raw_bytes as usize;
        if header.flags & FLAG_ZSTD == 0 {
            return (raw_bytes == self.stored.len()).then_some(&self.stored);
        }
        self.raw.clear();
        if raw_bytes <= RAW_BYTES_RESERVED_MAX {
            self.raw.reserve(raw_bytes);
            self.zstd.decompress_to_buffer(&self.stored, &mut self.raw).ok()?;
        } else {
            let decoder = zstd::stream::Decoder::with_buffer(&self.stored[..]).ok()?;
            decoder.take(u64::from(header.raw_bytes) + 1).read_to_end(&mut self.raw).ok()?;
        }
        (self.raw.len() == raw_bytes).then_some(&self.raw)
    }
}

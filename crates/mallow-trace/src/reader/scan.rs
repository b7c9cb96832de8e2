//! Walks a file from chunk to chunk, checks each, and decompresses.

use crate::TraceError;
use crate::{CHUNK_HEADER_BYTES, ChunkHeader, ChunkKind, FILE_HEADER_BYTES, FLAG_ZSTD, check_file_header};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// Above this, the buffer grows with the decompressed bytes, since a chunk's header may claim any size.
const RAW_BYTES_RESERVED_MAX: usize = 16 << 20;

/// The maximal size of all chunks that stay in memory, for each byte of the file: those of real traces have a tenth
/// of it.
const RAW_PER_STORED_MAX: u64 = 64;
/// The size that is allowed in any file.
const RAW_BYTES_ALLOWED: u64 = 16 << 20;

/// How many bytes of a foreign file are read to recognise it.
const LOOK_BYTES: u64 = 64;

/// The contents at an offset of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An intact chunk, whose payload is now in the buffer.
    Chunk(Place),
    /// A chunk that does not match its checksum. The scan continues after it.
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
    /// Made for the first compressed chunk: zstd asks what the processor can do, which in a virtual machine costs more than a small file.
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// The chunks before this place have been counted.
    counted_to: u64,
    raw_bytes_left: u64,
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
            zstd: None,
            counted_to: 0,
            raw_bytes_left: RAW_BYTES_ALLOWED.max(length.saturating_mul(RAW_PER_STORED_MAX)),
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

    /// Returns the payload of the chunk that [`Scan::next`] gave, as it is stored.
    pub(super) fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Returns whether a chunk that [`Scan::next`] gave is too large for its file, with those before it: a file that a few bytes make large is a trap.
    fn is_beyond_budget(&mut self, header: &ChunkHeader) -> bool {
        let raw_bytes = u64::from(header.raw_bytes);
        if header.kind == ChunkKind::EVENTS {
            // One at a time is in memory.
            return raw_bytes > RAW_BYTES_RESERVED_MAX as u64;
        }
        if self.offset > self.counted_to {
            self.counted_to = self.offset;
            self.raw_bytes_left = self.raw_bytes_left.saturating_sub(raw_bytes);
        }
        self.raw_bytes_left == 0
    }

    /// The payload of the chunk that [`Scan::next`] gave, decompressed. None when it does not decompress to
    /// the length that its header states, or that is far more than the file's size allows.
    pub(super) fn payload(&mut self, header: &ChunkHeader) -> Option<&[u8]> {
        if self.is_beyond_budget(header) {
            return None;
        }
        let raw_bytes = header.raw_bytes as usize;
        if header.flags & FLAG_ZSTD == 0 {
            return (raw_bytes == self.stored.len()).then_some(&self.stored);
        }
        self.raw.clear();
        if raw_bytes <= RAW_BYTES_RESERVED_MAX {
            self.raw.reserve(raw_bytes);
            let zstd = match &mut self.zstd {
                Some(zstd) => zstd,
                none => none.insert(zstd::bulk::Decompressor::new().ok()?),
            };
            zstd.decompress_to_buffer(&self.stored, &mut self.raw).ok()?;
        } else {
            let decoder = zstd::stream::Decoder::with_buffer(&self.stored[..]).ok()?;
            decoder.take(u64::from(header.raw_bytes) + 1).read_to_end(&mut self.raw).ok()?;
        }
        (self.raw.len() == raw_bytes).then_some(&self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_header;

    /// A file with chunks of zeros.
    fn traps(kind: ChunkKind, raw_bytes: &[usize]) -> Vec<u8> {
        let mut file = file_header().to_vec();
        for raw_bytes in raw_bytes {
            let stored = zstd::bulk::compress(&vec![0; *raw_bytes], 1).unwrap();
            let header = ChunkHeader::new(kind, 0, &stored, Some(*raw_bytes)).unwrap();
            file.extend(header.to_bytes());
            file.extend(stored);
        }
        file
    }

    /// Which chunks' payloads are read, in two walks.
    fn read(file: &[u8]) -> Vec<bool> {
        let mut scan = Scan::open(io::Cursor::new(file)).unwrap();
        let mut walk = || {
            let mut payloads = Vec::new();
            while let Found::Chunk(place) = scan.next().unwrap() {
                payloads.push(scan.payload(&place.header).is_some());
            }
            scan.go_to(FILE_HEADER_BYTES as u64).unwrap();
            payloads
        };
        let first = walk();
        assert_eq!(walk(), first.iter().map(|_| first.iter().all(|is_read| *is_read)).collect::<Vec<_>>());
        first
    }

    #[test]
    fn a_file_that_a_few_bytes_make_large_is_not_unpacked() {
        let mib = 1 << 20;
        assert_eq!(read(&traps(ChunkKind::STACKS, &[6 * mib, 6 * mib])), [true, true]);
        assert_eq!(
            read(&traps(ChunkKind::STACKS, &[6 * mib, 6 * mib, 6 * mib, 10])),
            [true, true, false, false]
        );
        assert_eq!(read(&traps(ChunkKind::MODULES, &[500 * mib])), [false]);
        // Events are read one chunk at a time.
        assert_eq!(read(&traps(ChunkKind::EVENTS, &[6 * mib; 8])), [true; 8]);
        assert_eq!(read(&traps(ChunkKind::EVENTS, &[17 * mib])), [false]);
    }
}

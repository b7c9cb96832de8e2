//! Traces as fuzz targets want them: without checksums.
//!
//! A changed byte in a real trace is caught by a checksum before any decoder sees it. In the *bare form* a chunk is
//! `kind u8 | process u8 (255: none) | payload length u16, little endian | payload`; [`trace_of`] puts the headers and checksums back, so
//! that the decoders behind them meet what the fuzzer made. It must never refuse an input.

use mallow_trace::{ChunkHeader, ChunkKind, NO_PROCESS, file_header};

const BARE_HEADER_BYTES: usize = 4;

/// A chunk: its kind, its process, and its payload as stored.
pub type Chunk<'a> = (ChunkKind, u32, &'a [u8]);

/// The chunks of an input in bare form. The last one may be cut short.
pub fn bare_chunks(data: &[u8]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut rest = data;
    while let Some((&[kind, process, low, high], after)) = rest.split_first_chunk::<BARE_HEADER_BYTES>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (payload, next) = after.split_at(length);
        let process = if process == u8::MAX { NO_PROCESS } else { u32::from(process) };
        chunks.push((ChunkKind(u16::from(kind)), process, payload));
        rest = next;
    }
    chunks
}

/// The same chunks in bare form. Only the lowest byte of a kind and of a process is kept, and 65,535 bytes of a payload.
pub fn bare_form(chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut data = Vec::new();
    for (kind, process, payload) in chunks {
        let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        data.extend([kind.0 as u8, *process as u8]);
        data.extend(length.to_le_bytes());
        data.extend(&payload[..usize::from(length)]);
    }
    data
}

/// A trace file of these chunks, with headers and checksums that are right.
pub fn trace_of(chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut trace = file_header().to_vec();
    for (kind, process, payload) in chunks {
        // A payload that does not fit 32 bits cannot come out of a fuzzer.
        let Some(header) = ChunkHeader::new(*kind, *process, payload, None) else { continue };
        trace.extend(header.to_bytes());
        trace.extend(*payload);
    }
    trace
}

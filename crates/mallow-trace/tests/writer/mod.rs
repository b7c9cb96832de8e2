//! Writes traces as a recording does, for tests and measurements.
#![allow(dead_code, reason = "each of those who include this uses a part of it")]

use mallow_profile::{Aggregator, BlockId, StackId, ThreadIndex};
use mallow_trace::{ChunkHeader, ChunkKind, EventEncoder, NO_PROCESS, file_header};

/// A trace in the making.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    zstd: zstd::bulk::Compressor<'static>,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer { bytes: file_header().to_vec(), zstd: zstd::bulk::Compressor::new(1).unwrap() }
    }

    /// A chunk stored plain, of a process or of the recording.
    pub(crate) fn chunk(
        &mut self,
        kind: ChunkKind,
        process: Option<u32>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let mut payload = Vec::new();
        encode(&mut payload);
        self.put(kind, process, &payload, None)
    }

    /// A chunk compressed.
    pub(crate) fn chunk_zstd(
        &mut self,
        kind: ChunkKind,
        process: Option<u32>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let mut payload = Vec::new();
        encode(&mut payload);
        let stored = self.zstd.compress(&payload).unwrap();
        self.put(kind, process, &stored, Some(payload.len()))
    }

    /// Gives the offset of the chunk.
    fn put(
        &mut self,
        kind: ChunkKind,
        process: Option<u32>,
        payload: &[u8],
        raw_bytes: Option<usize>,
    ) -> usize {
        let offset = self.bytes.len();
        let header = ChunkHeader::new(kind, process.unwrap_or(NO_PROCESS), payload, raw_bytes).unwrap();
        self.bytes.extend(header.to_bytes());
        self.bytes.extend(payload);
        offset
    }
}

/// A process that runs: its events go to the aggregator and to the encoder.
pub(crate) struct Running {
    pub(crate) aggregator: Aggregator,
    pub(crate) encoder: EventEncoder,
}

impl Running {
    pub(crate) fn new() -> Running {
        Running { aggregator: Aggregator::new(), encoder: EventEncoder::new() }
    }

    #[inline]
    pub(crate) fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> BlockId {
        let block = self.aggregator.alloc(ThreadIndex(thread), StackId(stack), size, time_us);
        self.encoder.alloc(thread, block.0, stack, size, time_us);
        block
    }

    #[inline]
    pub(crate) fn free(&mut self, thread: u32, block: BlockId, time_us: u64) {
        self.aggregator.free(ThreadIndex(thread), block, time_us);
        self.encoder.free(thread, block.0, time_us);
    }

    pub(crate) fn realloc(
        &mut self,
        thread: u32,
        old: BlockId,
        stack: u32,
        size: u64,
        time_us: u64,
    ) -> BlockId {
        let block = self.aggregator.realloc(ThreadIndex(thread), old, StackId(stack), size, time_us);
        self.encoder.realloc(thread, old.0, block.0, stack, size, time_us);
        block
    }
}

//! Where a collector puts what it reads: into a trace, or nowhere.

use crate::error::CollectError;
use mallow_trace::{ChunkKind, NO_PROCESS, Payload};

/// Takes chunks of a trace.
pub(crate) trait Sink {
    /// Takes a chunk, whose payload `encode` appends.
    fn chunk(
        &mut self,
        kind: ChunkKind,
        process: u32,
        encode: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), CollectError>;

    /// Hands everything to the system, so that a reader sees it.
    fn flush(&mut self) -> Result<(), CollectError>;
}

impl dyn Sink + '_ {
    /// Takes a chunk of one process.
    pub(crate) fn put<P: Payload>(&mut self, process: u32, payload: &P) -> Result<(), CollectError> {
        self.chunk(P::KIND, process, &mut |out| payload.encode(out))
    }

    /// Takes a chunk of the whole recording.
    pub(crate) fn put_whole<P: Payload>(&mut self, payload: &P) -> Result<(), CollectError> {
        self.put(NO_PROCESS, payload)
    }
}

/// Drops everything: for those who ask while the program runs.
pub(crate) struct NoSink;

impl Sink for NoSink {
    fn chunk(&mut self, _: ChunkKind, _: u32, _: &mut dyn FnMut(&mut Vec<u8>)) -> Result<(), CollectError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CollectError> {
        Ok(())
    }
}

//! What a chunk can hold: a type that knows its kind and its bytes.

use crate::{ChunkKind, DecodeError};

/// A chunk's payload, before compression. Events are no payload of this kind: [`crate::EventEncoder`] gathers them in columns.
pub trait Payload: Sized {
    /// The kind of its chunk.
    const KIND: ChunkKind;

    /// Appends the bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads the bytes.
    ///
    /// # Errors
    /// The place at which they are no such payload.
    fn decode(payload: &[u8]) -> Result<Self, DecodeError>;
}

//! Splits a stream into blocks of whole records, for several threads to parse.

use std::io::Read;

/// The number of bytes that are read at once.
const BLOCK_BYTES: usize = 3 << 20;
/// The maximum length of a record: a runtime writes one line for each object, and that has to fit into memory.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// Blocks that end at the end of a record.
pub(super) struct Blocks<R> {
    reader: R,
    /// What was read after the last record of the previous block.
    rest: Vec<u8>,
    /// The position of `rest` in the stream.
    at: u64,
    is_at_end: bool,
    failure: Option<String>,
}

/// A number of whole records.
pub(super) struct Block {
    /// Its position in the stream.
    pub(super) at: u64,
    /// Its bytes. In the last block, the last record may be truncated.
    pub(super) bytes: Vec<u8>,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R) -> Blocks<R> {
        Blocks { reader, rest: Vec::new(), at: 0, is_at_end: false, failure: None }
    }

    /// Returns the next block; `None` at the end. `last_start` returns where the last record in a slice begins, if a
    /// record begins there after the first byte.
    pub(super) fn next(&mut self, last_start: impl Fn(&[u8]) -> Option<usize>) -> Option<Block> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.reserve(BLOCK_BYTES);
        while !self.is_at_end {
            let known = bytes.len();
            match self.reader.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut bytes) {
                Ok(read) => self.is_at_end = read < BLOCK_BYTES,
                // What was read until then is in `bytes`.
                Err(error) => self.end(error.to_string()),
            }
            // A record may begin with the last byte that was there before.
            let from = known.saturating_sub(2);
            if let Some(start) = last_start(&bytes[from..]).filter(|_| !self.is_at_end) {
                self.rest = bytes.split_off(from + start);
                break;
            }
            if bytes.len() > RECORD_BYTES_MAX && !self.is_at_end {
                self.end("a record of more than 1 GiB".to_owned());
            }
        }
        let at = self.at;
        self.at += bytes.len() as u64;
        (!bytes.is_empty()).then_some(Block { at, bytes })
    }

    fn end(&mut self, reason: String) {
        self.is_at_end = true;
        self.failure = Some(reason);
    }

    /// Returns where the stream ended prematurely, and why.
    pub(super) fn failure(self) -> Option<(u64, String)> {
        self.failure.map(|reason| (self.at, reason))
    }
}

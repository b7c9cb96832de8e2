//! A stream cut into blocks of whole records, for several threads to read.

use std::io::Read;

/// What is read at once.
const BLOCK_BYTES: usize = 3 << 20;
/// A longer record is none: what a runtime writes of one object has a line, and that has to fit into memory.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// Blocks that end where a record ends.
pub(super) struct Blocks<R> {
    reader: R,
    /// What was read behind the last record of the block before.
    rest: Vec<u8>,
    /// Where `rest` begins in the stream.
    at: u64,
    is_at_end: bool,
    failure: Option<String>,
}

/// Some whole records.
pub(super) struct Block {
    /// Where it begins in the stream.
    pub(super) at: u64,
    /// Its bytes. Of the last block the last record may be cut off.
    pub(super) bytes: Vec<u8>,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R) -> Blocks<R> {
        Blocks { reader, rest: Vec::new(), at: 0, is_at_end: false, failure: None }
    }

    /// The next block; none at the end. `last_start` says where the last record in some bytes begins, if a record begins there at all
    /// behind the first byte.
    pub(super) fn next(&mut self, last_start: impl Fn(&[u8]) -> Option<usize>) -> Option<Block> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.reserve(BLOCK_BYTES);
        while !self.is_at_end {
            let known = bytes.len();
            match self.reader.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut bytes) {
                Ok(read) => self.is_at_end = read < BLOCK_BYTES,
                // What was read until then stays in `bytes`.
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

    /// Where the stream ended before its end, and why.
    pub(super) fn failure(self) -> Option<(u64, String)> {
        self.failure.map(|reason| (self.at, reason))
    }
}

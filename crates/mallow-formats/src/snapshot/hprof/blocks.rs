//! The bytes of a dump, one block at a time: one thread reads and decompresses, another one parses.
//!
//! A dump may be larger than memory, and it may be truncated while it is read: so it is never loaded as a whole and never mapped.

use crate::source::Source;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The number of bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 20;
/// The maximum number of blocks that wait for the parser.
const BLOCKS_AHEAD: usize = 2;
/// The maximum size of a piece. All fields of the largest class that a JVM accepts are smaller.
pub(super) const PIECE_BYTES_MAX: usize = 1 << 19;

/// A stream of bytes.
pub(super) struct Bytes {
    blocks: Receiver<io::Result<Block>>,
    used: Sender<Vec<u8>>,
    /// The end of the previous block, which ends at [`PIECE_BYTES_MAX`], followed by the present one.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Added to `at`, results in the position in the file.
    base: u64,
    failure: Option<String>,
}

/// A buffer with room in front, and its end.
struct Block {
    buffer: Vec<u8>,
    end: usize,
}

/// Reads what `open` opens and passes it to `parse`.
///
/// # Errors
/// Those of `open` and of `parse`.
pub(super) fn with_bytes<'a, T: Send, E: From<io::Error> + Send>(
    open: &(impl Fn() -> io::Result<Source<'a>> + Sync),
    parse: impl FnOnce(&mut Bytes) -> Result<T, E>,
) -> Result<T, E> {
    let (block_sender, blocks) = sync_channel(BLOCKS_AHEAD);
    let (used, free) = channel();
    thread::scope(|scope| {
        let reader = scope.spawn(move || send_blocks(open()?, &block_sender, &free));
        let mut bytes = Bytes { blocks, used, buffer: Vec::new(), at: 0, end: 0, base: 0, failure: None };
        let parsed = parse(&mut bytes);
        // The reader ends when its receiver is dropped.
        drop(bytes);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        parsed
    })
}

/// Ends early if the receiver is dropped. An error in the middle of the file is passed to the parser.
fn send_blocks(
    source: Source<'_>,
    blocks: &SyncSender<io::Result<Block>>,
    free: &Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut source = source.reader();
    loop {
        let mut buffer = free.try_recv().unwrap_or_else(|_| vec![0; PIECE_BYTES_MAX + BLOCK_BYTES]);
        let mut end = PIECE_BYTES_MAX;
        let mut failure = None;
        while end < buffer.len() {
            match source.read(&mut buffer[end..]) {
                Ok(0) => break,
                Ok(read) => end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let is_last = end < buffer.len();
        let sent = blocks.send(Ok(Block { buffer, end })).is_ok();
        if let Some(error) = failure {
            let _ = blocks.send(Err(error));
        }
        if is_last || !sent {
            return Ok(());
        }
    }
}

impl Bytes {
    /// Returns how many bytes were taken.
    pub(super) fn position(&self) -> u64 {
        self.base.wrapping_add(self.at as u64)
    }

    /// Returns why the file cannot be read to its end.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns the next `len` bytes, at most [`PIECE_BYTES_MAX`]; `None` if the file ends before.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&[u8]> {
        if self.end - self.at < len && !self.fill(len) {
            return None;
        }
        self.at += len;
        Some(&self.buffer[self.at - len..self.at])
    }

    /// Puts the last byte back, which was just taken.
    pub(super) fn untake_one(&mut self) {
        self.at -= 1;
    }

    /// Skips bytes. Returns false if the file ends before.
    #[inline]
    pub(super) fn skip(&mut self, len: u64) -> bool {
        let mut left = len;
        while left > (self.end - self.at) as u64 {
            left -= (self.end - self.at) as u64;
            self.at = self.end;
            if !self.fill(1) {
                return false;
            }
        }
        self.at += left as usize;
        true
    }

    /// Reads until `len` bytes are available; returns false if the file ends before.
    #[cold]
    fn fill(&mut self, len: usize) -> bool {
        assert!(len <= PIECE_BYTES_MAX);
        while self.end - self.at < len {
            let mut block = match self.blocks.recv() {
                Ok(Ok(block)) => block,
                Ok(Err(error)) => {
                    self.failure = Some(error.to_string());
                    return false;
                }
                Err(_) => return false,
            };
            // What is left moves in front of the new bytes.
            let start = PIECE_BYTES_MAX - (self.end - self.at);
            block.buffer[start..PIECE_BYTES_MAX].copy_from_slice(&self.buffer[self.at..self.end]);
            self.base = self.position().wrapping_sub(start as u64);
            let used = std::mem::replace(&mut self.buffer, block.buffer);
            (self.at, self.end) = (start, block.end);
            if !used.is_empty() {
                let _ = self.used.send(used);
            }
        }
        true
    }
}

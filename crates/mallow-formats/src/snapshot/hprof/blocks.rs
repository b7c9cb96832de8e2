//! The bytes of a dump, a block at a time: one thread reads and unpacks, another one parses.
//!
//! A dump may be larger than the memory, and it may be cut while it is read: so it is never held whole and never mapped.

use crate::source::Source;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// What is read at once.
const BLOCK_BYTES: usize = 1 << 20;
/// How many blocks may wait for the parser.
const BLOCKS_AHEAD: usize = 2;
/// The most bytes that can be had in one piece. All fields of the largest class that a JVM takes have fewer.
pub(super) const PIECE_BYTES_MAX: usize = 1 << 19;

/// A stream of bytes.
pub(super) struct Bytes {
    blocks: Receiver<io::Result<Block>>,
    used: Sender<Vec<u8>>,
    /// The end of the former block, which ends at [`PIECE_BYTES_MAX`], and behind it the present one.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// What `at` has to be added to for the place in the file.
    base: u64,
    failure: Option<String>,
}

/// A buffer with room in front, and where it ends.
struct Block {
    buffer: Vec<u8>,
    end: usize,
}

/// Reads what `open` opens and hands it to `parse`.
///
/// # Errors
/// Of `open`, and of `parse`.
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
        // The reader ends when nobody takes its blocks.
        drop(bytes);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        parsed
    })
}

/// Ends early when nobody listens. A fault in the middle of the file goes to the parser.
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
    /// How many bytes were taken.
    pub(super) fn position(&self) -> u64 {
        self.base.wrapping_add(self.at as u64)
    }

    /// Why the file cannot be read to its end.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The next `len` bytes, at most [`PIECE_BYTES_MAX`]; none if the file ends before.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&[u8]> {
        if self.end - self.at < len && !self.fill(len) {
            return None;
        }
        self.at += len;
        Some(&self.buffer[self.at - len..self.at])
    }

    /// Gives the last byte back, which was just taken.
    pub(super) fn untake_one(&mut self) {
        self.at -= 1;
    }

    /// Passes bytes over. Whether there were so many.
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

    /// Returns whether `len` bytes are there now.
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

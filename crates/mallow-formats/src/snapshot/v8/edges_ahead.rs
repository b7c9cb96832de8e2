//! Parses the references in a second thread while the first one parses the objects, which come before them.
//!
//! Their position is a guess: the first occurrence of their key. The result is used only if the first thread reaches
//! that position and finds the key there; otherwise, and if they contain an error, the first thread parses them
//! itself.

use super::edges::Edges;
use super::json::Json;
use super::meta::Meta;
use crate::source::{PlainFile, ReaderAt};
use memchr::memmem;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// In V8's format.
const KEY: &[u8] = b"\"edges\":";
/// The number of bytes that are searched at once.
const BLOCK_BYTES: usize = 256 << 10;

/// References that are being parsed.
pub(super) struct EdgesAhead {
    thread: Option<JoinHandle<Option<EdgesRead>>>,
    is_given_up: Arc<AtomicBool>,
}

/// References that were parsed.
pub(super) struct EdgesRead {
    /// The position of their array in the file.
    start: u64,
    /// The position after it.
    pub(super) end: u64,
    pub(super) edges: Edges,
}

impl EdgesAhead {
    /// Starts searching for them after this position. Returns `None` if a second thread cannot be started.
    pub(super) fn start(file: &PlainFile, behind: u64, rows: usize, meta: &Meta) -> Option<EdgesAhead> {
        let (mut search, mut read) = (file.reader_at(behind).ok()?, file.reader_at(0).ok()?);
        let meta = meta.clone();
        let is_given_up = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_given_up);
        let body = move || {
            let start = behind + find(&mut search, &stop)?;
            read.go_to(start);
            edges_at(start, read, rows, &meta, &stop)
        };
        let thread = thread::Builder::new().name("mallow-edges".to_owned()).spawn(body).ok()?;
        Some(EdgesAhead { thread: Some(thread), is_given_up })
    }

    /// Returns the references, if they begin at this position.
    pub(super) fn read_from(mut self, start: u64) -> Option<EdgesRead> {
        let read = self.thread.take()?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.filter(|read| read.start == start)
    }
}

impl Drop for EdgesAhead {
    fn drop(&mut self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

/// Finds the beginning of the array, after the key.
fn find(file: &mut ReaderAt, stop: &AtomicBool) -> Option<u64> {
    let finder = memmem::Finder::new(KEY);
    let mut bytes = vec![0; KEY.len() + BLOCK_BYTES];
    // The end of the last block is kept, since the key may cross its boundary.
    let (mut kept, mut before) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let read = file.read(&mut bytes[kept..]).ok().filter(|read| *read > 0)?;
        let end = kept + read;
        if let Some(at) = finder.find(&bytes[..end]) {
            return Some(before + (at + KEY.len()) as u64);
        }
        kept = end.min(KEY.len() - 1);
        bytes.copy_within(end - kept..end, 0);
        before += (end - kept) as u64;
    }
    None
}

fn edges_at(start: u64, file: ReaderAt, rows: usize, meta: &Meta, stop: &AtomicBool) -> Option<EdgesRead> {
    let mut json = Json::new(file);
    let mut edges = Edges::with_room(rows);
    let result = json.records(meta.edge_fields, |record| match stop.load(Ordering::Relaxed) {
        true => Err("somebody who waits for it"),
        false => edges.push(record, meta),
    });
    result.ok()?;
    edges.shrink_to_fit();
    Some(EdgesRead { start, end: start + json.position(), edges })
}

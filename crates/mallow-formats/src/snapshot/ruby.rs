//! Ruby's `ObjectSpace.dump_all`: one line for each object, from Ruby 2.1 on.
//!
//! One thread reads the file and splits it into blocks, the others parse the lines into their own columns
//! ([`record`], [`scan`], [`columns`]). Addresses are resolved when everything has been read ([`assemble`]).

mod assemble;
mod columns;
mod record;
mod scan;

use super::blocks::{Block, Blocks};
use crate::source::Source;
use crate::{Format, ImportError};
use columns::Part;
use mallow_heapsnap::Snapshot;
use scan::{Contents, Tables, Wanted, last_start};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// More threads than this would wait for the one that reads the file.
const WORKERS_MAX: usize = 8;

/// Parses a dump.
pub(crate) fn read(source: Source<'_>) -> Result<Snapshot, ImportError> {
    let contents = Contents::new();
    let scanned = scan(source, Wanted::Everything(&contents));
    assembled(scanned, contents)
}

/// Parses only the objects of a dump, without references and equal strings.
pub(crate) fn read_objects(source: Source<'_>) -> Result<Snapshot, ImportError> {
    assembled(scan(source, Wanted::Objects), Contents::new())
}

fn assembled(scanned: Scanned, contents: Contents) -> Result<Snapshot, ImportError> {
    assemble::assemble(scanned, contents)
        .map_err(|reason| ImportError::Unsupported { format: Format::RubyHeap, reason })
}

/// The contents of a file.
struct Scanned {
    /// In the order of the file.
    parts: Vec<Part>,
    /// One for each thread.
    tables: Vec<Tables>,
    /// Where it could not be read further, and why.
    failure: Option<(u64, String)>,
}

fn scan(source: Source<'_>, wanted: Wanted<'_>) -> Scanned {
    let workers = thread::available_parallelism().map_or(1, |cores| cores.get().min(WORKERS_MAX));
    // As many blocks wait as are being parsed, and no more are in memory.
    let (send, receive) = sync_channel::<Block>(workers);
    let receive = Mutex::new(receive);
    thread::scope(|scope| {
        let receive = &receive;
        let threads: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || read_blocks(worker, receive, wanted))).collect();
        let mut blocks = Blocks::new(source.reader());
        while let Some(block) = blocks.next(last_start) {
            // The receivers are gone if the other threads have panicked.
            if send.send(block).is_err() {
                break;
            }
        }
        drop(send);
        let mut parts = Vec::new();
        let mut tables = Vec::new();
        for thread in threads {
            let (its_parts, table) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            parts.extend(its_parts);
            tables.push(table);
        }
        parts.sort_by_key(|part: &Part| part.at);
        Scanned { parts, tables, failure: blocks.failure() }
    })
}

fn read_blocks(worker: usize, blocks: &Mutex<Receiver<Block>>, wanted: Wanted<'_>) -> (Vec<Part>, Tables) {
    let mut tables = Tables::default();
    let mut parts = Vec::new();
    loop {
        let block = blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
        let Ok(block) = block else { return (parts, tables) };
        parts.push(tables.read(worker, &block, wanted));
    }
}

#[cfg(test)]
#[path = "ruby_tests.rs"]
mod tests;

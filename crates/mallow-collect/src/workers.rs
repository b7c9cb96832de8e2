//! Work on several processes at once, where there are cores and enough to do.
//!
//! What is known of one process is touched by one thread at a time, and a pass ends when all have been read: nothing is shared but the
//! sink, which takes one chunk after the other. So each process's metrics and chunks are those that one thread would make, in the
//! same order. Threads live for one pass: starting one takes a few hundredths of a millisecond, so they are for much work only.

use crate::error::CollectError;
use crate::sink::Sink;
use mallow_trace::ChunkKind;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many threads read rings in parallel, at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers(usize);

impl Workers {
    /// One for each core.
    pub(crate) fn of_this_machine() -> Workers {
        Workers(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Calls a function for each item, and adds up the results; `much` is how many of them have enough work for a
    /// thread of their own. After an error a thread takes no new item; the others finish the queue, and then one of
    /// the errors is returned.
    pub(crate) fn sum<T: Send>(
        self,
        items: &mut [T],
        much: usize,
        work: impl Fn(&mut T) -> Result<u64, CollectError> + Sync,
    ) -> Result<u64, CollectError> {
        let threads = self.0.min(much);
        if threads < 2 {
            return items.iter_mut().try_fold(0, |sum, item| Ok(sum + work(item)?));
        }
        let queue = Mutex::new(items.iter_mut());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = || -> Result<u64, CollectError> {
            let mut sum = 0;
            while let Some(item) = next() {
                sum += work(item)?;
            }
            Ok(sum)
        };
        thread::scope(|scope| {
            let spawned = |_| thread::Builder::new().name("drain".to_owned()).spawn_scoped(scope, run);
            // If a thread cannot be created, there is one less.
            let others: Vec<_> = (1..threads).map_while(|at| spawned(at).ok()).collect();
            let own = run();
            others.into_iter().fold(own, |sum, other| {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Ok(sum? + other?)
            })
        })
    }
}

/// A sink that several threads put chunks into.
pub(crate) struct SharedSink<'a, S>(Mutex<&'a mut S>);

impl<'a, S: Sink> SharedSink<'a, S> {
    /// Wraps a sink.
    pub(crate) fn new(sink: &'a mut S) -> SharedSink<'a, S> {
        SharedSink(Mutex::new(sink))
    }
}

impl<S: Sink> Sink for &SharedSink<'_, S> {
    fn chunk(
        &mut self,
        kind: ChunkKind,
        process: u32,
        encode: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), CollectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).chunk(kind, process, encode)
    }

    fn flush(&mut self) -> Result<(), CollectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[cfg(test)]
#[path = "workers_tests.rs"]
mod tests;

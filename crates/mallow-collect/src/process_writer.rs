//! One process's chunks of the trace.

use crate::error::CollectError;
use crate::pairing::Pairing;
use crate::sink::Sink;
use crate::stacks::StackNumbers;
use mallow_profile::Sample;
use mallow_trace::{
    ChunkKind, EventEncoder, MappedModule, Modules, ProcessEnd, ProcessStart, Samples, Stacks, ThreadName,
    Threads,
};

/// Writes what is new of a process, and knows how much was written.
#[derive(Debug)]
pub(crate) struct ProcessWriter {
    index: u32,
    modules_written: usize,
    threads_written: usize,
}

impl ProcessWriter {
    /// Writes its first chunk.
    pub(crate) fn begin(
        index: u32,
        start: &ProcessStart,
        sink: &mut dyn Sink,
    ) -> Result<ProcessWriter, CollectError> {
        sink.put(index, start)?;
        Ok(ProcessWriter { index, modules_written: 0, threads_written: 0 })
    }

    /// Events, and before them the stacks that they name: no event may name one that the reader has not seen.
    pub(crate) fn events(
        &self,
        pairing: &mut Pairing,
        stacks: &mut StackNumbers,
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        self.stacks(stacks, sink)?;
        pairing.events().map_or(Ok(()), |events| self.taken(events, sink))
    }

    /// Events whose stacks are written.
    pub(crate) fn taken(&self, events: &mut EventEncoder, sink: &mut dyn Sink) -> Result<(), CollectError> {
        if events.is_empty() {
            return Ok(());
        }
        sink.chunk(ChunkKind::EVENTS, self.index, &mut |payload| events.take(payload))
    }

    /// Modules, of which the first are written.
    pub(crate) fn modules(
        &mut self,
        modules: &[MappedModule],
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        let new = &modules[self.modules_written..];
        self.modules_written = modules.len();
        if new.is_empty() { Ok(()) } else { sink.put(self.index, &Modules { modules: new.to_vec() }) }
    }

    /// Threads, of which the first are written.
    pub(crate) fn threads(
        &mut self,
        threads: &[ThreadName],
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        let new = &threads[self.threads_written..];
        self.threads_written = threads.len();
        if new.is_empty() { Ok(()) } else { sink.put(self.index, &Threads { threads: new.to_vec() }) }
    }

    /// Samples, which are taken.
    pub(crate) fn samples(&self, samples: &mut Vec<Sample>, sink: &mut dyn Sink) -> Result<(), CollectError> {
        let samples = std::mem::take(samples);
        if samples.is_empty() { Ok(()) } else { sink.put(self.index, &Samples { samples }) }
    }

    /// Its last chunks.
    pub(crate) fn end(
        &self,
        stacks: &mut StackNumbers,
        end: &ProcessEnd,
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        self.stacks(stacks, sink)?;
        sink.put(self.index, end)
    }

    fn stacks(&self, stacks: &mut StackNumbers, sink: &mut dyn Sink) -> Result<(), CollectError> {
        let new = stacks.take_new();
        if new.is_empty() {
            return Ok(());
        }
        // Straight from the table: a list of them would be megabytes, all of them touched for the first time, while a program waits.
        sink.chunk(ChunkKind::STACKS, self.index, &mut |out| {
            Stacks::encode_nodes(new.start as u32, stacks.table().nodes_from(new.start), out);
        })
    }
}

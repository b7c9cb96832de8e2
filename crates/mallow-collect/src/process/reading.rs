//! Its rings, its threads and its modules are read.

use super::TracedProcess;
use crate::channels::{self, ChannelReader};
use crate::clock::Clock;
use crate::drain::Pass;
use crate::error::CollectError;
use crate::marks;
use crate::pairing::Pairing;
use crate::sink::Sink;
use crate::stacks::StackNumbers;
use mallow_profile::ThreadIndex;
use mallow_trace::EVENTS_PER_CHUNK;
use std::sync::atomic::Ordering;

/// Passes in which the last stacks of a process are read.
const CUT_PASSES_MAX: usize = 3;
/// From so many words on, half a million events in a second, a time stamp for each is a burden.
const BUSY_WORDS_PER_US: u64 = 1;

impl TracedProcess {
    /// Drains the rings up to a time stamp; returns the number of words read.
    pub(crate) fn drain(
        &mut self,
        clock: &Clock,
        until_tsc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u64, CollectError> {
        self.mapping.beat(self.is_busy);
        self.meet_threads();
        self.read_modules();
        let (mut outcome, writer) = (Ok(()), &self.writer);
        let mut flush = |pairing: &mut Pairing, stacks: &mut StackNumbers| {
            if outcome.is_ok() && pairing.events().is_some_and(|events| events.len() >= EVENTS_PER_CHUNK) {
                outcome = writer.events(pairing, stacks, sink);
            }
        };
        let mut pass = Pass {
            mapping: &self.mapping,
            clock,
            until_tsc,
            pairing: &mut self.pairing,
            stacks: &mut self.stacks,
            marks: self.marks.as_mut(),
            counted: &mut self.counted,
            flush: &mut flush,
        };
        let passed = pass.run(&mut self.readers);
        self.damages += passed.damages;
        self.is_cut = passed.is_cut;
        let now_us = clock.now_us();
        self.is_busy = passed.words >= now_us.saturating_sub(self.drained_us) * BUSY_WORDS_PER_US;
        self.drained_us = now_us;
        marks::answer_counts(&self.mapping, &self.readers, &mut self.counted);
        if let (Some(marks), Some(regions)) = (&mut self.marks, self.pairing.regions()) {
            marks.answer(&self.mapping, &self.readers, regions);
        }
        outcome.map(|()| passed.words)
    }

    /// Reads what is left when it has ended.
    pub(crate) fn drain_to_the_end(
        &mut self,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        for _ in 0..CUT_PASSES_MAX {
            self.drain(clock, u64::MAX, sink)?;
            if !self.is_cut || self.beyond().is_some() {
                return Ok(());
            }
        }
        self.abandon("its last stacks are deeper than can be read in a second");
        Ok(())
    }

    /// Returns about how many words of its rings were not read yet.
    pub(crate) fn pending_words(&self) -> u64 {
        let of = |(index, reader): (usize, &ChannelReader)| {
            self.mapping.channel(index).head.load(Ordering::Relaxed).saturating_sub(reader.tail)
        };
        self.readers.iter().enumerate().map(of).fold(0, u64::saturating_add)
    }

    /// Finds out who owns the channels in use.
    pub(super) fn meet_threads(&mut self) {
        self.threads.begin_pass();
        for index in 0..self.mapping.channels_high() {
            let channel = self.mapping.channel(index);
            // The id is written after the serial number.
            let tid = channel.tid.load(Ordering::Acquire);
            let taken_serial = channel.taken_serial.load(Ordering::Relaxed);
            if self.readers.len() <= index {
                self.readers.push(ChannelReader { thread: ThreadIndex(0), taken_serial: 0, tail: 0, tsc: 0 });
            }
            if tid == channels::NOBODY || self.readers[index].taken_serial == taken_serial {
                continue;
            }
            self.readers[index].taken_serial = taken_serial;
            self.readers[index].thread = self.threads.meet(index, tid);
        }
    }

    /// Releases the channels of threads that have ended and are read to the end. A reply that is still to come must
    /// not reach the channel's next owner.
    pub(crate) fn recycle_channels(&self) {
        channels::recycle(&self.mapping, self.pid, |index, serial| {
            self.readers.get(index).is_some_and(|reader| {
                reader.taken_serial == serial
                    && !self.marks.as_ref().is_some_and(|marks| marks.awaits(reader.thread))
                    && self.mapping.channel(index).head.load(Ordering::Acquire) == reader.tail
            })
        });
    }

    /// Returns whether some thread waits for a channel.
    pub(crate) fn wants_channels(&self) -> bool {
        self.mapping.header().channels_wanted.load(Ordering::Relaxed) > 0
    }

    fn read_modules(&mut self) {
        if self.header().runtime_asked.load(Ordering::Relaxed) != 0 {
            self.stacks.follow_code(&self.code_lists);
        }
        self.stacks.read_scripts(&self.mapping);
        self.modules.read(&self.mapping);
    }
}

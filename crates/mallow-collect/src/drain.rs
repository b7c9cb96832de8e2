//! Reading the rings of a process in the order in which things happened.
//!
//! Each ring is in order by itself. Across rings the time stamps decide, and only events stamped before a moment `until` are taken, where
//! `until` was read *before* any ring's head: whatever led to such an event was published before it was stamped, so it is in some ring
//! already, and no effect is taken before its cause. What was stamped earlier but published later has no effect among the events taken.

use crate::clock::Clock;
use crate::mapping::{Mapping, Ring};
use crate::pairing::Pairing;
use crate::stacks::StackNumbers;
use mallow_profile::ThreadIndex;
use mallow_wire::event::{self, Kind};
use std::sync::atomic::Ordering;

/// Where the reading of a lane stands, and whose lane it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneReader {
    /// The thread that owns the lane.
    pub(crate) thread: ThreadIndex,
    /// The owner's serial number; 0 before the first owner was met.
    pub(crate) taken_serial: u64,
    /// Words consumed.
    pub(crate) tail: u64,
}

/// A lane with something to read.
struct Cursor<'a> {
    lane: usize,
    ring: Ring<'a>,
    thread: ThreadIndex,
    at: u64,
    end: u64,
    released: u64,
}

/// What a pass over the rings consists of.
pub(crate) struct Pass<'a> {
    /// The shared memory.
    pub(crate) mapping: &'a Mapping,
    /// For times.
    pub(crate) clock: &'a Clock,
    /// Events stamped later than this stay where they are.
    pub(crate) until_tsc: u64,
    /// Where the events go.
    pub(crate) pairing: &'a mut Pairing,
    /// The stacks that they name.
    pub(crate) stacks: &'a mut StackNumbers,
    /// Called from time to time, between events.
    pub(crate) flush: &'a mut dyn FnMut(&mut Pairing, &mut StackNumbers),
}

/// How many words are read before the space is given back to the writer.
const RELEASE_WORDS: u64 = 8 * 1024;

impl Pass<'_> {
    /// Reads all lanes; gives the number of words consumed.
    pub(crate) fn run(&mut self, readers: &mut [LaneReader]) -> u64 {
        let mapping = self.mapping;
        let mut cursors: Vec<Cursor> = readers
            .iter()
            .enumerate()
            .filter_map(|(lane, reader)| {
                let end = mapping.lane(lane).head.load(Ordering::Acquire);
                let at = reader.tail;
                // A head that runs away was damaged by the program: only what the ring can hold is there.
                let end = end.min(at + mallow_wire::shared::RING_WORDS as u64);
                (end > at).then(|| Cursor {
                    lane,
                    ring: mapping.ring(lane),
                    thread: reader.thread,
                    at,
                    end,
                    released: at,
                })
            })
            .collect();
        let before: u64 = cursors.iter().map(|cursor| cursor.at).sum();
        let mut after = 0;
        while !cursors.is_empty() {
            let (first, next_tsc) = earliest(&cursors);
            let more = self.read_until(&mut cursors[first], next_tsc.min(self.until_tsc));
            if !more {
                let done = cursors.swap_remove(first);
                self.release(&done, done.at);
                readers[done.lane].tail = done.at;
                after += done.at;
            }
        }
        after - before
    }

    /// Reads one lane's events up to a time stamp; false when nothing more can be read from it in this pass.
    fn read_until(&mut self, cursor: &mut Cursor, limit_tsc: u64) -> bool {
        while cursor.at < cursor.end {
            let word0 = cursor.ring.word(cursor.at);
            let tsc = event::tsc_of(word0);
            if tsc > limit_tsc {
                return tsc <= self.until_tsc;
            }
            let Some(kind) = Kind::of(word0) else {
                // No record begins here: the program wrote over the ring. What follows cannot be told apart.
                cursor.at = cursor.end;
                return false;
            };
            if cursor.at + kind.words() as u64 > cursor.end {
                return false;
            }
            self.apply(cursor, kind, tsc);
            cursor.at += kind.words() as u64;
            if cursor.at - cursor.released >= RELEASE_WORDS {
                self.release(cursor, cursor.at);
                cursor.released = cursor.at;
                (self.flush)(self.pairing, self.stacks);
            }
        }
        false
    }

    #[inline(always)]
    fn apply(&mut self, cursor: &Cursor, kind: Kind, tsc: u64) {
        const AHEAD_WORDS: u64 = 40;
        let (ring, at, thread) = (cursor.ring, cursor.at, cursor.thread);
        // Some word ahead that may be an address: a wrong guess costs nothing.
        self.pairing.prefetch(event::address_of(ring.word(at + AHEAD_WORDS)));
        let time_us = self.clock.time_us(tsc);
        let word1 = ring.word(at + 1);
        let address = event::address_of(word1);
        let (mut size, mut stack) = (0, mallow_profile::Fold::NO_STACK);
        if kind.words() == 3 {
            let word2 = ring.word(at + 2);
            size = event::size_of(word1, word2);
            stack = self.stacks.number(event::node_of(word2), self.mapping);
        }
        match kind {
            Kind::Alloc => self.pairing.alloc(thread, address, stack, size, time_us),
            Kind::Free => self.pairing.free(thread, address, time_us),
            Kind::ReallocBegin => self.pairing.realloc_begin(thread, address, time_us),
            Kind::ReallocMoved => self.pairing.realloc_moved(thread, address, stack, size, time_us),
            Kind::ReallocFreed => self.pairing.realloc_freed(thread, time_us),
            Kind::ReallocFailed => self.pairing.realloc_failed(thread, stack, size, time_us),
            Kind::Failed => self.pairing.failed(thread, stack, size, time_us),
        }
    }

    /// Gives space back, and wakes the thread when it sleeps for want of it.
    fn release(&self, cursor: &Cursor, tail: u64) {
        let lane = self.mapping.lane(cursor.lane);
        lane.tail.store(tail, Ordering::Release);
        lane.tail_futex.fetch_add(1, Ordering::SeqCst);
        if lane.waiting.load(Ordering::SeqCst) != 0 {
            let _ = rustix::thread::futex::wake(&lane.tail_futex, rustix::thread::futex::Flags::empty(), 1);
        }
    }
}

/// The cursor whose next event has the earliest stamp, and the stamp up to which it may be read before another one's turn.
fn earliest(cursors: &[Cursor]) -> (usize, u64) {
    let (mut first, mut first_tsc, mut second_tsc) = (0, u64::MAX, u64::MAX);
    for (i, cursor) in cursors.iter().enumerate() {
        let tsc = event::tsc_of(cursor.ring.word(cursor.at));
        if tsc < first_tsc {
            second_tsc = first_tsc;
            (first, first_tsc) = (i, tsc);
        } else if tsc < second_tsc {
            second_tsc = tsc;
        }
    }
    (first, second_tsc)
}

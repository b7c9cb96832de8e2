//! Reading the rings of a process in the order in which things happened.
//!
//! Each ring is in order by itself. Across rings the time stamps decide, and only events stamped before a
//! moment `until` are taken, where `until` was read *before* any ring's head: whatever led to such an event
//! was published before it was stamped, so it is in some ring already, and no effect is taken before its
//! cause. What was stamped earlier but published later has no effect among the events taken. Events without a stamp have the one of
//! their predecessor, and no cause in another ring (the recorder's `stamps` says why).

use crate::channels::ChannelReader;
use crate::clock::Clock;
use crate::live::{Located, Place};
use crate::mapping::{Mapping, Ring};
use crate::marks::Marks;
use crate::pairing::{MappingEvent, Pairing};
use crate::stacks::StackNumbers;
use mallow_profile::{RegionMetrics, Request, StackId, ThreadIndex};
use mallow_wire::event::{self, Kind, Mark};
use std::sync::atomic::Ordering;

/// A channel with something to read.
struct Cursor<'a> {
    channel: usize,
    ring: Ring<'a>,
    thread: ThreadIndex,
    at: u64,
    end: u64,
    released: u64,
    /// The stamp of the record at `at`.
    tsc: u64,
    /// The stamp that was read last, and its time.
    read_tsc: u64,
    read_us: u64,
}

/// The inputs of a pass over the rings.
pub(crate) struct Pass<'a> {
    /// The shared memory.
    pub(crate) mapping: &'a Mapping,
    /// For times.
    pub(crate) clock: &'a Clock,
    /// Events stamped later than this stay where they are.
    pub(crate) until_tsc: u64,
    /// Receives the events.
    pub(crate) pairing: &'a mut Pairing,
    /// The stacks that they name.
    pub(crate) stacks: &'a mut StackNumbers,
    /// Receives the program's marks; `None` if they are not requested.
    pub(crate) marks: Option<&'a mut Marks>,
    /// Receives what threads counted of themselves, for the answers to their marks.
    pub(crate) counted: &'a mut Vec<(ThreadIndex, Option<RegionMetrics>)>,
    /// Called from time to time, between events.
    pub(crate) flush: &'a mut dyn FnMut(&mut Pairing, &mut StackNumbers),
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Words consumed.
    pub(crate) words: u64,
    /// How often a ring contained invalid data, and was skipped to its head.
    pub(crate) damages: u64,
    /// Reading stacks took so long that the rest is left to the next pass: other processes have to be read too.
    pub(crate) is_cut: bool,
}

/// An event as it was in the ring.
#[derive(Clone, Copy)]
struct Event {
    kind: Kind,
    thread: ThreadIndex,
    time_us: u64,
    /// When the block that it allocated was freed, if that is the thread's next event, or [`LATER`].
    freed_us: u64,
    word0: u64,
    word1: u64,
    /// Where the block at its address stands.
    place: Place,
}

impl Event {
    #[inline(always)]
    fn block(&self) -> Located {
        self.place.of(event::address_of(self.word0))
    }
}

const LATER: u64 = u64::MAX;

const NO_EVENT: Event = Event {
    kind: Kind::Free,
    thread: ThreadIndex(0),
    time_us: 0,
    freed_us: LATER,
    word0: 0,
    word1: 0,
    place: Place::UNKNOWN,
};

/// Events that are fetched for at once: about as many as a processor has outstanding memory accesses.
const BATCH_EVENTS: usize = 16;

/// Events taken out of the rings, in order, and not yet applied.
struct Batch {
    events: [Event; BATCH_EVENTS],
    count: usize,
}

/// Why no more events were taken from a ring.
enum Stop {
    /// The batch is full.
    Full,
    /// The next event is another channel's turn.
    Later,
    /// Nothing more can be read in this pass.
    Done,
}

/// How far ahead a ring's words are prefetched: they are in another CPU's cache.
const AHEAD_WORDS: u64 = 96;

/// Keys of frames that are read in a pass to find stacks: some tenths of a second.
const KEYS_MAX: u64 = 4 << 20;

/// How many words are read before the space is released to the writer.
const RELEASE_WORDS: u64 = 8 * 1024;

/// Stamps further ahead of now than this, minutes on any CPU, are invalid. Waiting for their time would stop their
/// thread.
const AHEAD_TICKS_MAX: u64 = 1 << 40;

impl Pass<'_> {
    /// Reads all channels.
    pub(crate) fn run(&mut self, readers: &mut [ChannelReader]) -> Passed {
        let mapping = self.mapping;
        let mut cursors: Vec<Cursor> = readers
            .iter()
            .enumerate()
            .filter_map(|(channel, reader)| cursor(mapping, self.clock, channel, reader))
            .collect();
        let before: u64 = cursors.iter().map(|cursor| cursor.at).sum();
        let mut passed = Passed::default();
        let mut after = 0;
        let mut batch = Batch { events: [NO_EVENT; BATCH_EVENTS], count: 0 };
        let keys_max = self.stacks.keys_read() + KEYS_MAX;
        while !cursors.is_empty() {
            let (first, next_tsc) = earliest(&cursors);
            let limit_tsc = next_tsc.min(self.until_tsc);
            let current = &mut cursors[first];
            let stop = self.decode(current, limit_tsc, &mut batch, &mut passed.damages);
            // The words that were read are in the batch: the space is free, although the last events are not applied
            // yet.
            if current.at - current.released >= RELEASE_WORDS {
                self.release(current.channel, current.at);
                current.released = current.at;
            }
            match stop {
                Stop::Later => {}
                Stop::Full => {
                    self.apply(&mut batch);
                    if self.stacks.keys_read() > keys_max {
                        passed.is_cut = true;
                        break;
                    }
                }
                Stop::Done => {
                    let done = cursors.swap_remove(first);
                    after += self.put_down(&done, readers);
                }
            }
        }
        self.apply(&mut batch);
        after += cursors.iter().map(|cursor| self.put_down(cursor, readers)).sum::<u64>();
        passed.words = after - before;
        passed
    }

    /// Notes how far a ring was read.
    fn put_down(&self, cursor: &Cursor<'_>, readers: &mut [ChannelReader]) -> u64 {
        self.release(cursor.channel, cursor.at);
        readers[cursor.channel].tail = cursor.at;
        readers[cursor.channel].tsc = cursor.read_tsc;
        cursor.at
    }

    /// Decodes events of a ring up to a time stamp, and prefetches the memory that they will need. The table of live
    /// blocks is larger than any cache. The CPU can fetch for many events at once, but cannot know by itself what
    /// later events will look up.
    fn decode(&self, cursor: &mut Cursor, limit_tsc: u64, batch: &mut Batch, damages: &mut u64) -> Stop {
        let now_tsc = self.clock.noted_tsc();
        while let Some(event) = batch.events.get_mut(batch.count) {
            if cursor.at >= cursor.end {
                return Stop::Done;
            }
            cursor.ring.prefetch(cursor.at.wrapping_add(AHEAD_WORDS));
            let word0 = cursor.ring.word(cursor.at);
            let kind = match Kind::of(word0) {
                Some(Kind::Time) if event::tsc_of(word0).saturating_sub(now_tsc) <= AHEAD_TICKS_MAX => {
                    let tsc = event::tsc_of(word0);
                    if tsc > limit_tsc {
                        cursor.tsc = tsc;
                        return if tsc <= self.until_tsc { Stop::Later } else { Stop::Done };
                    }
                    (cursor.read_tsc, cursor.read_us) = (tsc, self.clock.time_us(tsc));
                    cursor.at += 1;
                    continue;
                }
                Some(Kind::Skip) => {
                    // Its length is data from outside: at least itself, at most what is there.
                    let words = event::skipped_words(word0).max(1);
                    cursor.at = cursor.at.saturating_add(words).min(cursor.end);
                    continue;
                }
                None | Some(Kind::Time) => {
                    // No record begins here: the program overwrote the ring. The rest cannot be decoded.
                    cursor.at = cursor.end;
                    *damages += 1;
                    return Stop::Done;
                }
                Some(kind) => kind,
            };
            let words = kind.words() as u64;
            if words > cursor.end - cursor.at {
                return Stop::Done;
            }
            // The word after a short record belongs to the next one, or to none: it is not used.
            let word1 = cursor.ring.word(cursor.at.wrapping_add(1));
            let address = event::address_of(word0);
            let place = self.pairing.prefetch(address);
            let (thread, time_us) = (cursor.thread, cursor.read_us);
            *event = Event { kind, thread, time_us, freed_us: LATER, word0, word1, place };
            batch.count += 1;
            cursor.at += words;
            if kind.is_allocation() {
                self.stacks.prefetch(event::node_of(word1));
                event.freed_us = self.freed_at_once(cursor, address, limit_tsc.min(now_tsc));
            }
        }
        if cursor.at < cursor.end {
            cursor.tsc = stamp(cursor.ring.word(cursor.at), cursor.read_tsc);
        }
        Stop::Full
    }

    /// Skips the record that frees a block which was allocated just before, with its stamp if it has one of its own
    /// that is not after the limit: the two are one event. Returns its time, or [`LATER`].
    #[inline(always)]
    fn freed_at_once(&self, cursor: &mut Cursor, address: u64, limit_tsc: u64) -> u64 {
        let is_its_free = |word| Kind::of(word) == Some(Kind::Free) && event::address_of(word) == address;
        if cursor.at >= cursor.end {
            return LATER;
        }
        let next = cursor.ring.word(cursor.at);
        if is_its_free(next) {
            cursor.at += 1;
            return cursor.read_us;
        }
        let is_stamp = Kind::of(next) == Some(Kind::Time) && event::tsc_of(next) <= limit_tsc;
        if !is_stamp || cursor.at + 1 >= cursor.end || !is_its_free(cursor.ring.word(cursor.at + 1)) {
            return LATER;
        }
        cursor.at += 2;
        cursor.read_tsc = event::tsc_of(next);
        cursor.read_us = self.clock.time_us(cursor.read_tsc);
        cursor.read_us
    }

    fn apply(&mut self, batch: &mut Batch) {
        for event in &batch.events[..batch.count] {
            if matches!(event.kind, Kind::Free | Kind::ReallocBegin) {
                self.pairing.prefetch_block(event.block());
            }
        }
        for event in &batch.events[..batch.count] {
            if event.freed_us == LATER {
                self.apply_event(event);
            } else {
                self.apply_pair(event);
            }
        }
        batch.count = 0;
        (self.flush)(self.pairing, self.stacks);
    }

    /// Applies an allocation and the free of its block.
    #[inline(always)]
    fn apply_pair(&mut self, event: &Event) {
        if !self.pairing.is_free(event.block()) {
            self.apply_event(event);
            return self.pairing.free(event.thread, event.block(), event.freed_us);
        }
        let size = event::size_of(event.word0, event.word1);
        let stack = self.stacks.number(event::node_of(event.word1), self.mapping);
        self.note_request(event.kind, stack, size);
        self.pairing.temporary(event.thread, stack, size, event.time_us, event.freed_us);
    }

    #[inline(always)]
    fn note_request(&mut self, kind: Kind, stack: StackId, size: u64) {
        match kind {
            Kind::Zeroed => self.pairing.requested(stack, Request::Zeroed, size),
            Kind::Aligned => self.pairing.requested(stack, Request::Aligned, size),
            _ => {}
        }
    }

    #[inline(always)]
    fn apply_event(&mut self, event: &Event) {
        let Event { thread, time_us, .. } = *event;
        let at = event.block();
        let (mut size, mut stack) = (0, mallow_profile::Aggregator::NO_STACK);
        if event.kind.has_stack() {
            size = event::size_of(event.word0, event.word1);
            stack = self.stacks.number(event::node_of(event.word1), self.mapping);
        }
        match event.kind {
            Kind::Alloc | Kind::Zeroed | Kind::Aligned => {
                self.note_request(event.kind, stack, size);
                self.pairing.alloc(thread, at, stack, size, time_us)
            }
            Kind::Free => self.pairing.free(thread, at, time_us),
            Kind::ReallocBegin => {
                let is_nested = event::size_of(event.word0, 0) & 1 != 0;
                self.pairing.realloc_begin(thread, at, is_nested, time_us)
            }
            Kind::ReallocDone => self.pairing.realloc_done(thread, at, stack, size, time_us),
            Kind::ReallocFreed => self.pairing.realloc_freed(thread, time_us),
            Kind::ReallocFailed => self.pairing.realloc_failed(thread, stack, size, time_us),
            Kind::Failed => self.pairing.failed(thread, stack, size, time_us),
            Kind::Mark | Kind::Text | Kind::Opened => self.apply_mark(event, stack),
            Kind::Mapping => self.apply_mapping(event),
            // Passed over where they were read.
            Kind::Skip | Kind::Time => {}
        }
    }

    #[cold]
    fn apply_mapping(&mut self, event: &Event) {
        let Event { thread, time_us, .. } = *event;
        let address = event::address_of(event.word0);
        let size = event::size_of(event.word0, event.word1);
        let has_stack = event::Mapping::of(address).is_some_and(event::Mapping::has_stack);
        let stack = match has_stack {
            true => self.stacks.number(event::node_of(event.word1), self.mapping),
            false => mallow_profile::Aggregator::NO_STACK,
        };
        self.pairing.mapping(MappingEvent { address, size, stack, thread, time_us });
    }

    #[cold]
    fn apply_mark(&mut self, event: &Event, stack: StackId) {
        if event.kind == Kind::Mark {
            let lost = event::size_of(event.word0, event.word1);
            match Mark::of(event::node_of(event.word1)) {
                Some(Mark::CountBegins) => return self.pairing.begin_count(event.thread, lost),
                Some(Mark::CountEnds) => {
                    let counted = self.pairing.end_count(event.thread, lost);
                    return self.counted.push((event.thread, counted));
                }
                _ => {}
            }
        }
        let (Some(marks), Some(regions)) = (&mut self.marks, self.pairing.regions()) else { return };
        match event.kind {
            Kind::Text => marks.text(event.thread, event::text_of(event.word0, event.word1)),
            Kind::Mark => {
                let value = event::size_of(event.word0, event.word1);
                marks.mark(event.thread, event::node_of(event.word1), value, regions)
            }
            _ => marks.opened(event::address_of(event.word0), stack),
        }
    }

    /// Releases space, and wakes the thread if it waits for it.
    fn release(&self, channel: usize, tail: u64) {
        let channel = self.mapping.channel(channel);
        channel.tail.store(tail, Ordering::Release);
        channel.tail_futex.fetch_add(1, Ordering::SeqCst);
        if channel.waiting.load(Ordering::SeqCst) != 0 {
            let _ =
                rustix::thread::futex::wake(&channel.tail_futex, rustix::thread::futex::Flags::empty(), 1);
        }
    }
}

/// A channel with something to read. A head that runs away was damaged by the program: only what the ring can
/// hold is there.
fn cursor<'a>(
    mapping: &'a Mapping,
    clock: &Clock,
    channel: usize,
    reader: &ChannelReader,
) -> Option<Cursor<'a>> {
    let head = mapping.channel(channel).head.load(Ordering::Acquire);
    let at = reader.tail;
    let end = head.min(at.saturating_add(mallow_wire::shared::RING_WORDS as u64));
    let ring = mapping.ring(channel);
    (end > at).then(|| Cursor {
        channel,
        ring,
        thread: reader.thread,
        at,
        end,
        released: at,
        tsc: stamp(ring.word(at), reader.tsc),
        read_tsc: reader.tsc,
        read_us: clock.time_us(reader.tsc),
    })
}

/// When the record that begins with a word was written.
#[inline(always)]
fn stamp(word0: u64, read_tsc: u64) -> u64 {
    if Kind::of(word0) == Some(Kind::Time) { event::tsc_of(word0) } else { read_tsc }
}

/// The cursor whose next event has the earliest stamp, and the stamp up to which it may be read before
/// another one's turn.
fn earliest(cursors: &[Cursor]) -> (usize, u64) {
    let (mut first, mut first_tsc, mut second_tsc) = (0, u64::MAX, u64::MAX);
    for (i, cursor) in cursors.iter().enumerate() {
        if cursor.tsc < first_tsc {
            second_tsc = first_tsc;
            (first, first_tsc) = (i, cursor.tsc);
        } else if cursor.tsc < second_tsc {
            second_tsc = cursor.tsc;
        }
    }
    (first, second_tsc)
}

//! Writes records into this thread's ring buffer: reserve, write, publish.
//!
//! A signal handler may interrupt a write at any instruction and write records of its own. So a record first reserves
//! its place, by one `xadd` on a word that only this thread uses: a signal cannot split an instruction, and a handler's
//! records get places after it. Then its words are written. Then `head`, which the collector reads, moves over it, but only
//! when everything before it is published as well:
//!
//! - If `head` is at this record's place, all records before it are published. The writer moves `head` over its own record
//!   and over those that handlers have finished after it meanwhile.
//! - If `head` is before it, a handler wrote this record while an outer one was being written. The outer one publishes both.
//!
//! `head` never moves back: a writer stores the value that `reserved` had only if `head` is below it, and a handler that runs
//! between the check and the store finds `head` below its own place and leaves it alone.
//!
//! A handler that leaves by `longjmp` leaves a reserved place that is never filled. Whoever detects the jump
//! ([`crate::thread`]) fills it with a record that says how much to skip: [`Writer::close_hole`].
//!
//! No instruction here has a `lock` prefix: only this thread writes these words. x86 keeps stores in order, so the
//! collector, which loads `head` with acquire ordering, sees the words below it.

use crate::collector_timeout::{self, CollectorTimeout};
use crate::doorbell;
use crate::process;
#[cfg(not(miri))]
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::event::{skip_word, time_word};
use mallow_wire::shared::{Channel, HEARTBEAT_LEFT, RING_WORDS};

/// How far ahead of a record the ring is prefetched: the collector's CPU has the cache lines that it read last, and a
/// store that waits for one of them delays all later stores.
const AHEAD_WORDS: usize = 64;

/// Why a record was not written. It is counted as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The ring is full and the collector gives no sign of life. It may have been stopped, and continue later.
    Silent,
    /// Recording has ended, or the collector has gone.
    Left,
}

/// The writing end of a thread's ring. Positions count words, as `head` and `tail` do.
#[derive(Debug)]
#[repr(C)]
pub struct Writer {
    channel: *const Channel,
    words: *mut u64,
    /// Behind the last place that was taken.
    reserved: AtomicU64,
    /// Up to here the ring is known to have room.
    limit: AtomicU64,
    /// Not 0 while the collector, which was silent for too long, is not waited for.
    silent: AtomicU64,
    /// The value of `head` when a handler first finished a record after an unfinished one, and that record's place.
    hole: [AtomicU64; 2],
}

impl Writer {
    /// The writer of a thread that has no ring.
    pub const fn none() -> Writer {
        Writer {
            channel: core::ptr::null(),
            words: core::ptr::null_mut(),
            reserved: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            silent: AtomicU64::new(0),
            hole: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Returns a writer that continues where the channel's last owner stopped.
    ///
    /// # Safety
    /// The channel and its ring of [`RING_WORDS`] words stay mapped, and belong to the calling thread alone.
    pub unsafe fn new(channel: *const Channel, words: *mut u64) -> Writer {
        // SAFETY: by contract.
        let head = unsafe { (*channel).head.load(Ordering::Relaxed) };
        Writer { channel, words, reserved: AtomicU64::new(head), ..Writer::none() }
    }

    /// Writes a record of one word or two, with its time in front of it unless that is 0, waiting for the collector when the ring is full.
    ///
    /// # Errors
    /// Why it is lost.
    ///
    /// # Safety
    /// The writer is the calling thread's.
    #[inline(always)]
    pub unsafe fn push<const N: usize>(&self, tsc: u64, words: [u64; N]) -> Result<(), Unwritten> {
        const { assert!(N == 1 || N == 2) };
        // Each length has code of its own, in which nothing depends on whether there is a time.
        // SAFETY: by contract. Of one word the last is the first.
        unsafe {
            match tsc {
                0 => self.put(words),
                _ if N == 1 => self.put([time_word(tsc), words[0]]),
                _ => self.put([time_word(tsc), words[0], words[N - 1]]),
            }
        }
    }

    /// Reserves, writes and publishes.
    ///
    /// # Safety
    /// As [`Writer::push`].
    #[inline(always)]
    unsafe fn put<const N: usize>(&self, words: [u64; N]) -> Result<(), Unwritten> {
        let need = N as u64;
        let at = self.reserve(need);
        if at + need > self.limit.load(Ordering::Relaxed) {
            self.make_room(at, need)?;
        }
        // SAFETY: masked to the ring, which is mapped; the places are this record's own.
        unsafe {
            // Read once: the compiler has to reload it behind each volatile write.
            let ring = self.words;
            ask_behind(ring, at as usize);
            for (i, word) in words.iter().enumerate() {
                place(ring, at as usize + i).write_volatile(*word);
            }
        }
        self.publish(at);
        Ok(())
    }

    fn channel(&self) -> &Channel {
        // SAFETY: a writer that pushes was made with a channel that stays mapped.
        unsafe { &*self.channel }
    }

    /// Takes a place of `n` words.
    #[inline(always)]
    fn reserve(&self, n: u64) -> u64 {
        #[cfg(miri)]
        return self.reserved.fetch_add(n, Ordering::Relaxed);
        #[cfg(not(miri))]
        {
            let at: u64;
            // SAFETY: a plain write to an atomic that only this thread writes. The asm block is a compiler barrier.
            unsafe {
                asm!(
                    "xadd qword ptr [{word}], {n}",
                    word = in(reg) self.reserved.as_ptr(),
                    n = inout(reg) n => at,
                    options(nostack)
                );
            }
            at
        }
    }

    /// Publishes the finished record at `at`, unless one before it is unfinished.
    #[inline(always)]
    fn publish(&self, at: u64) {
        let head = &self.channel().head;
        if head.load(Ordering::Relaxed) != at {
            return self.note_hole(at);
        }
        // `head` is below what is reserved, and whoever runs before the store leaves it alone.
        let reserved = self.reserved.load(Ordering::Relaxed);
        head.store(reserved, Ordering::Release);
        if self.reserved.load(Ordering::Relaxed) != reserved {
            self.publish_rest();
        }
    }

    /// Publishes what handlers finished while `head` was being moved.
    #[cold]
    #[inline(never)]
    fn publish_rest(&self) {
        let head = &self.channel().head;
        loop {
            let reserved = self.reserved.load(Ordering::Relaxed);
            if head.load(Ordering::Relaxed) >= reserved {
                return;
            }
            head.store(reserved, Ordering::Release);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_hole(&self, at: u64) {
        let head = self.channel().head.load(Ordering::Relaxed);
        if self.hole[0].load(Ordering::Relaxed) != head || self.hole[1].load(Ordering::Relaxed) <= head {
            self.hole[0].store(head, Ordering::Relaxed);
            self.hole[1].store(at, Ordering::Relaxed);
        }
    }

    /// Fills the place of a record that was left by a jump, and publishes the records that handlers finished after
    /// it. If several nested records were left unfinished, with finished ones between them, the words from the second
    /// on are damage that the collector counts.
    ///
    /// # Errors
    /// Why it could not be filled.
    ///
    /// # Safety
    /// The writer is the calling thread's, and no call of its own is in progress.
    pub unsafe fn close_hole(&self) -> Result<(), Unwritten> {
        let (head, reserved) =
            (self.channel().head.load(Ordering::Relaxed), self.reserved.load(Ordering::Relaxed));
        if head >= reserved {
            return Ok(());
        }
        let finished = self.hole[1].load(Ordering::Relaxed);
        let is_known = self.hole[0].load(Ordering::Relaxed) == head && finished > head && finished < reserved;
        let end = if is_known { finished } else { reserved };
        if end > self.limit.load(Ordering::Relaxed) {
            self.make_room(head, end - head)?;
        }
        // SAFETY: as in `push`.
        unsafe { place(self.words, head as usize).write_volatile(skip_word(end - head)) };
        self.publish(head);
        Ok(())
    }

    /// Waits until the place of `need` words at `at` is free. It does not wait again for a collector that gave no
    /// sign of life, until [`Writer::resume`]. Without room the reserved place is released.
    #[cold]
    #[inline(never)]
    fn make_room(&self, at: u64, need: u64) -> Result<(), Unwritten> {
        let channel = self.channel();
        if process::has_ended() {
            return self.lose(at, need, Unwritten::Left);
        }
        if self.silent.load(Ordering::Relaxed) != 0 {
            return self.lose(at, need, Unwritten::Silent);
        }
        let mut spins = 0u32;
        let mut collector_timeout = CollectorTimeout::begin();
        loop {
            let tail_futex = channel.tail_futex.load(Ordering::Acquire);
            let tail = channel.tail.load(Ordering::Acquire);
            let limit = tail + RING_WORDS as u64;
            if at + need <= limit {
                // Half of the ring at a time, so that a collector that sleeps is woken while there is still room for what comes meanwhile.
                let half = tail + RING_WORDS as u64 / 2;
                let is_half_full = at + need > half;
                if is_half_full {
                    doorbell::ring();
                }
                // A handler may have seen a later tail: an older limit is safe.
                self.limit.store(if is_half_full { limit } else { half }, Ordering::Relaxed);
                return Ok(());
            }
            if spins < 200 {
                spins += 1;
                core::hint::spin_loop();
                continue;
            }
            channel.waiting.store(1, Ordering::SeqCst);
            doorbell::ring();
            collector_timeout::wait(&channel.tail_futex, tail_futex, CollectorTimeout::WAIT_MS);
            channel.waiting.store(0, Ordering::Relaxed);
            if collector_timeout.is_final(channel.tail.load(Ordering::Relaxed) != tail) {
                if process::header().heartbeat.load(Ordering::Relaxed) == HEARTBEAT_LEFT {
                    return self.lose(at, need, Unwritten::Left);
                }
                self.silent.store(1, Ordering::Relaxed);
                return self.lose(at, need, Unwritten::Silent);
            }
        }
    }

    /// Counts the record of `need` words at `at` as lost.
    fn lose(&self, at: u64, need: u64, why: Unwritten) -> Result<(), Unwritten> {
        self.note_lost();
        if self.reserved.load(Ordering::Relaxed) != at + need {
            // A handler found room after it when it was released already: what it wrote is lost with it.
            process::header().losses_uncounted.fetch_add(1, Ordering::Relaxed);
        }
        self.release(at);
        Err(why)
    }

    /// Counts a call that is not recorded. In the channel, so that no two threads write the same word.
    pub fn note_lost(&self) {
        self.channel().lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the collector again, if a good part of the ring has been read meanwhile.
    pub fn resume(&self) -> bool {
        let waiting =
            self.reserved.load(Ordering::Relaxed).wrapping_sub(self.channel().tail.load(Ordering::Acquire));
        let has_room = waiting <= RING_WORDS as u64 / 2;
        if has_room {
            self.silent.store(0, Ordering::Relaxed);
        }
        has_room
    }

    /// Releases what was reserved from `at` on: handlers that reserved after it failed as well, or their records are
    /// lost with this one.
    fn release(&self, at: u64) {
        self.reserved.store(at, Ordering::Relaxed);
    }
}

/// The place of a position in a ring.
///
/// # Safety
/// The ring is mapped.
#[inline(always)]
unsafe fn place(ring: *mut u64, position: usize) -> *mut u64 {
    // SAFETY: masked to the ring.
    unsafe { ring.add(position & (RING_WORDS - 1)) }
}

/// Asks for the cache line that lies [`AHEAD_WORDS`] behind a position, to write to it. Behind the ring's end it asks once a lap for lines that are not the
/// ring's, which costs less than to find its beginning each time.
///
/// # Safety
/// The ring is mapped.
#[inline(always)]
unsafe fn ask_behind(ring: *mut u64, position: usize) {
    // SAFETY: a hint changes nothing, and may name any address.
    #[cfg(not(miri))]
    unsafe {
        asm!(
            "prefetchw byte ptr [{ring} + {position} * 8 + {ahead}]",
            ring = in(reg) ring,
            position = in(reg) position & (RING_WORDS - 1),
            ahead = const AHEAD_WORDS * 8,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(miri)]
    let _ = (ring, position, AHEAD_WORDS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::event::{Kind, skipped_words};

    /// As in a process, channel and ring are seen through pointers only.
    struct Bench {
        channel: &'static Channel,
        words: *mut u64,
        writer: Writer,
    }

    /// A ring with room for one lap.
    fn bench() -> Bench {
        // SAFETY: integers and atomics of integers: zeros are valid.
        let channel: &'static Channel = Box::leak(Box::new(unsafe { core::mem::zeroed() }));
        let words = Box::leak(vec![0u64; RING_WORDS].into_boxed_slice()).as_mut_ptr();
        // SAFETY: nobody frees them.
        let writer = unsafe { Writer::new(channel, words) };
        writer.limit.store(RING_WORDS as u64, Ordering::Relaxed);
        Bench { channel, words, writer }
    }

    impl Bench {
        fn head(&self) -> u64 {
            self.channel.head.load(Ordering::Relaxed)
        }

        fn words<const N: usize>(&self) -> [u64; N] {
            // SAFETY: the ring is longer.
            unsafe { self.words.cast::<[u64; N]>().read_volatile() }
        }

        fn push(&self, word: u64) {
            // SAFETY: this thread's own.
            unsafe { self.writer.push(0, [word, word]) }.unwrap();
        }
    }

    #[test]
    fn a_time_stamp_precedes_its_record() {
        let bench = bench();
        // SAFETY: as above.
        unsafe { bench.writer.push(9, [7]).and_then(|()| bench.writer.push(0, [8])) }.unwrap();
        assert_eq!((bench.head(), bench.words()), (3, [time_word(9), 7, 8, 0]));
        // SAFETY: as above.
        unsafe { bench.writer.push(11, [5, 6]) }.unwrap();
        assert_eq!((bench.head(), bench.words()), (6, [time_word(9), 7, 8, time_word(11), 5, 6, 0]));
    }

    #[test]
    fn records_are_contiguous_in_the_ring() {
        let bench = bench();
        bench.push(7);
        bench.push(8);
        assert_eq!((bench.head(), bench.words()), (4, [7, 7, 8, 8, 0]));
    }

    #[test]
    fn a_record_inside_another_is_published_by_the_outer_one() {
        let bench = bench();
        let outer = bench.writer.reserve(2);
        bench.push(8);
        assert_eq!(bench.head(), 0, "what stands before it is not written yet");
        bench.writer.publish(outer);
        assert_eq!((bench.head(), bench.words::<8>()[2]), (4, 8));
    }

    #[test]
    fn an_abandoned_record_is_skipped_and_later_ones_are_kept() {
        let bench = bench();
        bench.push(7);
        let _left = bench.writer.reserve(3);
        bench.push(8);
        // SAFETY: this thread's own.
        unsafe { bench.writer.close_hole() }.unwrap();
        assert_eq!(Kind::of(bench.words::<8>()[2]), Some(Kind::Skip));
        assert_eq!((skipped_words(bench.words::<8>()[2]), bench.words::<8>()[5], bench.head()), (3, 8, 7));
        bench.push(9);
        assert_eq!(bench.head(), 9);
    }

    #[test]
    fn an_abandoned_last_record_is_skipped() {
        let bench = bench();
        let _left = bench.writer.reserve(2);
        // SAFETY: this thread's own.
        unsafe { bench.writer.close_hole() }.unwrap();
        assert_eq!((skipped_words(bench.words::<8>()[0]), bench.head()), (2, 2));
        // SAFETY: as above.
        unsafe { bench.writer.close_hole() }.unwrap();
        assert_eq!(bench.head(), 2, "there is no hole any more");
    }

    #[derive(Clone, Copy)]
    enum Step {
        Reserve,
        Write,
        LookAtHead,
        LoadReserved,
        Store,
        LoadAgain,
        LoadRest,
        CompareAndStore,
    }

    #[derive(Clone)]
    struct Model {
        reserved: u64,
        head: u64,
        /// A bit for each place.
        written: u64,
    }

    impl Model {
        /// What is published is written, and `head` has not moved back.
        fn check(&self, head_before: u64) {
            let below_head = (1u64 << self.head) - 1;
            assert!(self.head >= head_before, "head moved back");
            assert_eq!(self.written & below_head, below_head, "published before it was written");
        }

        /// The states in which a handler's whole record can leave the ring, `handlers` more having run inside it: one
        /// behind the other, because each finds `head` as the interrupted one left it.
        fn after_handler(mut self, handlers: u32) -> Vec<Model> {
            let mut results = Vec::new();
            if handlers > 0 {
                for inner in self.clone().after_handler(handlers - 1) {
                    results.extend(inner.after_handler(0));
                }
            }
            let at = self.reserved;
            self.reserved += 1;
            self.written |= 1 << at;
            if self.head == at {
                self.head = self.reserved;
            }
            results.push(self);
            results
        }
    }

    /// The outermost record from a step on; handlers may run before each step. Counts how often it comes to its end.
    fn run(ring: Model, step: Step, at: u64, loaded: u64, handlers: u32) -> u64 {
        let before = ring.head;
        let mut ends = 0;
        for used in 1..=handlers {
            for after in ring.clone().after_handler(used - 1) {
                after.check(before);
                // Look and store are two instructions: the store must not be late.
                if matches!(step, Step::Store | Step::CompareAndStore) && ring.head < loaded {
                    assert!(after.head <= loaded, "the store would move head back");
                }
                ends += run(after, step, at, loaded, handlers - used);
            }
        }
        let mut next = ring;
        ends += match step {
            Step::Reserve => {
                let at = next.reserved;
                next.reserved += 1;
                run(next, Step::Write, at, 0, handlers)
            }
            Step::Write => {
                next.written |= 1 << at;
                run(next, Step::LookAtHead, at, 0, handlers)
            }
            Step::LookAtHead => {
                assert_eq!(next.head, at, "nothing is under way outside of the outermost record");
                run(next, Step::LoadReserved, at, 0, handlers)
            }
            Step::LoadReserved => {
                let loaded = next.reserved;
                run(next, Step::Store, at, loaded, handlers)
            }
            Step::Store => {
                next.head = loaded;
                next.check(before);
                run(next, Step::LoadAgain, at, loaded, handlers)
            }
            Step::LoadAgain if next.reserved == loaded => {
                assert_eq!(next.head, next.reserved, "a record was left unpublished");
                1
            }
            Step::LoadAgain => run(next, Step::LoadRest, at, 0, handlers),
            Step::LoadRest => {
                let loaded = next.reserved;
                run(next, Step::CompareAndStore, at, loaded, handlers)
            }
            Step::CompareAndStore if next.head >= loaded => {
                assert_eq!(next.head, next.reserved, "a record was left unpublished");
                1
            }
            Step::CompareAndStore => {
                next.head = loaded;
                next.check(before);
                run(next, Step::LoadRest, at, 0, handlers)
            }
        };
        ends
    }

    /// Every place at which handlers can come between two steps of a writer, up to three of them: a model of `push`, step by
    /// step.
    #[test]
    fn no_interleaving_of_handlers_publishes_what_is_not_written() {
        let ends = run(Model { reserved: 0, head: 0, written: 0 }, Step::Reserve, 0, 0, 3);
        assert!(ends > 250, "{ends} interleavings are not all");
    }
}

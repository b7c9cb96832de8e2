//! Rings in shared memory as a recorder writes them, and as a program that writes anywhere leaves them.

use crate::channels::ChannelReader;
use crate::clock::Clock;
use crate::drain::{Pass, Passed};
use crate::pairing::Pairing;
use crate::shared_memory::SharedMemory;
use crate::stacks::StackNumbers;
use mallow_profile::{Aggregator, RegionMetrics, RequestTotals, Requested, Summary, ThreadIndex};
use mallow_wire::event::{self, Kind};
use mallow_wire::shared::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::atomic::Ordering;

/// Reads a memory's rings, as a recording does.
struct Reading {
    clock: Clock,
    pairing: Pairing,
    stacks: StackNumbers,
    readers: Vec<ChannelReader>,
    counted: Vec<(ThreadIndex, Option<RegionMetrics>)>,
}

impl Reading {
    fn new(channel_count: u32) -> Reading {
        let reader =
            |channel| ChannelReader { thread: ThreadIndex(channel), taken_serial: 1, tail: 0, tsc: 0 };
        let mut clock = Clock::start();
        clock.note();
        Reading {
            clock,
            pairing: Pairing::new(true),
            stacks: StackNumbers::default(),
            readers: (0..channel_count).map(reader).collect(),
            counted: Vec::new(),
        }
    }

    fn pass(&mut self, memory: &SharedMemory, until_tsc: u64) -> Passed {
        let mapping = memory.map();
        let mut pass = Pass {
            mapping: &mapping,
            clock: &self.clock,
            until_tsc,
            pairing: &mut self.pairing,
            stacks: &mut self.stacks,
            marks: None,
            counted: &mut self.counted,
            flush: &mut |_, _| {},
        };
        pass.run(&mut self.readers)
    }

    fn finish(self) -> Summary {
        self.pairing.finish(1, |_| {}).0.into_summary()
    }
}

/// A thread's marks stand among its events, and another thread's events are not its own.
#[test]
fn a_thread_is_counted_between_its_marks() {
    let memory = SharedMemory::new(2);
    let mark = |tsc, what: event::Mark, lost| {
        let words = [event::word0(Kind::Mark, 0, lost), event::word1(lost, what as u32)];
        memory.push(0, &[event::time_word(tsc), words[0], words[1]]);
    };
    memory.alloc(0, 10, 0x1000, 8, NODE_ROOT);
    mark(20, event::Mark::CountBegins, 3);
    memory.alloc(0, 30, 0x2000, 100, NODE_ROOT);
    memory.alloc(1, 31, 0x3000, 7000, NODE_ROOT);
    memory.free(0, 40, 0x2000);
    memory.alloc(0, 50, 0x2000, 60, NODE_ROOT);
    memory.free(0, 60, 0x1000);
    mark(70, event::Mark::CountEnds, 3);
    memory.alloc(0, 80, 0x4000, 5, NODE_ROOT);
    mark(90, event::Mark::CountEnds, 3);
    let mut reading = Reading::new(2);
    let _ = reading.pass(&memory, u64::MAX);
    let counted = RegionMetrics {
        allocations: 2,
        bytes: 160,
        peak_bytes: 100,
        remaining_blocks: 1,
        remaining_bytes: 60,
        temporary: 1,
        ..RegionMetrics::default()
    };
    assert_eq!(reading.counted, [(ThreadIndex(0), Some(counted)), (ThreadIndex(0), None)]);
}

fn tail(memory: &SharedMemory, channel: usize) -> u64 {
    memory.map().channel(channel).tail.load(Ordering::Relaxed)
}

/// What a call that was left by a jump leaves behind is passed over, and a length that cannot be is no way out of the ring.
#[test]
fn skip_records_are_neither_events_nor_damage() {
    let memory = SharedMemory::new(1);
    memory.alloc(0, 10, 0x1000, 8, NODE_ROOT);
    // Three words of which the last two were never written, as `mallow_recorder::ring` closes them.
    memory.push(0, &[event::skip_word(3), 0xdead_beef, 0xdead_beef]);
    memory.free(0, 20, 0x1000);
    let mut reading = Reading::new(1);
    assert_eq!(reading.pass(&memory, u64::MAX), Passed { words: 8, damages: 0, is_cut: false });
    for length in [0, u64::MAX >> 4] {
        memory.push(0, &[event::skip_word(length)]);
        assert_eq!(
            reading.pass(&memory, u64::MAX),
            Passed { words: 1, damages: 0, is_cut: false },
            "{length}"
        );
    }
    let folded = reading.finish();
    assert_eq!((folded.totals.allocations, folded.totals.frees, folded.totals.leaked_blocks), (1, 1, 0));
}

#[test]
fn stamps_decide_the_order_over_all_channels() {
    // One address goes from hand to hand: any other order than that of the stamps leaves frees unmatched.
    const HANDS: u64 = 3;
    let memory = SharedMemory::new(HANDS as usize);
    let rounds = 300;
    for round in 0..rounds {
        let (owner, other) = ((round % HANDS) as usize, ((round + 1) % HANDS) as usize);
        memory.alloc(owner, 10 + round * 10, 0x1000, round, NODE_ROOT);
        memory.free(other, 15 + round * 10, 0x1000);
    }
    let mut reading = Reading::new(HANDS as u32);
    assert_eq!(reading.pass(&memory, u64::MAX), Passed { words: rounds * 5, damages: 0, is_cut: false });
    let folded = reading.finish();
    assert_eq!((folded.totals.allocations, folded.totals.frees), (rounds, rounds));
    assert_eq!((folded.frees_unmatched, folded.totals.leaked_blocks), (0, 0));
    // Out of order, two rounds would be live together.
    assert_eq!((folded.totals.peak_bytes, folded.totals.peak_blocks), (rounds - 1, 1));
}

/// Records without a stamp are read as those with the stamp of the one before them, in the next pass too.
#[test]
fn events_without_a_stamp_have_the_time_of_the_event_before() {
    let memory = SharedMemory::new(2);
    memory.alloc(0, 100, 0x1000, 8, NODE_ROOT);
    memory.free(0, 0, 0x1000);
    memory.alloc(0, 0, 0x1000, 100, NODE_ROOT);
    memory.free(1, 150, 0x1000);
    memory.alloc(1, 151, 0x1000, 30, NODE_ROOT);
    let mut reading = Reading::new(2);
    assert_eq!(reading.pass(&memory, 99).words, 0);
    assert_eq!(reading.pass(&memory, 120).words, 6);
    memory.alloc(0, 0, 0x2000, 7, NODE_ROOT);
    assert_eq!(reading.pass(&memory, 120).words, 2);
    assert_eq!(reading.pass(&memory, u64::MAX).words, 5);
    let folded = reading.finish();
    assert_eq!((folded.totals.allocations, folded.totals.frees, folded.frees_unmatched), (4, 2, 0));
    assert_eq!((folded.totals.peak_bytes, folded.totals.leaked_blocks), (107, 2));
}

#[test]
fn events_after_the_cut_stay_in_the_ring() {
    let memory = SharedMemory::new(2);
    memory.alloc(0, 100, 0x1000, 8, NODE_ROOT);
    memory.alloc(0, 300, 0x2000, 8, NODE_ROOT);
    memory.alloc(1, 200, 0x3000, 8, NODE_ROOT);
    let mut reading = Reading::new(2);
    assert_eq!(reading.pass(&memory, 99).words, 0);
    assert_eq!(reading.pass(&memory, 200).words, 6);
    assert_eq!((tail(&memory, 0), tail(&memory, 1)), (3, 3));
    assert_eq!(reading.pass(&memory, 299).words, 0);
    assert_eq!(reading.pass(&memory, 300).words, 3);
    assert_eq!((tail(&memory, 0), tail(&memory, 1)), (6, 3));
    assert_eq!(reading.finish().totals.allocations, 3);
}

#[test]
fn a_ring_wraps_around_and_releases_space_while_read() {
    let memory = SharedMemory::new(1);
    let mut reading = Reading::new(1);
    let time = event::time_word(5);
    let alloc = [event::word0(Kind::Alloc, 0x1000, 8), event::word1(8, NODE_ROOT)];
    let round = [time, alloc[0], alloc[1], time, event::word0(Kind::Free, 0x1000, 0)];
    let mut words = 0;
    for _ in 0..3 {
        let rounds = round.repeat(RING_WORDS / 5);
        memory.push(0, &rounds);
        words += rounds.len() as u64;
        assert_eq!(reading.pass(&memory, u64::MAX).words, rounds.len() as u64);
        assert_eq!(tail(&memory, 0), words);
    }
    let futex = memory.map().channel(0).tail_futex.load(Ordering::Relaxed);
    assert!(futex > 3 * 4, "the tail was published {futex} times only");
    let folded = reading.finish();
    assert_eq!((folded.totals.allocations, folded.totals.frees), (words / 5, words / 5));
}

/// A block that is freed at once, which is one event with its free, and one that stays.
#[test]
fn requests_are_told_apart_whether_their_blocks_stay_or_not() {
    let memory = SharedMemory::new(1);
    let mut time = 0;
    let mut push = |kind, address, size, is_freed: bool| {
        time += 10;
        memory.push(
            0,
            &[event::time_word(time), event::word0(kind, address, size), event::word1(size, NODE_ROOT)],
        );
        if is_freed {
            memory.push(0, &[event::word0(Kind::Free, address, 0)]);
        }
    };
    push(Kind::Zeroed, 0x1000, 8, true);
    push(Kind::Zeroed, 0x2000, 16, false);
    push(Kind::Aligned, 0x3000, 100, true);
    push(Kind::Alloc, 0x4000, 1000, false);
    push(Kind::Failed, 0, 5000, false);
    let mut reading = Reading::new(1);
    reading.pass(&memory, u64::MAX);
    let folded = reading.finish();
    let of = |allocations, bytes| Requested { allocations, bytes };
    let expected = RequestTotals { zeroed: of(2, 24), aligned: of(1, 100) };
    assert_eq!(folded.requests, Some(vec![(Aggregator::NO_STACK, expected)]));
    assert_eq!((folded.totals.allocations, folded.totals.temporary), (4, 2));
}

#[test]
fn an_incomplete_record_is_read_in_a_later_pass() {
    let memory = SharedMemory::new(1);
    memory.push(0, &[event::time_word(5), event::word0(Kind::Alloc, 0x1000, 8)]);
    let mut reading = Reading::new(1);
    assert_eq!(reading.pass(&memory, u64::MAX), Passed { words: 1, damages: 0, is_cut: false });
    memory.push(0, &[event::word1(8, NODE_ROOT)]);
    assert_eq!(reading.pass(&memory, u64::MAX).words, 2);
    assert_eq!(reading.finish().totals.bytes, 8);
}

#[test]
fn invalid_words_are_skipped_to_the_head_and_counted() {
    let memory = SharedMemory::new(1);
    memory.alloc(0, 5, 0x1000, 8, NODE_ROOT);
    memory.push(0, &[0xdead_beef_dead_bee0; 100]);
    let mut reading = Reading::new(1);
    assert_eq!(reading.pass(&memory, u64::MAX), Passed { words: 103, damages: 1, is_cut: false });
    memory.alloc(0, 6, 0x2000, 8, NODE_ROOT);
    assert_eq!(reading.pass(&memory, u64::MAX), Passed { words: 3, damages: 0, is_cut: false });
    assert_eq!(reading.finish().totals.allocations, 2);
}

#[test]
fn an_absurd_time_stamp_does_not_block_its_thread() {
    let memory = SharedMemory::new(1);
    memory.alloc(0, (1 << 60) - 1, 0x1000, 8, NODE_ROOT);
    let mut reading = Reading::new(1);
    let until_tsc = reading.clock.note();
    assert_eq!(reading.pass(&memory, until_tsc), Passed { words: 3, damages: 1, is_cut: false });
    assert_eq!(tail(&memory, 0), 3);
}

#[test]
fn a_runaway_head_costs_at_most_one_ring_per_pass() {
    let memory = SharedMemory::new(1);
    memory.map().channel(0).head.store(u64::MAX, Ordering::Relaxed);
    let mut reading = Reading::new(1);
    let passed = reading.pass(&memory, u64::MAX);
    assert_eq!(passed, Passed { words: RING_WORDS as u64, damages: 1, is_cut: false });
    reading.readers[0].tail = u64::MAX - 1;
    assert_eq!(reading.pass(&memory, u64::MAX).words, 1);
}

#[test]
fn a_node_that_does_not_exist_is_no_stack() {
    let memory = SharedMemory::new(1);
    memory.alloc(0, 5, 0x1000, 8, NODE_COUNT as u32 + 7);
    memory.alloc(0, 6, 0x2000, 8, 12);
    let mut reading = Reading::new(1);
    reading.pass(&memory, u64::MAX);
    let folded = reading.finish();
    assert_eq!(folded.sites.len(), 1);
    assert_eq!(folded.sites[0].stack, mallow_profile::Aggregator::NO_STACK);
    assert_eq!(folded.sites[0].totals.allocations, 2);
}

fn read_modules(memory: &SharedMemory) -> usize {
    let mapping = memory.map();
    let (mut offset, mut count) = (0, 0);
    while let Some((_, next)) = mapping.module(offset) {
        assert!(next > offset);
        (offset, count) = (next, count + 1);
    }
    count
}

#[test]
fn module_records_of_absurd_lengths_end_the_log() {
    for (record_bytes, path_bytes, used) in [
        (0, 8u16, u64::MAX),
        (!7, 8, u64::MAX),
        (41, 0, u64::MAX),
        (40, 1, u64::MAX),
        (64, u16::MAX, u64::MAX),
        (48, 8, 47),
        (48, 8, 0),
    ] {
        let memory = SharedMemory::new(1);
        memory.map().header().modules_reserved.store(used, Ordering::Relaxed);
        memory.write(MODULES_OFFSET, &u32::to_le_bytes(record_bytes));
        memory.write(MODULES_OFFSET + 4, &path_bytes.to_le_bytes());
        assert_eq!(read_modules(&memory), 0, "{record_bytes} {path_bytes} {used}");
        memory.write(MODULES_OFFSET, &48u32.to_le_bytes());
        memory.write(MODULES_OFFSET + 4, &8u16.to_le_bytes());
        assert_eq!(read_modules(&memory), usize::from(used > 47));
    }
}

/// A signal handler jumped out of the program's code while a record was written: what stands behind it is read when the process has ended.
#[test]
fn a_record_that_is_never_filled_is_skipped_at_the_end() {
    let memory = SharedMemory::new(1);
    let mapping = memory.map();
    mapping.header().modules_reserved.store(64 + 48, Ordering::Relaxed);
    memory.write(MODULES_OFFSET, &(64 | UNFILLED).to_le_bytes());
    memory.write(MODULES_OFFSET + 64, &48u32.to_le_bytes());
    memory.write(MODULES_OFFSET + 64 + 4, &8u16.to_le_bytes());
    assert!(mapping.module(0).is_none());
    assert_eq!(mapping.behind_unfilled_module(0), Some(64));
    assert_eq!(mapping.module(64).map(|(_, behind)| behind), Some(112));
    // One that is filled is none, nor one without a length or with one that leads out of the log.
    assert_eq!(mapping.behind_unfilled_module(64), None);
    for length in [UNFILLED, UNFILLED | 41, UNFILLED | 120, 0] {
        memory.write(MODULES_OFFSET, &length.to_le_bytes());
        assert_eq!(mapping.behind_unfilled_module(0), None, "{length:x}");
    }
}

/// Somewhere in the memory that matters, and what to write there.
fn damage() -> impl Strategy<Value = (usize, Vec<u8>)> {
    // Behind the fields that are checked when the memory is mapped.
    let header = 32..size_of::<Header>();
    let place = prop_oneof![
        1 => header,
        2 => NODES_OFFSET..NODES_OFFSET + 64 * size_of::<Node>(),
        1 => MODULES_OFFSET..MODULES_OFFSET + 400,
        2 => CHANNELS_OFFSET..CHANNELS_OFFSET + 3 * size_of::<Channel>(),
        4 => RINGS_OFFSET..RINGS_OFFSET + 3000,
        4 => RINGS_OFFSET + RING_BYTES..RINGS_OFFSET + RING_BYTES + 3000,
    ];
    let bytes = prop_oneof![
        vec(any::<u8>(), 1..40),
        // Small numbers make sense more often.
        vec(0..64u64, 1..20).prop_map(|words| words.into_iter().flat_map(u64::to_le_bytes).collect()),
    ];
    (place, bytes).prop_map(|(place, bytes)| (place & !7, bytes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_damage_makes_the_collector_panic_or_loop(
        damages in vec(damage(), 1..60), heads in vec(0..2000u64, 3),
    ) {
        let memory = SharedMemory::new(3);
        for i in 0..200u64 {
            memory.node(i as u32 % 64, node_key(0x1000 + i, false, 0), i % 64);
            memory.alloc(i as usize % 2, 1000 + i, 0x1000 + i % 9 * 16, i, i as u32 % 64);
            memory.free((i as usize + 1) % 2, 1001 + i, 0x1000 + i % 9 * 16);
        }
        for (channel, head) in heads.into_iter().enumerate() {
            memory.map().channel(channel).head.fetch_add(head, Ordering::Relaxed);
        }
        for (offset, bytes) in &damages {
            memory.write(*offset, bytes);
        }
        let mut reading = Reading::new(3);
        let until_tsc = reading.clock.note();
        for until_tsc in [1100, until_tsc, u64::MAX] {
            // Each channel gives one ring at most.
            prop_assert!(reading.pass(&memory, until_tsc).words <= 3 * RING_WORDS as u64);
        }
        read_modules(&memory);
        crate::channels::recycle(&memory.map(), std::process::id(), |_, _| true);
        let folded = reading.finish();
        let matched = folded.totals.frees - folded.frees_unmatched;
        prop_assert_eq!(folded.totals.leaked_blocks, folded.totals.allocations - matched);
    }
}

//! The pairing against a naive twin that is told the truth, while the pairing sees neighbours of different
//! threads the wrong way round.

use crate::pairing::Pairing;
use mallow_profile::{StackId, Summary, ThreadIndex, Totals};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STACK: StackId = StackId(0);

/// An event as a ring holds it.
#[derive(Clone, Copy, Debug)]
enum RingEvent {
    Alloc { address: u64, size: u64 },
    Free { address: u64 },
    Begin { address: u64 },
    Moved { address: u64, size: u64 },
    Freed,
    ReallocFailed,
    Failed,
}

/// An event, its thread, and its time in microseconds.
type Stamped = (u32, u64, RingEvent);

fn feed(pairing: &mut Pairing, (thread, time_us, seen): Stamped) {
    let thread = ThreadIndex(thread);
    match seen {
        RingEvent::Alloc { address, size } => pairing.alloc(thread, address, STACK, size, time_us),
        RingEvent::Free { address } => pairing.free(thread, address, time_us),
        RingEvent::Begin { address } => pairing.realloc_begin(thread, address, false, time_us),
        RingEvent::Moved { address, size } => pairing.realloc_done(thread, address, STACK, size, time_us),
        RingEvent::Freed => pairing.realloc_freed(thread, time_us),
        RingEvent::ReallocFailed => pairing.realloc_failed(thread, STACK, 99, time_us),
        RingEvent::Failed => pairing.failed(thread, STACK, 99, time_us),
    }
}

fn paired(events: impl IntoIterator<Item = Stamped>) -> Summary {
    let mut pairing = Pairing::new(true);
    events.into_iter().for_each(|event| feed(&mut pairing, event));
    pairing.finish(1_000_000, |_| {}).0.into_summary()
}

/// What a `realloc` will come to, decided when it begins.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Moved(u64, u64),
    Freed,
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    thread: u32,
    serial: u64,
}

/// A program of several threads that does only what programs can do, and the figures of what it did.
#[derive(Debug, Default)]
struct Program {
    live: BTreeMap<u64, Block>,
    /// Addresses that a running `realloc` keeps or will give.
    reserved: Vec<u64>,
    running: BTreeMap<u32, (Option<(u64, Block)>, Outcome)>,
    latest: BTreeMap<u32, u64>,
    serial: u64,
    totals: Totals,
    unmatched: u64,
    events: Vec<Stamped>,
}

impl Program {
    fn born(&mut self, thread: u32, address: u64, size: u64) {
        self.serial += 1;
        self.live.insert(address, Block { size, thread, serial: self.serial });
        self.latest.insert(thread, self.serial);
        self.totals.allocations += 1;
        self.totals.bytes += size;
    }

    fn died(&mut self, thread: u32, block: Option<Block>) {
        self.totals.frees += 1;
        match block {
            None => self.unmatched += 1,
            Some(block) => {
                let latest = self.latest.get(&thread) == Some(&block.serial);
                self.totals.temporary += u64::from(latest && block.thread == thread);
            }
        }
    }

    fn step(&mut self, (thread, passed_us, choice, place, target, size): (u32, u64, u8, u64, u64, u64)) {
        let time_us = self.events.last().map_or(100, |(_, time_us, _)| *time_us) + passed_us;
        let (address, target) = (0x1000 + place * 16, 0x1000 + target * 16);
        // Blocks from before a fork have addresses of their own.
        let inherited = 0x9000 + place * 16;
        let seen = if let Some((old, outcome)) = self.running.remove(&thread) {
            self.end(thread, old, outcome)
        } else {
            match choice {
                0..4 if self.is_vacant(address) => {
                    self.born(thread, address, size);
                    RingEvent::Alloc { address, size }
                }
                4..7 if self.live.contains_key(&address) => {
                    let block = self.live.remove(&address);
                    self.died(thread, block);
                    RingEvent::Free { address }
                }
                7 if self.live.contains_key(&address) => self.begin(thread, address, target, size),
                8 => {
                    self.running.insert(thread, (None, Outcome::Failed));
                    RingEvent::Begin { address: inherited }
                }
                9 if self.is_vacant(target) => {
                    self.reserved.push(target);
                    self.running.insert(thread, (None, Outcome::Moved(target, size)));
                    RingEvent::Begin { address: inherited }
                }
                10 => {
                    self.died(thread, None);
                    RingEvent::Free { address: inherited }
                }
                11 => {
                    self.totals.failed += 1;
                    RingEvent::Failed
                }
                12 => {
                    self.running.insert(thread, (None, Outcome::Freed));
                    RingEvent::Begin { address: inherited }
                }
                _ => return,
            }
        };
        self.events.push((thread, time_us, seen));
    }

    fn is_vacant(&self, address: u64) -> bool {
        !self.live.contains_key(&address) && !self.reserved.contains(&address)
    }

    fn begin(&mut self, thread: u32, address: u64, target: u64, size: u64) -> RingEvent {
        let outcome = match size % 4 {
            0 => Outcome::Failed,
            1 => Outcome::Freed,
            _ if self.is_vacant(target) => Outcome::Moved(target, size),
            _ => Outcome::Moved(address, size),
        };
        let block = self.live.remove(&address);
        match outcome {
            Outcome::Moved(target, _) => self.reserved.push(target),
            Outcome::Failed => self.reserved.push(address),
            Outcome::Freed => {}
        }
        self.running.insert(thread, (block.map(|block| (address, block)), outcome));
        RingEvent::Begin { address }
    }

    fn end(&mut self, thread: u32, old: Option<(u64, Block)>, outcome: Outcome) -> RingEvent {
        let block = old.map(|(_, block)| block);
        match outcome {
            Outcome::Moved(address, size) => {
                self.reserved.retain(|reserved| *reserved != address);
                self.died(thread, block);
                self.born(thread, address, size);
                self.totals.reallocations += 1;
                RingEvent::Moved { address, size }
            }
            Outcome::Freed => {
                self.died(thread, block);
                RingEvent::Freed
            }
            Outcome::Failed => {
                if let Some((address, block)) = old {
                    self.reserved.retain(|reserved| *reserved != address);
                    self.live.insert(address, block);
                }
                self.totals.failed += 1;
                RingEvent::ReallocFailed
            }
        }
    }

    /// The figures, with the peak's left open: it depends on the order that was seen.
    fn totals(&self) -> Totals {
        let running = self.running.values().filter_map(|(old, _)| old.map(|(_, block)| block));
        let live: Vec<Block> = self.live.values().copied().chain(running).collect();
        Totals {
            leaked_blocks: live.len() as u64,
            leaked_bytes: live.iter().map(|block| block.size).sum(),
            ..self.totals
        }
    }
}

fn without_peak(totals: Totals) -> Totals {
    Totals { peak_bytes: 0, peak_blocks: 0, ..totals }
}

/// The highest sum of live bytes; a `realloc` frees the old block when it ends.
fn peak_bytes(events: &[Stamped]) -> u64 {
    let mut pairing: BTreeMap<u64, u64> = BTreeMap::new();
    let mut running: BTreeMap<u32, Option<(u64, u64)>> = BTreeMap::new();
    let mut peak = 0;
    for (thread, _, seen) in events {
        match *seen {
            RingEvent::Alloc { address, size } => drop(pairing.insert(address, size)),
            RingEvent::Free { address } => drop(pairing.remove(&address)),
            RingEvent::Begin { address } => {
                let size = pairing.remove(&address);
                running.insert(*thread, size.map(|size| (address, size)));
            }
            RingEvent::Moved { address, size } => {
                running.remove(thread);
                pairing.insert(address, size);
            }
            RingEvent::Freed => drop(running.remove(thread)),
            RingEvent::ReallocFailed => pairing.extend(running.remove(thread).flatten()),
            RingEvent::Failed => {}
        }
        let kept: u64 = running.values().flatten().map(|(_, size)| size).sum();
        peak = peak.max(pairing.values().sum::<u64>() + kept);
    }
    peak
}

/// Neighbours of different threads that lie within 2 µs change places where the coin says so; none moves
/// twice.
fn swapped(events: &[Stamped], coins: &[bool]) -> Vec<Stamped> {
    let mut events = events.to_vec();
    let mut at = 1;
    while at < events.len() {
        let (before, after) = (events[at - 1], events[at]);
        let may_swap = before.0 != after.0 && after.1 - before.1 <= 2;
        if may_swap && coins[at % coins.len()] {
            events.swap(at - 1, at);
            at += 1;
        }
        at += 1;
    }
    events
}

fn program() -> impl Strategy<Value = Program> {
    vec((0..4u32, 0..4u64, 0..13u8, 0..5u64, 0..5u64, 1..60u64), 0..120).prop_map(|steps| {
        let mut program = Program::default();
        steps.into_iter().for_each(|step| program.step(step));
        program
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn events_in_order_yield_the_expected_totals(program in program()) {
        let folded = paired(program.events.iter().copied());
        prop_assert_eq!(without_peak(folded.totals), program.totals());
        prop_assert_eq!(folded.frees_unmatched, program.unmatched);
        prop_assert_eq!(folded.totals.peak_bytes, peak_bytes(&program.events));
    }

    #[test]
    fn swapped_neighbours_yield_the_same_totals(
        program in program(), coins in vec(any::<bool>(), 1..50),
    ) {
        let folded = paired(swapped(&program.events, &coins));
        prop_assert_eq!(without_peak(folded.totals), program.totals());
        prop_assert_eq!(folded.frees_unmatched, program.unmatched);
    }

    #[test]
    fn events_that_no_program_can_make_do_not_panic(
        events in vec((0..3u32, 0..9u64, 0..7u8, 0..4u64, any::<u32>()), 0..200),
    ) {
        let mut time_us = 0;
        let events = events.into_iter().map(|(thread, passed_us, kind, place, size)| {
            time_us += passed_us;
            let (address, size) = (16 + place * 16, u64::from(size));
            let seen = match kind {
                0 => RingEvent::Alloc { address, size },
                1 => RingEvent::Free { address },
                2 => RingEvent::Begin { address },
                3 => RingEvent::Moved { address, size },
                4 => RingEvent::Freed,
                5 => RingEvent::ReallocFailed,
                _ => RingEvent::Failed,
            };
            (thread, time_us, seen)
        });
        let folded = paired(events);
        let matched = folded.totals.frees - folded.frees_unmatched;
        prop_assert_eq!(folded.totals.leaked_blocks, folded.totals.allocations - matched);
    }
}

const HERE: u64 = 0x1000;

#[test]
fn a_block_from_before_the_fork_is_freed_unmatched() {
    let folded = paired([(0, 10, RingEvent::Free { address: HERE })]);
    assert_eq!((folded.totals.frees, folded.frees_unmatched), (1, 1));
}

#[test]
fn a_child_that_frees_and_then_gets_the_same_address_has_a_live_block() {
    let folded = paired([
        (0, 10, RingEvent::Free { address: HERE }),
        (0, 10, RingEvent::Alloc { address: HERE, size: 24 }),
    ]);
    assert_eq!((folded.totals.frees, folded.frees_unmatched), (1, 1));
    assert_eq!((folded.totals.leaked_blocks, folded.totals.leaked_bytes), (1, 24));
}

#[test]
fn a_free_does_not_wait_for_an_allocation_of_much_later() {
    let folded = paired([
        (0, 10, RingEvent::Free { address: HERE }),
        (1, 20, RingEvent::Alloc { address: HERE, size: 24 }),
    ]);
    assert_eq!((folded.frees_unmatched, folded.totals.leaked_blocks), (1, 1));
}

#[test]
fn a_block_whose_free_went_unseen_does_not_shift_the_frees_behind_it() {
    // 10 bytes vanish unseen; the free after 100 µs is the second block's.
    let folded = paired([
        (0, 10, RingEvent::Alloc { address: HERE, size: 10 }),
        (0, 20, RingEvent::Alloc { address: HERE, size: 20 }),
        (0, 120, RingEvent::Free { address: HERE }),
        (0, 121, RingEvent::Alloc { address: HERE, size: 30 }),
    ]);
    assert_eq!((folded.totals.frees, folded.frees_unmatched), (2, 0));
    assert_eq!((folded.totals.leaked_blocks, folded.totals.leaked_bytes), (1, 30));
}

#[test]
fn a_process_killed_in_realloc_leaves_the_block_live() {
    let folded = paired([
        (0, 10, RingEvent::Alloc { address: HERE, size: 40 }),
        (0, 11, RingEvent::Begin { address: HERE }),
    ]);
    assert_eq!((folded.totals.leaked_blocks, folded.totals.leaked_bytes), (1, 40));
    assert_eq!((folded.totals.frees, folded.totals.reallocations), (0, 0));
}

#[test]
fn a_realloc_whose_end_was_lost_leaves_its_block_live() {
    let folded = paired([
        (0, 10, RingEvent::Alloc { address: HERE, size: 40 }),
        (0, 11, RingEvent::Begin { address: HERE }),
        (0, 12, RingEvent::Begin { address: HERE }),
        (0, 13, RingEvent::Moved { address: HERE, size: 80 }),
    ]);
    assert_eq!((folded.totals.leaked_blocks, folded.totals.leaked_bytes), (1, 80));
    assert_eq!((folded.totals.reallocations, folded.frees_unmatched), (1, 0));
}

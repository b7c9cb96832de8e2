//! Mappings against a naive twin that holds them page by page, while calls of several threads overlap; and the events of the trace, added up again,
//! against both.

use crate::pairing::{MappingEvent, Pairing};
use mallow_profile::{Aggregator, BlockId, StackId, Summary, ThreadIndex, Totals};
use mallow_trace::{EventVisitor, decode_events};
use mallow_wire::event::Mapping;
use mallow_wire::shared::PAGE_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STACK: StackId = StackId(0);
const PAGE: u64 = PAGE_BYTES as u64;

/// What a record says: what happened, the first page, and the size.
type Record = (u32, Mapping, u64, u64);

/// The sums of records, and those of the trace's events.
fn summed(records: &[Record]) -> [Summary; 2] {
    let mut pairing = Pairing::new(true);
    for (time_us, (thread, what, page, size)) in (1..).zip(records.iter().copied()) {
        let (thread, address) = (ThreadIndex(thread), page * PAGE + what as u64);
        pairing.mapping(MappingEvent { address, size, stack: STACK, thread, time_us });
    }
    let mut payload = Vec::new();
    let own = pairing.finish(1_000_000, |events| events.take(&mut payload)).0.into_summary();
    let mut replay = Replay(Aggregator::new().told_requests());
    decode_events(&payload, &mut replay).expect("what was encoded can be decoded");
    [own, replay.0.finish(1_000_000)]
}

struct Replay(Aggregator);

impl EventVisitor for Replay {
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.0.alloc(ThreadIndex(thread), StackId(stack), size, time_us).0
    }
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        self.0.free(ThreadIndex(thread), BlockId(block), time_us);
    }
    fn realloc(&mut self, thread: u32, block: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.0.realloc(ThreadIndex(thread), BlockId(block), StackId(stack), size, time_us).0
    }
    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        self.0.realloc_unmatched(ThreadIndex(thread), StackId(stack), size, time_us).0
    }
    fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        self.0.free_unmatched(ThreadIndex(thread), time_us);
    }
    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        self.0.failed(ThreadIndex(thread), StackId(stack), size, time_us);
    }
}

/// How a call that has begun will end: decided at its begin.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Unmapped,
    Kept,
    Remapped { page: u64, size: u64 },
    RemapFailed,
}

/// A page that is mapped: by which mapping, and how many of its bytes were asked for.
type Page = (u64, u64);

/// A call that has begun: the pages that it takes, whether anything counted was there, and the outcome.
type Running = (Vec<(u64, Page)>, bool, Outcome);

/// A program of several threads that does only what programs can do, and what it comes to by the counting rules.
#[derive(Debug, Default)]
struct Twin {
    pages: BTreeMap<u64, Page>,
    /// By mapping, the number of its block, and the thread that made that.
    blocks: BTreeMap<u64, (u64, u32)>,
    /// By thread.
    running: BTreeMap<u32, Running>,
    latest: BTreeMap<u32, u64>,
    made: u64,
    live_bytes: u64,
    totals: Totals,
    records: Vec<Record>,
}

impl Twin {
    /// The bytes of a mapping that are left, those included that a running call has.
    fn left(&self, mapping: u64) -> u64 {
        let running = self.running.values().flat_map(|(pages, ..)| pages.iter().map(|(_, page)| page));
        self.pages.values().chain(running).filter(|page| page.0 == mapping).map(|page| page.1).sum()
    }

    fn born(&mut self, thread: u32, mapping: u64, size: u64) {
        self.made += 1;
        self.blocks.insert(mapping, (self.made, thread));
        self.latest.insert(thread, self.made);
        self.totals.allocations += 1;
        self.totals.bytes += size;
        self.live_bytes += size;
        self.totals.peak_bytes = self.totals.peak_bytes.max(self.live_bytes);
    }

    fn died(&mut self, thread: u32, mapping: u64, size: u64) {
        let (block, maker) = self.blocks.remove(&mapping).expect("it lives");
        self.totals.frees += 1;
        self.totals.temporary += u64::from(maker == thread && self.latest.get(&thread) == Some(&block));
        self.live_bytes -= size;
    }

    /// Pages are gone, and no more anywhere. With `becomes`, the first mapping of which nothing is left becomes that one.
    fn lose(&mut self, thread: u32, lost: &[(u64, Page)], becomes: Option<(u64, u64)>) -> bool {
        let mut mappings: Vec<u64> = Vec::new();
        lost.iter().for_each(|(_, (mapping, _))| {
            if !mappings.contains(mapping) {
                mappings.push(*mapping);
            }
        });
        let lost_of = |mapping: u64| -> u64 {
            lost.iter().filter(|(_, page)| page.0 == mapping).map(|(_, page)| page.1).sum()
        };
        let whole = mappings.iter().copied().find(|mapping| self.left(*mapping) == 0);
        let moved = whole.filter(|_| becomes.is_some());
        for mapping in mappings.into_iter().filter(|mapping| Some(*mapping) != moved) {
            let (left, lost) = (self.left(mapping), lost_of(mapping));
            self.died(thread, mapping, left + lost);
            if left > 0 {
                self.totals.reallocations += 1;
                self.born(thread, mapping, left);
            }
        }
        let (Some(old), Some((new, size))) = (moved, becomes) else { return false };
        self.died(thread, old, lost_of(old));
        self.totals.reallocations += 1;
        self.born(thread, new, size);
        true
    }

    fn take(&mut self, page: u64, size: u64) -> Vec<(u64, Page)> {
        let range = page..page + size.div_ceil(PAGE);
        let taken: Vec<_> = self.pages.range(range.clone()).map(|(at, page)| (*at, *page)).collect();
        self.pages.retain(|at, _| !range.contains(at));
        taken
    }

    fn replace(&mut self, thread: u32, page: u64, size: u64) {
        let lost = self.take(page, size);
        self.lose(thread, &lost, None);
    }

    /// The number that the next mapping will have; it takes its pages.
    fn fill(&mut self, page: u64, size: u64) -> u64 {
        let mapping = page + 1000 * (self.records.len() as u64 + 1);
        for (at, begun) in (page..).zip((0..size).step_by(PAGE_BYTES)) {
            self.pages.insert(at, (mapping, PAGE.min(size - begun)));
        }
        mapping
    }

    /// Returns whether no running call will find something in a range, or leave something there.
    fn is_open(&self, page: u64, size: u64) -> bool {
        let overlaps =
            |at: u64, bytes: u64| at < page + size.div_ceil(PAGE) && page < at + bytes.div_ceil(PAGE);
        self.running.values().all(|(pages, _, outcome)| match *outcome {
            Outcome::Unmapped => true,
            Outcome::Remapped { page, size } => !overlaps(page, size),
            Outcome::Kept | Outcome::RemapFailed => pages.iter().all(|(at, _)| !overlaps(*at, PAGE)),
        })
    }

    fn step(&mut self, (thread, choice, page, size, target, size_new): (u32, u8, u64, u64, u64, u64)) {
        if let Some((pages, is_known, outcome)) = self.running.remove(&thread) {
            return self.end(thread, pages, is_known, outcome);
        }
        if !self.is_open(page, size) || !self.is_open(target, size_new) {
            return;
        }
        match choice {
            0..4 => {
                self.replace(thread, page, size);
                let mapping = self.fill(page, size);
                self.born(thread, mapping, size);
                self.records.push((thread, Mapping::Mapped, page, size));
            }
            4 => {
                self.replace(thread, page, size);
                self.records.push((thread, Mapping::Reserved, page, size));
            }
            5..11 => {
                let outcome = match choice {
                    5..7 => Outcome::Unmapped,
                    7 => Outcome::Kept,
                    8 => Outcome::RemapFailed,
                    9 => Outcome::Remapped { page: target, size: size_new },
                    // Where it was.
                    _ => Outcome::Remapped { page, size: size.min(size_new) },
                };
                let pages = self.take(page, size);
                let is_known = !pages.is_empty();
                self.running.insert(thread, (pages, is_known, outcome));
                self.records.push((thread, Mapping::Leaving, page, size));
            }
            _ => {
                let is_known = self.pages.contains_key(&page);
                let outcome = Outcome::Remapped { page: target, size: size_new };
                self.running.insert(thread, (Vec::new(), is_known, outcome));
                self.records.push((thread, Mapping::Staying, page, 0));
            }
        }
    }

    fn end(&mut self, thread: u32, pages: Vec<(u64, Page)>, is_known: bool, outcome: Outcome) {
        let record = match outcome {
            Outcome::Unmapped => {
                self.lose(thread, &pages, None);
                (thread, Mapping::Unmapped, 0, 0)
            }
            Outcome::Kept => {
                self.pages.extend(pages);
                (thread, Mapping::Kept, 0, 0)
            }
            Outcome::RemapFailed => {
                self.pages.extend(pages);
                self.totals.failed += 1;
                (thread, Mapping::RemapFailed, 0, 99)
            }
            Outcome::Remapped { page, size } => {
                // What is replaced goes first; what is moved is still there then.
                let replaced = self.take(page, size);
                self.running.insert(thread, (pages.clone(), is_known, outcome));
                self.lose(thread, &replaced, None);
                self.running.remove(&thread);
                if is_known {
                    let mapping = page + 1000 * (self.records.len() as u64 + 1);
                    if !self.lose(thread, &pages, Some((mapping, size))) {
                        self.born(thread, mapping, size);
                    }
                    assert_eq!(self.fill(page, size), mapping);
                }
                (thread, Mapping::Remapped, page, size)
            }
        };
        self.records.push(record);
    }
}

proptest! {
    #[test]
    fn mappings_come_to_what_they_come_to_page_by_page(
        steps in vec((0u32..3, 0u8..12, 16u64..48, 1u64..6 * PAGE, 16u64..48, 1u64..6 * PAGE), 0..120),
    ) {
        let mut twin = Twin::default();
        steps.into_iter().for_each(|step| twin.step(step));
        let expected = Totals {
            leaked_bytes: twin.live_bytes,
            leaked_blocks: twin.blocks.len() as u64,
            ..twin.totals
        };
        let [own, replayed] = summed(&twin.records);
        prop_assert_eq!(Totals { peak_blocks: 0, ..own.totals }, expected, "{:?}", twin.records);
        prop_assert_eq!(own.frees_unmatched, 0);
        prop_assert_eq!(&own, &replayed);
    }
}

/// A call that never ended, as one that a handler has left by a jump, has left all where it was.
#[test]
fn a_lost_end_leaves_what_was_mapped() {
    let records = [
        (0, Mapping::Mapped, 16, 2 * PAGE),
        (0, Mapping::Leaving, 16, PAGE),
        (0, Mapping::Leaving, 17, PAGE),
        (0, Mapping::Unmapped, 0, 0),
    ];
    let [own, _] = summed(&records);
    assert_eq!((own.totals.leaked_bytes, own.totals.leaked_blocks, own.totals.reallocations), (PAGE, 1, 1));
}

/// Records that no program can cause: ends without begins, and sizes of nothing.
#[test]
fn records_without_meaning_do_no_harm() {
    let records = [
        (0, Mapping::Unmapped, 0, 0),
        (0, Mapping::Remapped, 16, PAGE),
        (0, Mapping::Kept, 0, 0),
        (0, Mapping::Mapped, 16, 3 * PAGE),
        (0, Mapping::Leaving, 17, 0),
        (0, Mapping::Kept, 0, 0),
        (0, Mapping::Mapped, 17, 0),
        (0, Mapping::Leaving, 0, u64::MAX),
        (0, Mapping::Unmapped, 0, 0),
    ];
    let [own, _] = summed(&records);
    assert_eq!((own.totals.leaked_bytes, own.totals.leaked_blocks, own.totals.frees), (0, 0, 3));
}

/// A handler's call within another one's ends first.
#[test]
fn calls_of_a_handler_end_before_the_one_that_they_interrupted() {
    let mut pairing = Pairing::new(false);
    let records = [
        (Mapping::Mapped as u64, 16, 2 * PAGE),
        (Mapping::Mapped as u64, 32, PAGE),
        (Mapping::Leaving as u64, 16, 2 * PAGE),
        (Mapping::Leaving as u64 | mallow_wire::event::MAPPING_NESTED, 32, PAGE),
        (Mapping::Unmapped as u64, 0, 0),
        (Mapping::Kept as u64, 0, 0),
    ];
    for (time_us, (what, page, size)) in (1..).zip(records) {
        let address = page * PAGE + what;
        pairing.mapping(MappingEvent { address, size, stack: STACK, thread: ThreadIndex(0), time_us });
    }
    let totals = pairing.finish(99, |_| {}).0.totals;
    assert_eq!((totals.leaked_bytes, totals.leaked_blocks, totals.frees), (2 * PAGE, 1, 1));
}

/// A pool hands out the first bytes of a mapping as a block, and takes it back: the mapping is another block than that.
#[test]
fn a_block_at_the_start_of_a_mapping_is_not_the_mapping() {
    let mut pairing = Pairing::new(false);
    let thread = ThreadIndex(0);
    let of = |what: Mapping, time_us| {
        let address = 16 * PAGE + what as u64;
        MappingEvent { address, size: 2 * PAGE, stack: STACK, thread, time_us }
    };
    pairing.mapping(of(Mapping::Mapped, 1));
    pairing.alloc(thread, 16 * PAGE, STACK, 100, 2);
    pairing.free(thread, 16 * PAGE, 3);
    assert_eq!(pairing.fold().live_bytes(), 2 * PAGE);
    pairing.alloc(thread, 16 * PAGE, STACK, 100, 4);
    pairing.mapping(of(Mapping::Leaving, 5));
    pairing.mapping(of(Mapping::Unmapped, 6));
    let totals = pairing.finish(99, |_| {}).0.totals;
    assert_eq!((totals.leaked_bytes, totals.frees, totals.allocations), (100, 2, 3));
}

//! Several threads find what one finds.

use super::*;
use crate::clock::Clock;
use crate::heap::Executables;
use crate::process::{TracedProcess, Wanted};
use crate::session::Registration;
use crate::shared_memory::SharedMemory;
use mallow_profile::Totals;
use mallow_wire::event::{self, Kind};
use mallow_wire::shared::node_key;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Keeps chunks.
#[derive(Default)]
struct KeptChunks(Vec<(u32, ChunkKind, Vec<u8>)>);

impl Sink for KeptChunks {
    fn chunk(
        &mut self,
        kind: ChunkKind,
        process: u32,
        encode: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), CollectError> {
        let mut payload = Vec::new();
        encode(&mut payload);
        self.0.push((process, kind, payload));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CollectError> {
        Ok(())
    }
}

const PROCESSES: u64 = 5;
const WANTED: Wanted = Wanted { events: true, threads: true, regions: None, exited: true, own: false };

/// Publishes what a process of this number does next: blocks that come and go, from two stacks of its own.
fn fill(memory: &SharedMemory, process: u64, round: u64) {
    let words = (0..8_000).flat_map(|block| {
        let address = 0x10_0000 + block % (7 + process) * 0x40 + round * 0x10;
        let size = process * 100 + block % 3;
        let free = (block % 5 != process).then(|| event::word0(Kind::Free, address, 0));
        let node = 1 + (block % 2) as u32;
        [event::word0(Kind::Alloc, address, size), event::word1(size, node)].into_iter().chain(free)
    });
    memory.push(0, &words.collect::<Vec<_>>());
}

/// The metrics of a process, and the chunks that were written of it.
type Found = (Totals, Vec<(ChunkKind, Vec<u8>)>);

/// What comes of some processes.
fn found(workers: Workers, clock: &Clock) -> Vec<Found> {
    let memories: Vec<SharedMemory> = (0..PROCESSES).map(|_| SharedMemory::new(1)).collect();
    let mut executables = Executables::default();
    let mut processes: Vec<TracedProcess> = Vec::new();
    for (index, memory) in (0..).zip(&memories) {
        memory.own(0, 7, 1);
        memory.node(1, node_key(0x100 + u64::from(index), false, 0), 0);
        memory.node(2, node_key(0x200, false, 0), 2);
        let registration = Registration {
            memory: memory.handed_over(),
            peer: crate::peer::Peer::of_pid(std::process::id()),
            command: String::new(),
        };
        let begun = TracedProcess::begin(
            registration,
            index,
            WANTED,
            &mut executables,
            clock,
            &mut KeptChunks::default(),
        );
        processes.push(begun.unwrap());
    }
    let mut kept = KeptChunks::default();
    let mut words = 0;
    for round in 0..6 {
        (0..).zip(&memories).for_each(|(process, memory)| fill(memory, process, round));
        let sink = &SharedSink::new(&mut kept);
        let read = |process: &mut TracedProcess| process.drain(clock, u64::MAX, &mut &*sink);
        words += workers.sum(&mut processes, PROCESSES as usize, read).unwrap();
    }
    let published = memories.iter().map(|memory| memory.map().channel(0).head.load(Ordering::Relaxed));
    assert_eq!(words, published.sum::<u64>());
    processes.iter_mut().for_each(|process| process.write(&mut kept).unwrap());
    let of = |process: &TracedProcess| {
        let chunks = kept.0.iter().filter(|(index, ..)| *index == process.index);
        (process.fold().totals(), chunks.map(|(_, kind, payload)| (*kind, payload.clone())).collect())
    };
    processes.iter().map(of).collect()
}

#[test]
fn processes_read_at_once_have_the_metrics_and_chunks_of_those_read_one_by_one() {
    let mut clock = Clock::start();
    clock.note();
    let one_by_one = found(Workers(1), &clock);
    assert!(one_by_one.iter().all(|(totals, chunks)| totals.allocations == 48_000 && chunks.len() > 2));
    for threads in [2, 8] {
        assert!(found(Workers(threads), &clock) == one_by_one, "{threads} threads");
    }
}

#[test]
fn each_item_is_processed_once_and_small_work_starts_no_thread() {
    for (threads, much) in [(1, 4), (2, 0), (2, 1), (2, 4), (4, 2), (8, 4)] {
        let mut items: Vec<(u64, u32)> = (0..20).map(|number| (number, 0)).collect();
        let here = thread::current().id();
        let elsewhere = AtomicU64::new(0);
        let sum = Workers(threads).sum(&mut items, much, |(number, taken)| {
            *taken += 1;
            elsewhere.fetch_add(u64::from(thread::current().id() != here), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
            Ok(*number)
        });
        assert_eq!(sum.unwrap(), 190);
        assert!(items.iter().all(|(_, taken)| *taken == 1));
        assert_eq!(elsewhere.into_inner() > 0, threads.min(much) > 1, "{threads} threads for {much}");
    }
}

#[test]
fn an_error_on_any_thread_is_returned() {
    let mut items: Vec<u64> = (0..20).collect();
    for failing in [0, 19] {
        let outcome = Workers(4).sum(&mut items, 4, |item| match *item {
            number if number == failing => {
                Err(CollectError::System { what: "fail", cause: std::io::ErrorKind::Other.into() })
            }
            _ => Ok(1),
        });
        assert!(outcome.is_err(), "{failing}");
    }
}

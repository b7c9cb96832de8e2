//! Shared memory that claims more than its process has: what is held for it stays small, and no step of reading it is long.

use super::*;
use crate::clock::Clock;
use crate::error::CollectError;
use crate::heap::Executables;
use crate::marks::Counted;
use crate::process::Wanted;
use crate::session::Registration;
use crate::shared_memory::SharedMemory;
use crate::sink::Sink;
use mallow_trace::ChunkKind;
use mallow_wire::event::{self, Kind, Mark};
use mallow_wire::script::pair_key;
use mallow_wire::shared::*;
use rustix::time::{ClockId, clock_gettime};
use std::mem::offset_of;
use std::process::{Child, Command};
use std::time::Duration;

struct Nowhere;

impl Sink for Nowhere {
    fn chunk(
        &mut self,
        _kind: ChunkKind,
        _process: u32,
        encode: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), CollectError> {
        encode(&mut Vec::new());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CollectError> {
        Ok(())
    }
}

/// A small process that is said to have written a memory.
struct ForgedProcess {
    child: Child,
    memory: SharedMemory,
    clock: Clock,
    process: TracedProcess,
}

impl ForgedProcess {
    fn new(regions: Option<Counted>) -> ForgedProcess {
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        let memory = SharedMemory::new(1);
        memory.own(0, 7, 1);
        let registration = Registration {
            memory: memory.handed_over(),
            peer: Peer::of_pid(child.id()),
            command: String::new(),
        };
        let wanted = Wanted { events: true, threads: true, regions, exited: true, own: false };
        let mut clock = Clock::start();
        clock.note();
        let process =
            TracedProcess::begin(registration, 0, wanted, &mut Executables::default(), &clock, &mut Nowhere);
        ForgedProcess { child, memory, clock, process: process.unwrap() }
    }

    /// Publishes words, as many at a time as a ring holds, and reads them; says how long one reading took at most.
    fn write(&mut self, words: &[u64]) -> Duration {
        let mut longest = Duration::ZERO;
        for words in words.chunks(RING_WORDS) {
            self.memory.push(0, words);
            longest = longest.max(self.read());
        }
        longest
    }

    fn read(&mut self) -> Duration {
        let begun = worked();
        self.process.drain(&self.clock, u64::MAX, &mut Nowhere).unwrap();
        worked() - begun
    }

    fn judged(&mut self) -> Option<String> {
        Budget::default().judge(std::slice::from_mut(&mut self.process));
        self.process.beyond().map(str::to_owned)
    }
}

impl Drop for ForgedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn alloc(address: u64, node: u32) -> [u64; 2] {
    [event::word0(Kind::Alloc, address, 16), event::word1(16, node)]
}

/// Processor time of this thread: what others do meanwhile is no part of it.
fn worked() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A reading may take longer on a busy machine; without a bound it would take minutes.
const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_process_that_claims_more_blocks_than_its_memory_holds_is_dropped() {
    let mut forged = ForgedProcess::new(None);
    let blocks =
        |from: u64, to: u64| -> Vec<u64> { (from..to).flat_map(|at| alloc(at << 20, NODE_ROOT)).collect() };
    forged.write(&blocks(1, 20_000));
    assert_eq!(forged.judged(), None, "some are always allowed");
    forged.write(&blocks(20_000, 200_000));
    let held = forged.process.held_bytes();
    assert!(forged.judged().is_some_and(|why| why.contains("than its memory has room for")), "{held}");
    assert!(held < 3 * EXCESS_BYTES_MAX, "{held}");
}

/// A program may have many processes of which each has a little.
#[test]
fn memory_held_for_ended_processes_counts() {
    let mut forged = ForgedProcess::new(None);
    let mut budget = Budget::default();
    budget.judge(std::slice::from_mut(&mut forged.process));
    assert_eq!(forged.process.beyond(), None);
    budget.ended_excess_bytes = EXCESS_BYTES_MAX + 1;
    budget.judge(std::slice::from_mut(&mut forged.process));
    assert!(forged.process.beyond().is_some());
}

#[test]
fn a_process_that_execs_endlessly_is_dropped_for_good() {
    let mut forged = ForgedProcess::new(None);
    let mut budget = Budget::default();
    (0..IMAGES_MAX).for_each(|_| budget.note_replaced(&mut forged.process));
    assert_eq!(forged.process.beyond(), None);
    budget.note_replaced(&mut forged.process);
    assert!(forged.process.beyond().is_some());
    let peer = Peer::of_pid(forged.child.id());
    assert!(!budget.is_shunned(&peer));
    budget.note_ended(&forged.process);
    assert!(budget.is_shunned(&peer) && !budget.is_shunned(&Peer::of_pid(1)));
    forged.child.kill().unwrap();
    forged.child.wait().unwrap();
    assert!(!budget.is_shunned(&peer), "its number may be another one's now");
}

#[test]
fn an_absurdly_deep_stack_is_not_followed_to_its_end() {
    let mut forged = ForgedProcess::new(None);
    for id in 0..200_000u32 {
        forged.memory.node(id, node_key(0x1000 + u64::from(id), false, 0), u64::from(id) + 2);
    }
    forged.write(&alloc(0x1000, 0));
    assert!(forged.judged().is_some_and(|why| why.contains("deeper than a recorder goes")));
    assert!(forged.process.stacks().len() <= 1 << 16);
}

/// Each event has a pair of its own, and all of them the same two deep stacks.
#[test]
fn a_pass_over_deep_pairs_of_stacks_is_bounded() {
    const DEEP: u32 = 30_000;
    const PAIRS: u32 = 2_000;
    let mut forged = ForgedProcess::new(None);
    for id in 0..DEEP {
        let parent = if id + 1 < DEEP { u64::from(id) + 2 } else { 0 };
        forged.memory.node(id, node_key(0x1000 + u64::from(id), false, 0), parent);
    }
    let words: Vec<u64> = (0..PAIRS)
        .flat_map(|pair| {
            forged.memory.node(DEEP + pair, pair_key(0), 1);
            alloc(0x1000 + u64::from(pair) * 16, DEEP + pair)
        })
        .collect();
    forged.memory.push(0, &words);
    assert!(forged.read() < LONG);
    let left = forged.process.pending_words();
    assert!(0 < left && left < words.len() as u64, "{left} of {} words are for the next pass", words.len());
    // The last ones of a process that has ended: a second of them, and no more.
    let begun = worked();
    forged.process.drain_to_the_end(&forged.clock, &mut Nowhere).unwrap();
    assert!(worked() - begun < LONG);
    assert!(forged.judged().is_some_and(|why| why.contains("than can be read in a second")));
}

/// Short records that each stand for one with the longest path that there is.
#[test]
fn a_log_that_repeats_a_module_does_not_multiply_its_memory() {
    let mut forged = ForgedProcess::new(None);
    let path = [b'/'; 4096];
    let fixed = size_of::<ModuleRecord>();
    let mut log = vec![0u8; MODULE_LOG_BYTES];
    log[fixed..fixed + path.len()].copy_from_slice(&path);
    let put = |log: &mut [u8], at: usize, bytes: &[u8]| log[at..at + bytes.len()].copy_from_slice(bytes);
    put(&mut log, offset_of!(ModuleRecord, path_bytes), &(path.len() as u16).to_le_bytes());
    put(&mut log, offset_of!(ModuleRecord, record_bytes), &((fixed + path.len()) as u32).to_le_bytes());
    let again = size_of::<ModuleAgain>();
    for (generation, at) in (fixed + path.len()..MODULE_LOG_BYTES - again).step_by(again).enumerate() {
        put(&mut log, at + offset_of!(ModuleAgain, record_bytes), &(again as u32).to_le_bytes());
        put(&mut log, at + offset_of!(ModuleAgain, generation), &(generation as u64 + 1).to_le_bytes());
    }
    forged.memory.write(MODULES_OFFSET, &log);
    forged.memory.write(offset_of!(Header, modules_reserved), &(log.len() as u64).to_le_bytes());
    assert!(forged.read() < LONG);
    assert!(forged.judged().is_some_and(|why| why.contains("log of modules")));
    let held: usize = forged.process.modules().iter().map(|module| module.path.len()).sum();
    assert!(held < 64 << 20, "{held}");
}

/// Time stands still, so no end waits too long for its allocation.
#[test]
fn pending_frees_are_bounded() {
    let mut forged = ForgedProcess::new(None);
    let words: Vec<u64> = (1..1_000_000u64).map(|at| event::word0(Kind::Free, at * 16, 0)).collect();
    assert!(forged.write(&words) < LONG);
    assert!(forged.process.held_bytes() < 1 << 20, "{}", forged.process.held_bytes());
    // The same for blocks upon each other.
    let words: Vec<u64> = (1..200_000u64).flat_map(|at| [alloc(at * 16, NODE_ROOT); 2].concat()).collect();
    assert!(forged.write(&words) < LONG);
    assert!(forged.process.held_bytes() < 32 << 20, "{}", forged.process.held_bytes());
}

#[test]
fn nested_regions_are_bounded() {
    let mut forged = ForgedProcess::new(Some(Counted::default()));
    let mark = |what: Mark| [event::word0(Kind::Mark, 0, 0), event::word1(0, what as u32)];
    forged.write(&mark(Mark::Begin));
    assert_eq!(forged.judged(), None);
    // Who waits at a mark cannot come to another one.
    let marks: Vec<u64> = (0..3).flat_map(|_| mark(Mark::Begin)).collect();
    forged.write(&marks);
    assert!(forged.judged().is_some_and(|why| why.contains("waits at a mark")));
    let mut forged = ForgedProcess::new(Some(Counted::default()));
    for _ in 0..1000 {
        forged.write(&mark(Mark::Begin));
    }
    assert!(forged.judged().is_some_and(|why| why.contains("256 regions")));
}

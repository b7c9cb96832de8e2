//! LiveQueries to a recording under way, and the answers.
//!
//! They are taken up between two passes over the rings and answered behind the next one, so that an answer knows
//! everything that happened before its query.

use crate::collector::Observer;
use crate::live_heap::{AllocatorAccount, EndedProcesses, LiveHeap, LiveProcess, Order};
use crate::live_stacks::LiveStacks;
use crate::process::TracedProcess;
use mallow_wire::shared::*;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A query, with the channel for its answer.
#[derive(Debug)]
pub(crate) enum Query {
    Heap(Sender<LiveHeap>),
    Live(Sender<(u64, u64)>),
    Stacks(Sender<LiveStacks>),
    Order(Order, Duration, Sender<Vec<AllocatorAccount>>),
    /// Nobody asks any more: it has no answer.
    End,
}

/// Those who ask.
#[derive(Debug)]
pub(crate) struct LiveQueries {
    receiver: Receiver<Query>,
    started: Option<Sender<u32>>,
    taken: Vec<Query>,
    orders: Vec<Pending>,
    totals: ProcessTotals,
    registered: Registered,
}

/// The processes that have registered and still run, for whoever has to know without waiting for a pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registered(Arc<Mutex<Vec<u32>>>);

impl Registered {
    /// Their ids, as we see them.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, pids: impl Iterator<Item = u32>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
        known.extend(pids);
    }
}

/// What processes had done when they were seen last, so that it is known of those that have ended.
#[derive(Debug, Default)]
struct ProcessTotals {
    /// Allocations of those that live, by their index.
    allocations: FxHashMap<u32, u64>,
    ended: EndedProcesses,
}

impl ProcessTotals {
    /// `living` are the processes of this pass with their allocations.
    fn pass(&mut self, living: impl Iterator<Item = (u32, u64)>) {
        let before = std::mem::take(&mut self.allocations);
        self.allocations.extend(living);
        for (index, allocations) in before {
            if !self.allocations.contains_key(&index) {
                self.ended.processes += 1;
                self.ended.allocations += allocations;
            }
        }
    }
}

/// An order that helper threads carry out.
#[derive(Debug)]
struct Pending {
    /// The process's index, and the number of the query.
    asked: Vec<(u32, u32)>,
    until: Instant,
    reply: Sender<Vec<AllocatorAccount>>,
}

impl LiveQueries {
    pub(crate) fn new(
        receiver: Receiver<Query>,
        started: Sender<u32>,
        registered: Registered,
    ) -> LiveQueries {
        LiveQueries {
            registered,
            receiver,
            started: Some(started),
            taken: Vec::new(),
            orders: Vec::new(),
            totals: ProcessTotals::default(),
        }
    }

    /// The command runs.
    pub(crate) fn started(&mut self, pid: u32) {
        if let Some(started) = self.started.take() {
            let _ = started.send(pid);
        }
    }
}

impl Observer for LiveQueries {
    /// Accepts the queries that were sent until now.
    fn before_pass(&mut self) {
        self.taken.extend(self.receiver.try_iter());
    }

    fn is_over(&self) -> bool {
        self.taken.iter().any(|query| matches!(query, Query::End))
    }

    /// Answers the accepted queries. A caller that has stopped waiting gets no answer.
    fn after_pass(&mut self, processes: &mut [TracedProcess]) {
        self.registered.set(processes.iter().map(|process| process.pid));
        self.totals
            .pass(processes.iter().map(|process| (process.index, process.fold().totals().allocations)));
        for query in std::mem::take(&mut self.taken) {
            match query {
                Query::Heap(reply) => drop(reply.send(look(processes, self.totals.ended))),
                Query::Live(reply) => drop(reply.send(live(processes))),
                Query::Stacks(reply) => drop(reply.send(LiveStacks::of(processes))),
                Query::Order(order, patience, reply) => {
                    self.orders.push(give_order(processes, order, patience, reply));
                }
                Query::End => {}
            }
        }
        self.orders.retain(|pending| !pending.is_over(processes));
    }
}

fn look(processes: &[TracedProcess], ended: EndedProcesses) -> LiveHeap {
    let of = |process: &TracedProcess| {
        let fold = process.fold();
        LiveProcess {
            index: process.index,
            pid: process.pid,
            live_bytes: fold.live_bytes(),
            live_blocks: fold.live_blocks(),
            allocations: fold.totals().allocations,
            has_helper_thread: process.header().helper_thread.tid.load(Ordering::Relaxed) != 0,
            sites: fold.live_sites().collect(),
            heap: process.heap_metrics(),
            source: process.heap_source(),
        }
    };
    LiveHeap { processes: of_programs(processes).map(of).collect(), ended }
}

/// Those that still run the program that registered.
fn of_programs(processes: &[TracedProcess]) -> impl Iterator<Item = &TracedProcess> {
    processes.iter().filter(|process| !process.image().is_replaced())
}

fn live(processes: &[TracedProcess]) -> (u64, u64) {
    of_programs(processes)
        .map(TracedProcess::fold)
        .fold((0, 0), |(bytes, blocks), fold| (bytes + fold.live_bytes(), blocks + fold.live_blocks()))
}

fn give_order(
    processes: &[TracedProcess],
    order: Order,
    patience: Duration,
    reply: Sender<Vec<AllocatorAccount>>,
) -> Pending {
    let mut wanted = 0;
    if order.trim {
        wanted |= REQUEST_TRIM;
    }
    if order.account {
        wanted |= REQUEST_ACCOUNT;
    }
    let mut asked = Vec::new();
    for process in of_programs(processes) {
        let helper_thread = &process.header().helper_thread;
        if helper_thread.tid.load(Ordering::Acquire) == 0 {
            continue;
        }
        helper_thread.order.store(wanted, Ordering::Relaxed);
        let number = helper_thread.asked.fetch_add(1, Ordering::Release).wrapping_add(1);
        let _ = rustix::thread::futex::wake(&helper_thread.asked, rustix::thread::futex::Flags::empty(), 1);
        asked.push((process.index, number));
    }
    Pending { asked, until: Instant::now() + patience, reply }
}

impl Pending {
    /// Returns whether every process has answered or ended, or time is up; the answers are then sent.
    fn is_over(&self, processes: &[TracedProcess]) -> bool {
        let helper_thread_of = |index: u32| processes.iter().find(|process| process.index == index);
        let waits = self.asked.iter().any(|(index, number)| {
            helper_thread_of(*index).is_some_and(|process| {
                process.header().helper_thread.answered.load(Ordering::Acquire) != *number
            })
        });
        if waits && Instant::now() < self.until {
            return false;
        }
        let answered = self.asked.iter().filter_map(|(index, number)| {
            let process = helper_thread_of(*index)?;
            (process.header().helper_thread.answered.load(Ordering::Acquire) == *number)
                .then(|| account(process))?
        });
        let _ = self.reply.send(answered.collect());
        true
    }
}

/// Returns the report of the process's allocator; `None` if it is unknown.
fn account(process: &TracedProcess) -> Option<AllocatorAccount> {
    let helper_thread = &process.header().helper_thread;
    let allocator = match helper_thread.allocator.load(Ordering::Relaxed) {
        ALLOCATOR_GLIBC => "glibc",
        ALLOCATOR_JEMALLOC => "jemalloc",
        ALLOCATOR_MIMALLOC => "mimalloc",
        ALLOCATOR_TCMALLOC => "tcmalloc",
        _ => return None,
    };
    let held = helper_thread.held_bytes.load(Ordering::Relaxed);
    let known = held > 0;
    Some(AllocatorAccount {
        pid: process.pid,
        allocator,
        held_bytes: known.then_some(held),
        used_bytes: known.then(|| helper_thread.used_bytes.load(Ordering::Relaxed).min(held)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_is_counted_with_what_it_had_done_when_it_was_seen_last() {
        let mut totals = ProcessTotals::default();
        totals.pass([(1, 10), (2, 20)].into_iter());
        totals.pass([(1, 15), (2, 25), (3, 7)].into_iter());
        assert_eq!(totals.ended, EndedProcesses::default());
        totals.pass([(1, 16)].into_iter());
        assert_eq!(totals.ended, EndedProcesses { processes: 2, allocations: 32 });
        totals.pass([(1, 17)].into_iter());
        assert_eq!(totals.ended.processes, 2, "nobody ends twice");
    }
}

//! An observation of the server: wait until it is idle, collect and trim its heap, and read its metrics.

use crate::options::{Collection, SoakOptions};
use crate::processes::{self, Mappings};
use crate::runtime::Runtimes;
use crate::server::Running;
use mallow_collect::{AllocatorAccount, LiveHeap, Order};
use mallow_evidence::{
    AllocatorMetrics, HeapMetrics, LoadMetrics, Memory, Phase, ProcessHeap, RuntimeMetrics, Sample, Unread,
};
use mallow_launch::started::name_of;
use mallow_load::status_of;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// The result of an observation.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) sample: Sample,
    /// `None` without a recorder.
    pub(crate) look: Option<LiveHeap>,
    pub(crate) mappings: Mappings,
}

/// The server is idle if its live heap changes by less than this ...
const STILL_BYTES: u64 = 4096;
/// ... or, without a recorder, its resident memory by less than this ...
const STILL_RESIDENT_BYTES: u64 = 64 * 1024;
/// ... for this long.
const STILL: Duration = Duration::from_millis(200);
/// The maximum wait, ...
const STILL_MAX: Duration = Duration::from_secs(3);
/// ... and the maximum if it did not become idle the last time: it will not do so this time either.
const STILL_AGAIN_MAX: Duration = Duration::from_millis(600);
/// The interval between two checks.
const STEP: Duration = Duration::from_millis(20);
/// How long an allocator or a runtime may take to respond.
const PATIENCE: Duration = Duration::from_secs(5);

/// Observes a server.
pub(crate) struct Observer<'a> {
    pub(crate) options: &'a SoakOptions,
    pub(crate) server: &'a Running,
    pub(crate) runtimes: &'a mut Runtimes,
    /// Whether it did not become idle the last time.
    pub(crate) is_restless: bool,
}

impl Observer<'_> {
    /// Waits until the server is idle, collects garbage, releases unused memory, and reads all metrics.
    pub(crate) fn at_rest(&mut self, phase: Phase, load: Option<LoadMetrics>) -> Observed {
        let begun = Instant::now();
        let collected = self.collect();
        let unsettled = !self.settle();
        let settle_ms = begun.elapsed().as_millis() as u64;
        let (pids, threads) = self.server.processes();
        let Read { memory, mut mappings, unread } = memory_of(&pids);
        let accounts = self.order();
        let mut memory_trimmed = None;
        if self.options.trim && !accounts.is_empty() {
            let trimmed = memory_of(&pids);
            (memory_trimmed, mappings) = (Some(trimmed.memory), trimmed.mappings);
        }
        let mut seen = self.read(phase, &pids, threads);
        seen.sample = Sample {
            load,
            memory,
            memory_trimmed,
            unread,
            allocator: allocator_of(&accounts),
            uncollected: collected.is_empty() && pids.iter().any(|pid| processes::is_managed(*pid)),
            runtimes: collected,
            foreign_heap: self.server.foreign_heap(&pids, seen.look.as_ref()),
            asked_to_collect: matches!(self.options.collection, Collection::Path(_) | Collection::Signal(_)),
            settle_ms,
            unsettled,
            ..seen.sample
        };
        seen.mappings = mappings;
        seen
    }

    /// Reads the metrics at once, without changing anything.
    pub(crate) fn in_passing(&mut self, phase: Phase) -> Observed {
        let (pids, threads) = self.server.processes();
        let mut seen = self.read(phase, &pids, threads);
        let read = memory_of(&pids);
        (seen.sample.memory, seen.sample.unread, seen.mappings) = (read.memory, read.unread, read.mappings);
        seen
    }

    fn read(&self, phase: Phase, pids: &[u32], threads: u64) -> Observed {
        // Where no process is recorded, nobody knows the heap.
        let look = self.server.watched().and_then(|watched| watched.heap());
        let look = look.filter(|look| !look.processes.is_empty());
        let helper_threads = look
            .iter()
            .flat_map(|look| &look.processes)
            .filter(|process| process.has_helper_thread && pids.contains(&process.pid))
            .count() as u64;
        let sample = Sample {
            phase,
            seconds: self.server.seconds(),
            heap: look.as_ref().map(heap_of),
            heaps: look.as_ref().map(heaps_of).unwrap_or_default(),
            recorded_ended: look.as_ref().map_or(0, |look| look.ended.processes),
            allocations_ended: look.as_ref().map_or(0, |look| look.ended.allocations),
            descriptors: pids.iter().map(|pid| processes::descriptors(*pid)).sum(),
            threads: threads.saturating_sub(helper_threads),
            processes: pids.len() as u32,
            processes_ended: self.server.ended(),
            ..Sample::default()
        };
        Observed { sample, look, mappings: Mappings::new() }
    }

    /// Collects managed heaps; returns the metrics that the runtimes report.
    fn collect(&mut self) -> Vec<RuntimeMetrics> {
        match &self.options.collection {
            Collection::Never => return Vec::new(),
            Collection::Automatic => {}
            Collection::Path(path) => {
                if let Some(load) = self.options.load() {
                    let _ = status_of(&load.endpoint, load.protocol, path, PATIENCE);
                }
            }
            Collection::Signal(signal) => self.signal(*signal),
        }
        let (pids, _) = self.server.processes();
        self.runtimes.collect(&pids, PATIENCE)
    }

    fn signal(&self, number: i32) {
        let signal = Signal::from_named_raw(number);
        let pid = Pid::from_raw(self.server.pid() as i32);
        if let (Some(signal), Some(pid)) = (signal, pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until the server is idle; returns false if it does not become idle.
    fn settle(&self) -> bool {
        let begun = Instant::now();
        let (limit, mut least, mut most) = (self.stillness(), u64::MAX, 0);
        let mut since = Instant::now();
        let patience = if self.is_restless { STILL_AGAIN_MAX } else { STILL_MAX };
        while begun.elapsed() < patience {
            let level = self.level();
            (least, most) = (least.min(level), most.max(level));
            if most - least >= limit {
                (least, most, since) = (level, level, Instant::now());
            } else if since.elapsed() >= STILL {
                return true;
            }
            std::thread::sleep(STEP);
        }
        false
    }

    fn stillness(&self) -> u64 {
        if self.server.watched().is_some() { STILL_BYTES } else { STILL_RESIDENT_BYTES }
    }

    fn level(&self) -> u64 {
        match self.server.watched().and_then(|watched| watched.live()) {
            Some((bytes, _)) => bytes,
            None => self.server.processes().0.iter().map(|pid| processes::resident_bytes(*pid)).sum(),
        }
    }

    fn order(&self) -> Vec<AllocatorAccount> {
        let order = Order { trim: self.options.trim, account: true };
        self.server.watched().map(|watched| watched.order(order, PATIENCE)).unwrap_or_default()
    }
}

/// What was read of some processes.
#[derive(Default)]
struct Read {
    memory: Memory,
    mappings: Mappings,
    unread: Option<Unread>,
}

/// A process that exits meanwhile is left out.
fn memory_of(pids: &[u32]) -> Read {
    let mut read = Read::default();
    for &pid in pids {
        let added = processes::add_memory(pid, &mut read.memory, &mut read.mappings);
        // What cannot be read of a process that goes on is unknown, and not nothing.
        if let Err(cause) = added
            && processes::process(pid).is_some()
        {
            let program = name_of(pid);
            read.unread.get_or_insert(Unread { pid, program, cause: cause.to_string() });
        }
    }
    read
}

fn heap_of(look: &LiveHeap) -> HeapMetrics {
    let sum = |of: fn(&mallow_collect::LiveProcess) -> u64| look.processes.iter().map(of).sum();
    HeapMetrics {
        live_bytes: sum(|process| process.live_bytes),
        live_blocks: sum(|process| process.live_blocks),
        allocations: sum(|process| process.allocations),
    }
}

/// Returns the heap of each process, where there are several.
fn heaps_of(look: &LiveHeap) -> Vec<ProcessHeap> {
    let of = |process: &mallow_collect::LiveProcess| ProcessHeap {
        index: process.index,
        pid: process.pid,
        live_bytes: process.live_bytes,
        live_blocks: process.live_blocks,
        allocations: process.allocations,
    };
    match look.processes.as_slice() {
        [_] => Vec::new(),
        processes => processes.iter().map(of).collect(),
    }
}

/// Returns the sum over processes; `None` if one of them reports nothing.
fn allocator_of(accounts: &[AllocatorAccount]) -> Option<AllocatorMetrics> {
    let name = accounts.first()?.allocator.to_owned();
    let held_bytes = accounts.iter().map(|account| account.held_bytes).sum::<Option<u64>>()?;
    let used_bytes = accounts.iter().map(|account| account.used_bytes).sum::<Option<u64>>()?;
    Some(AllocatorMetrics { name, held_bytes, used_bytes, free_bytes: held_bytes.saturating_sub(used_bytes) })
}

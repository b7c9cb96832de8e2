//! One look at the server, and what happened since the last one.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The phases, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Ports and command are looked at.
    #[default]
    Preflight,
    /// The server starts.
    Start,
    /// It is left alone.
    Idle,
    /// More load than later, so that pools and arenas reach their size.
    Burst,
    /// Iterations that are not judged.
    #[serde(alias = "warm-up")]
    WarmUp,
    /// Iterations that are.
    Measured,
    /// It is left alone again.
    #[serde(alias = "idle-control")]
    IdleControl,
    /// The managed heap grows: two snapshots of it, and more work between them.
    Snapshots,
    /// It is ended.
    Stop,
}

/// The state at the end of an iteration, when the server had come to rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Counted from 1 over the whole soak.
    pub number: u32,
    /// Of which server: a journal that is gone on with may have seen several. Counted from 1.
    pub server: u32,
    /// In which phase.
    pub phase: Phase,
    /// Seconds since the server began.
    pub seconds: f64,
    /// Requests answered well since the server began.
    pub requests_total: u64,
    /// The work of this iteration; none while idle.
    pub load: Option<LoadMetrics>,
    /// Live heap, exactly; none without a recorder.
    pub heap: Option<HeapMetrics>,
    /// Memory when this iteration began, as the last one had left it.
    pub memory_before: Memory,
    /// Memory at rest, before trimming.
    pub memory: Memory,
    /// Memory after the allocator was asked to trim; none where nobody could be asked.
    pub memory_trimmed: Option<Memory>,
    /// The allocator's own account, after trimming.
    pub allocator: Option<AllocatorMetrics>,
    /// Open file descriptors, of all processes of the server.
    pub descriptors: u64,
    /// A process whose memory and descriptors the system does not let be read; the sums are without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Threads, of all processes, less the recorder's.
    pub threads: u64,
    /// Processes of the server.
    pub processes: u32,
    /// Processes of the server that have ended so far, as far as they were seen.
    pub processes_ended: u32,
    /// The live heap of each of several processes, in the order in which they were met; empty without a recorder, and for one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heaps: Vec<ProcessHeap>,
    /// Recorded processes that have ended so far.
    pub recorded_ended: u64,
    /// The allocations of those.
    pub allocations_ended: u64,
    /// What managed runtimes said after a collection.
    pub runtimes: Vec<RuntimeMetrics>,
    /// A runtime that manages memory is at work, and nobody made it collect.
    pub uncollected: bool,
    /// Who holds memory that is not malloc's: `go`; `mimalloc`, `jemalloc` and their like when they are linked into an executable, and
    /// `malloc` when that brings one of its own; `unknown` when nothing tells.
    pub foreign_heap: Option<String>,
    /// The server was asked to collect, by a path or a signal.
    pub asked_to_collect: bool,
    /// How long the server took to come to rest, in milliseconds.
    pub settle_ms: u64,
    /// It had not come to rest when the time for that was over.
    pub unsettled: bool,
}

impl Sample {
    /// The server had ended: what the load did is all that is known.
    pub fn is_after_exit(&self) -> bool {
        self.processes == 0
    }
}

/// A process that does not let itself be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// What the system said.
    pub cause: String,
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadMetrics {
    /// Requests sent.
    pub requests: u64,
    /// Those answered well.
    pub succeeded: u64,
    /// Of those, answers with a status of 400 or above that the user takes for answers.
    pub accepted: u64,
    /// Failures by cause: `status 500`, `timeout`, ...
    pub failures: BTreeMap<String, u64>,
    /// How long it took.
    pub seconds: f64,
    /// Requests a second.
    pub rate: f64,
    /// Latency as measured; none when an outside generator does not tell.
    pub latency: Option<LatencyMetrics>,
    /// Latency from the moment a request was due.
    pub corrected: Option<LatencyMetrics>,
    /// The share of its threads' time that the generator was at work.
    pub generator_busy: Option<f64>,
    /// The outside generator did not say how many requests it sent: the counts are iterations.
    pub uncounted: bool,
}

/// A latency distribution, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyMetrics {
    /// The median.
    pub p50_us: u64,
    /// 90 of 100.
    pub p90_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// 999 of 1,000; none when another generator does not tell.
    pub p999_us: Option<u64>,
    /// The true maximum; none when another generator does not tell.
    pub worst_us: Option<u64>,
}

/// The live heap of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeapMetrics {
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Blocks of those.
    pub live_blocks: u64,
    /// Allocations so far.
    pub allocations: u64,
}

/// The live heap of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessHeap {
    /// Its number in the recording: a process id may be given out again, this is not.
    pub index: u32,
    /// Its process id.
    pub pid: u32,
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Blocks of those.
    pub live_blocks: u64,
    /// Allocations so far.
    pub allocations: u64,
}

/// Memory as the kernel counts it, summed over the server's processes, in bytes; without the recorder's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among those who share them.
    pub pss_bytes: u64,
    /// Resident and not shared.
    pub uss_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
    /// The part of `rss_bytes` that is anonymous.
    pub anonymous_bytes: u64,
    /// The part of `rss_bytes` that stands for files.
    pub file_bytes: u64,
    /// The part of `rss_bytes` that is shared memory.
    pub shared_bytes: u64,
    /// Anonymous memory in huge pages.
    pub huge_bytes: u64,
    /// The part of `anonymous_bytes` in the main heap, the one that `brk` moves.
    pub brk_bytes: u64,
    /// What is resident of the heaps of glibc's other arenas, told by where they begin.
    pub arena_bytes: u64,
    /// What the recorder's own mappings take; not in the metrics above.
    pub recorder_bytes: u64,
}

/// What the allocator says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocatorMetrics {
    /// `glibc`, `jemalloc`, `mimalloc`.
    pub name: String,
    /// What it holds from the kernel.
    pub held_bytes: u64,
    /// The part of that which is in use, its own rounding included.
    pub used_bytes: u64,
    /// The part that is free.
    pub free_bytes: u64,
}

/// What a managed runtime says of itself after a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuntimeMetrics {
    /// `ruby`, `python`, `node`, `jvm`.
    pub name: String,
    /// The process.
    pub pid: u32,
    /// Bytes of live managed objects, or of the heap in use.
    pub managed_bytes: u64,
    /// Live managed objects, where the runtime counts them.
    pub objects: Option<u64>,
    /// Whether `managed_bytes` lies in memory that came from malloc, and so is part of the live heap too.
    pub in_malloc: bool,
    /// Its own metrics by its own names, such as `heap_live_slots`.
    #[serde(rename = "figures")]
    pub metrics: BTreeMap<String, f64>,
}

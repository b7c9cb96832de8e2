//! What is judged.

/// One observation of an idle program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Requests answered well since the program began: the axis of every trend.
    pub requests: u64,
    /// Seconds since the program began.
    pub seconds: f64,
    /// Bytes that it had allocated and not freed; none without a recorder.
    pub live_bytes: Option<u64>,
    /// Blocks of those.
    pub live_blocks: Option<u64>,
    /// Resident and swapped memory, less the recorder's own; before the allocator was asked to trim.
    pub resident_bytes: u64,
    /// The same after the allocator was asked to trim; `None` if that is not possible.
    pub trimmed_bytes: Option<u64>,
    /// The part of `resident_bytes` that belongs to files and shared memory.
    pub mapped_bytes: Option<u64>,
    /// The memory that the allocator holds from the kernel, used or not.
    pub allocator_bytes: Option<u64>,
    /// The part of `allocator_bytes` that is free.
    pub held_free_bytes: Option<u64>,
    /// Resident memory of the allocator's own areas, after trimming if there was any; `None` if they cannot be
    /// distinguished from other memory.
    pub areas_bytes: Option<u64>,
    /// Live bytes of the managed heap after a forced collection.
    pub managed_bytes: Option<u64>,
    /// Open file descriptors.
    pub descriptors: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Requests a second in the work that ended here.
    pub requests_per_second: Option<f64>,
}

/// Everything that a verdict rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The idle program before its first request. The allocator trims after every piece of work, so what it keeps
    /// between two trims does not add up over `observations`: it is the difference between `resident_bytes` and
    /// `trimmed_bytes` there, and between `resident_bytes` and this one.
    pub before: Option<Observation>,
    /// The observations after warm-up, in the order of time.
    pub observations: Vec<Observation>,
    /// Observations while the program got no requests, in the order of time; empty if there were none.
    pub idle: Vec<Observation>,
    /// Why no verdict may be drawn, found outside the series.
    pub faults: Vec<Fault>,
    /// The program's memory is in part managed by a collector that was not forced: live bytes are then an upper bound.
    pub uncollected: bool,
    /// Whether it is known to have its heap outside malloc.
    pub foreign_heap: ForeignHeap,
    /// Live bytes of single stacks.
    pub stacks: Stacks,
    /// Heaps of workers that end and are replaced, youngest first: one worker that lives through all of it. `requests` is its age, and nothing
    /// but live and managed bytes is told. Empty where the processes of `observations` stay.
    pub workers: Vec<Observation>,
    /// Live bytes of those that stay beside them.
    pub staying: Vec<Observation>,
}

/// A heap outside of malloc: an allocator's, or one under a collector that lets it double before it runs (Go's).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignHeap {
    /// None is known.
    #[default]
    Unknown,
    /// Its collector was not forced: a rise by less than its heap may be garbage.
    Uncollected,
    /// Its collector was forced before each observation.
    Collected,
    /// An allocator of the program's own, or mappings, without a collector.
    Allocator,
}

/// Live bytes of single stacks at some of the observations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// At which, in their order.
    pub observations: Vec<usize>,
    /// The stacks, each with a metric for each of those.
    pub series: Vec<StackSeries>,
}

/// Why a run proves nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// More requests failed than the rules allow.
    Errors {
        /// Failed requests.
        failed: u64,
        /// All requests.
        requests: u64,
        /// The most frequent failure, such as `status 500` or `connection refused`.
        most: String,
    },
    /// The load generator was the limit, not the server.
    Saturated {
        /// Share of its processors that the generator used, 0 to 1.
        busy: f64,
    },
    /// The system does not let the memory of a process be read.
    Unread {
        /// The process, as in `process 7 (app)`.
        process: String,
        /// What the system said.
        cause: String,
    },
    /// Events of the program were not recorded, or were written over.
    Lost {
        /// The fault, for each process.
        what: String,
    },
    /// The server ended before it was told to.
    Died {
        /// Its exit, such as `exit status 1` or `killed by signal 11`.
        how: String,
        /// After so many requests.
        requests: u64,
    },
}

/// Live bytes of one allocation stack, observation by observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackSeries {
    /// The caller's own number for the stack.
    pub id: u32,
    /// Live bytes, one for each observation.
    pub bytes: Vec<u64>,
    /// Live blocks, one for each observation.
    pub blocks: Vec<u64>,
}

//! What comes of it.

use std::ops::Range;

/// The verdict, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Live memory grows with the requests.
    Leaking,
    /// Memory rose, and stopped.
    Plateau,
    /// Nothing grows.
    Clean,
    /// Live memory is flat; the allocator keeps freed memory, and releases it on request.
    Retention,
    /// Live memory is flat; the allocator cannot release freed memory, because live blocks are in between.
    Fragmentation,
    /// Memory grows that the allocator does not manage: mappings, thread stacks, files.
    Mappings,
    /// Memory grows with time while the program gets no requests.
    GrowsWhenIdle,
    /// The observations do not decide.
    Inconclusive,
    /// The run was no test.
    Invalid,
}

impl Verdict {
    /// Its name, for people and for programs.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Leaking => "LEAKING",
            Verdict::Plateau => "PLATEAU",
            Verdict::Clean => "CLEAN",
            Verdict::Retention => "RETENTION",
            Verdict::Fragmentation => "FRAGMENTATION",
            Verdict::Mappings => "MAPPINGS",
            Verdict::GrowsWhenIdle => "GROWS-WHEN-IDLE",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::Invalid => "INVALID",
        }
    }
}

/// The trend of one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Shape {
    /// It goes up with the requests.
    Grows,
    /// It doubles, in steps farther and farther apart: a container that grows by doubling.
    Doubles,
    /// It rose and then stopped.
    RoseThenFlat,
    /// It does not move.
    Flat,
    /// It goes down.
    Falls,
    /// It cannot be decided.
    #[default]
    Unclear,
}

impl Shape {
    /// Its name for programs, such as `rose_then_flat`.
    pub fn key(self) -> &'static str {
        match self {
            Shape::Grows => "grows",
            Shape::Doubles => "doubles",
            Shape::RoseThenFlat => "rose_then_flat",
            Shape::Flat => "flat",
            Shape::Falls => "falls",
            Shape::Unclear => "unclear",
        }
    }
}

/// One metric over the requests, in bytes (or descriptors, or threads).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    /// The trend.
    pub shape: Shape,
    /// Growth per request in the judged window: the Theil-Sen median of slopes.
    pub per_request: f64,
    /// The lower end of its confidence interval.
    pub per_request_low: f64,
    /// The upper end.
    pub per_request_high: f64,
    /// The level at the first observation.
    pub first: f64,
    /// The level at the last.
    pub last: f64,
    /// How far observations are from the trend: a robust standard deviation.
    pub noise: f64,
}

/// The metric that a verdict rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// Live heap, exactly counted.
    #[default]
    LiveHeap,
    /// The stacks of the live heap that grow by a constant, while the rest of it cannot be judged.
    Stacks,
    /// The heap that a runtime manages, after a collection.
    ManagedHeap,
    /// Resident memory, after trimming where that was done.
    Resident,
    /// Files and shared memory.
    Mapped,
}

/// Where a rise ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// By how much it rose.
    pub rise_bytes: f64,
    /// After how many requests nine tenths of that were reached.
    pub after_requests: u64,
}

/// A finding beside the verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Open descriptors grow.
    Descriptors {
        /// By so many over the window.
        more: f64,
        /// For each request.
        per_request: f64,
    },
    /// Threads grow.
    Threads {
        /// By so many over the window.
        more: f64,
        /// For each request.
        per_request: f64,
    },
    /// The server becomes slower.
    Throughput {
        /// The rate of the last fifth over that of the first.
        ratio: f64,
    },
    /// The managed heap grows; what the runtime manages is where the leak is.
    Managed {
        /// Bytes for each request.
        per_request: f64,
    },
    /// A limit that was set is exceeded.
    Limit {
        /// The limited metric, such as `growth in bytes per request`.
        of: &'static str,
        /// The measured value.
        measured: f64,
        /// The allowed value.
        allowed: f64,
    },
}

/// What would decide an inconclusive run.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// More iterations of the same kind.
    Iterations(u32),
    /// A forced collection before each observation.
    Collection,
    /// The recorder in the process: resident memory alone is not enough.
    Recorder,
    /// A longer idle phase.
    Idle,
    /// Iterations with so many times as many requests: nothing grows, but a leak of the size that has to be detected
    /// would not have been. `None` if no number would be enough, because the judged metric's own limit is not below
    /// that size.
    Sensitivity {
        /// The smallest leak that would have been seen, in bytes per request.
        seen: f64,
        /// The size of leak that has to be detected.
        wanted: f64,
        /// How many times as many requests.
        times: Option<f64>,
    },
    /// The program's own tools: its heap is not malloc's, and the growth of its resident memory is too small to be
    /// judged.
    OwnTools,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The verdict.
    pub verdict: Verdict,
    /// The metric that it rests on.
    pub basis: Basis,
    /// Live and managed heap are those of one worker by its age, since workers were replaced.
    pub by_age: bool,
    /// The program's memory is not on any observed heap: only resident memory shows it.
    pub is_elsewhere: bool,
    /// The observations that the trends are drawn through: the last half.
    pub window: Range<usize>,
    /// Live heap, when there is a recorder.
    pub heap: Option<Trend>,
    /// The stacks that grow by a constant for the whole run, together, when they decided.
    pub steady: Option<Trend>,
    /// Resident and swapped memory.
    pub resident: Trend,
    /// The same after trimming.
    pub trimmed: Option<Trend>,
    /// Files and shared memory.
    pub mapped: Option<Trend>,
    /// The memory that the allocator holds from the kernel.
    pub allocator: Option<Trend>,
    /// The managed heap.
    pub managed: Option<Trend>,
    /// Bytes an hour while idle, with its confidence interval (low, high), if it was observed.
    pub idle_per_hour: Option<(f64, f64, f64)>,
    /// The detection limit: the smallest leak that this run would have detected, in bytes per request, on the least
    /// sensitive of the metrics that hold the memory.
    pub detectable_per_request: Option<f64>,
    /// If only a heap was judged: the smallest leak beside it that this run would have detected by resident memory.
    /// Memory in a program's own pools is not on the heap.
    pub detectable_outside_per_request: Option<f64>,
    /// Where the rise of the judged metric ended, if it rose.
    pub plateau: Option<Plateau>,
    /// Findings beside the verdict.
    pub findings: Vec<Finding>,
    /// What would decide, if the verdict is inconclusive.
    pub needs: Vec<Need>,
}

impl Conclusion {
    /// The trend of the metric that the verdict rests on.
    pub fn trend(&self) -> Trend {
        let of_basis = match self.basis {
            Basis::LiveHeap => self.heap,
            Basis::Stacks => self.steady,
            Basis::ManagedHeap => self.managed,
            Basis::Mapped => self.mapped,
            Basis::Resident => self.trimmed,
        };
        of_basis.unwrap_or(self.resident)
    }
}

/// A stack whose live bytes grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowingStack {
    /// The caller's number for it.
    pub id: u32,
    /// Its course in bytes.
    pub trend: Trend,
    /// Blocks for each request.
    pub blocks_per_request: f64,
    /// Its part of the whole growth, 0 to 1.
    pub share: f64,
}

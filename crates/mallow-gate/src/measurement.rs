//! What was measured: one test's runs, with the sites that allocated in each.

use mallow_base::{Frame, add_fields, words};

/// A metric of a run that can have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Successful allocating calls, `realloc` included.
    Allocations,
    /// Their requested bytes.
    Bytes,
    /// The highest sum of bytes that were born in the run and lived.
    Peak,
    /// Blocks that were allocated in the run and are live at its end.
    Remaining,
    /// Their bytes.
    RemainingBytes,
    /// File descriptors that were opened in the run and are open at its end.
    Descriptors,
    /// Objects that the language's runtime made, as it counts them itself.
    Objects,
    /// Their bytes.
    ObjectBytes,
    /// How many more objects the runtime has after the run than before, when garbage is collected.
    RemainingObjects,
    /// How many more bytes they have.
    RemainingObjectBytes,
    /// Blocks that their own thread freed before it allocated again.
    Temporary,
    /// The most memory of a whole process that was resident, in bytes; measured where it has a limit.
    PeakRss,
    /// How long a whole process took, in nanoseconds; measured if it has a limit.
    Wall,
}

words! {
    Metric {
        Allocations = "allocations",
        Bytes = "bytes",
        Peak = "peak",
        Remaining = "remaining",
        RemainingBytes = "remaining_bytes",
        Descriptors = "descriptors",
        Objects = "objects",
        ObjectBytes = "object_bytes",
        RemainingObjects = "remaining_objects",
        RemainingObjectBytes = "remaining_object_bytes",
        Temporary = "temporary",
        PeakRss = "peak_rss",
        Wall = "wall",
    }
}

/// The metrics of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// See [`Metric::Allocations`].
    pub allocations: u64,
    /// See [`Metric::Bytes`].
    pub bytes: u64,
    /// See [`Metric::Peak`].
    pub peak_bytes: u64,
    /// See [`Metric::Remaining`].
    pub remaining_blocks: u64,
    /// See [`Metric::RemainingBytes`].
    pub remaining_bytes: u64,
    /// See [`Metric::Descriptors`].
    pub descriptors: u64,
    /// See [`Metric::Temporary`]; none of a baseline that was made before they were counted.
    pub temporary: Option<u64>,
}

impl Metrics {
    /// Returns one of them; `None` for metrics of a runtime or the kernel.
    pub const fn of(&self, metric: Metric) -> Option<u64> {
        Some(match metric {
            Metric::Allocations => self.allocations,
            Metric::Bytes => self.bytes,
            Metric::Peak => self.peak_bytes,
            Metric::Remaining => self.remaining_blocks,
            Metric::RemainingBytes => self.remaining_bytes,
            Metric::Descriptors => self.descriptors,
            Metric::Temporary => return self.temporary,
            Metric::Objects
            | Metric::ObjectBytes
            | Metric::RemainingObjects
            | Metric::RemainingObjectBytes
            | Metric::PeakRss
            | Metric::Wall => return None,
        })
    }

    /// Both together.
    #[must_use]
    pub const fn plus(mut self, more: &Metrics) -> Metrics {
        add_fields!(self, more; allocations, bytes, peak_bytes, remaining_blocks, remaining_bytes, descriptors);
        // Of one run or baseline all sites know it, or none does.
        self.temporary = match (self.temporary, more.temporary) {
            (Some(here), Some(there)) => Some(here.saturating_add(there)),
            (one, None) | (None, one) => one,
        };
        self
    }
}

/// The language runtime's counts of its objects in one run, each metric if it has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// See [`Metric::Objects`].
    pub made: Option<u64>,
    /// See [`Metric::ObjectBytes`].
    pub bytes: Option<u64>,
    /// See [`Metric::RemainingObjects`].
    pub remaining: Option<u64>,
    /// See [`Metric::RemainingObjectBytes`].
    pub remaining_bytes: Option<u64>,
}

impl Objects {
    /// Returns one of them; `None` if the runtime does not report it.
    pub const fn of(&self, metric: Metric) -> Option<u64> {
        match metric {
            Metric::Objects => self.made,
            Metric::ObjectBytes => self.bytes,
            Metric::RemainingObjects => self.remaining,
            Metric::RemainingObjectBytes => self.remaining_bytes,
            _ => None,
        }
    }
}

/// The kernel's metrics of a whole process that makes one run of each region without the recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMetrics {
    /// See [`Metric::PeakRss`]; `None` if the kernel does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// See [`Metric::Wall`].
    pub wall_ns: Option<u64>,
}

impl ProcessMetrics {
    /// Returns one of them; `None` if the kernel does not report it.
    pub const fn of(&self, metric: Metric) -> Option<u64> {
        match metric {
            Metric::PeakRss => self.peak_rss_bytes,
            Metric::Wall => self.wall_ns,
            _ => None,
        }
    }
}

/// The metrics of one stack in one run. The peak is unknown and 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Its share.
    pub metrics: Metrics,
}

/// One run of a test that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The metrics of the whole run.
    pub metrics: Metrics,
    /// The counts of the language's runtime.
    pub objects: Objects,
    /// The metrics of a process of the test without the recorder; empty if they were not requested.
    pub process: ProcessMetrics,
    /// The stacks that it is made of, each once. Frees of others' blocks have none.
    pub sites: Vec<Site>,
    /// Whether the left-over blocks were stable when they were counted. False if waiting was given up.
    pub settled: bool,
    /// How long the collector waited for that, in microseconds.
    pub waited_us: u64,
}

impl Run {
    /// A metric; none where it is not known.
    pub fn of(&self, metric: Metric) -> Option<u64> {
        self.metrics.of(metric).or(self.objects.of(metric)).or(self.process.of(metric))
    }
}

/// Returns the run that represents all: the one with the fewest allocations; of those the one that left the least,
/// the first.
pub fn judged_run(runs: &[Run]) -> Option<&Run> {
    runs.iter().min_by_key(|run| {
        let metrics = &run.metrics;
        (metrics.allocations, metrics.remaining_blocks, metrics.descriptors)
    })
}

/// A test, measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The test's name: the region's, and after a dot the argument of `measure`, if a program has several.
    pub name: String,
    /// The argument of `measure`; empty for a whole process.
    pub region: String,
    /// Operations in one run, by which metrics are divided for people.
    pub ops: Option<u64>,
    /// The runs that count, in their order.
    pub runs: Vec<Run>,
    /// Runs before them that did not.
    pub warmups: u32,
    /// The environment in which it ran.
    pub environment: Environment,
    /// Sentences that a reader of the metrics should see.
    pub notes: Vec<String>,
    /// What of the program cannot have been recorded, in sentences: then the metrics are not its own. Not part of a
    /// report.
    pub unseen: Vec<String>,
    /// Whether the program marked the region. Then the recorder was in it, and zero allocations are true. Not part of
    /// a report.
    pub is_marked: bool,
}

/// What counts depend on besides the program. A baseline is valid for one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Environment {
    /// Such as `x86_64`.
    pub architecture: String,
    /// Such as `glibc 2.36`.
    pub libc: String,
    /// The language's runtime with the version that changes counts, such as `python 3.11` or `rustc 1.88`; `native` without one.
    pub runtime: String,
    /// Which allocator the program uses: `libc`, `jemalloc`, `mimalloc`, `tcmalloc`.
    pub allocator: String,
    /// Processors that the program sees.
    pub processors: u32,
    /// The version of the counting rules.
    pub counting: u32,
}

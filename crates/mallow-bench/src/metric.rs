//! One figure of a run.

use crate::{BenchCommand, Run};
use mallow_stacks::{Metric as Measured, Unit, Weights};

/// What is measured of a run. Events that have no word here are shown and compared, but cannot be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Time from start to end.
    Wall,
    /// Time on a processor, program and kernel together: exact where its parts are counted in ticks.
    Cpu,
    /// Time on a processor, in the program.
    User,
    /// Time on a processor, in the kernel.
    System,
    /// Peak of resident memory.
    PeakRss,
    /// Page faults of both kinds.
    PageFaults,
    /// Switches of both kinds.
    ContextSwitches,
    /// Cycles.
    Cycles,
    /// Instructions.
    Instructions,
    /// Branches.
    Branches,
    /// Branches that were predicted wrongly.
    BranchMisses,
    /// References to the last cache.
    CacheReferences,
    /// Those that were not there.
    CacheMisses,
    /// Calls that allocated.
    Allocations,
    /// Bytes they asked for.
    Bytes,
    /// Bytes live when most were.
    Peak,
    /// Bytes live at the end.
    Leaked,
}

impl Metric {
    /// The event that it is, by perf's name.
    pub fn event(self) -> Option<&'static str> {
        match self {
            Metric::Cycles => Some("cycles"),
            Metric::Instructions => Some("instructions"),
            Metric::Branches => Some("branches"),
            Metric::BranchMisses => Some("branch-misses"),
            Metric::CacheReferences => Some("cache-references"),
            Metric::CacheMisses => Some("cache-misses"),
            _ => None,
        }
    }

    /// Returns whether it comes from the recorder's runs.
    pub fn is_recorded(self) -> bool {
        matches!(self, Metric::Allocations | Metric::Bytes | Metric::Peak | Metric::Leaked)
    }

    /// The figure of a timed run; none where it was not measured.
    pub fn of_run(self, run: &Run, events: &[String]) -> Option<f64> {
        let value = match self {
            Metric::Wall => run.wall_ns,
            Metric::Cpu => run.user_ns.saturating_add(run.system_ns),
            Metric::User => run.user_ns,
            Metric::System => run.system_ns,
            // The kernel counts pages in batches of some dozen for each processor: it tells 0 of a command of a few.
            Metric::PeakRss => Some(run.peak_rss_bytes).filter(|bytes| *bytes > 0)?,
            Metric::PageFaults => run.minor_faults.saturating_add(run.major_faults),
            Metric::ContextSwitches => run.voluntary_switches.saturating_add(run.involuntary_switches),
            event => {
                let at = events.iter().position(|name| Some(name.as_str()) == event.event())?;
                return run.events.get(at).copied().flatten().map(|count| count.value);
            }
        };
        Some(value as f64)
    }

    /// The figure of the recorder's runs.
    pub fn recorded(self, command: &BenchCommand) -> Vec<u64> {
        let of = |one: &crate::Allocations| match self {
            Metric::Allocations => Some(one.allocations),
            Metric::Bytes => Some(one.bytes),
            Metric::Peak => Some(one.peak_bytes),
            Metric::Leaked => Some(one.leaked_bytes),
            _ => None,
        };
        command.allocations.iter().filter_map(of).collect()
    }
}

/// Sums of metrics by site are not what a benchmark has; limits are read and judged as those of profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoWeights;

impl Weights for NoWeights {
    type Metric = Metric;

    fn add(&mut self, _: &NoWeights) {}

    fn tie(&self) -> [u64; 2] {
        [0; 2]
    }
}

impl Measured for Metric {
    type Weights = NoWeights;

    const ALL: &'static [Metric] = &[
        Metric::Wall,
        Metric::Cpu,
        Metric::User,
        Metric::System,
        Metric::PeakRss,
        Metric::PageFaults,
        Metric::ContextSwitches,
        Metric::Cycles,
        Metric::Instructions,
        Metric::Branches,
        Metric::BranchMisses,
        Metric::CacheReferences,
        Metric::CacheMisses,
        Metric::Allocations,
        Metric::Bytes,
        Metric::Peak,
        Metric::Leaked,
    ];

    const LIMITS: &'static str = "wall>+3% or allocations>+0";

    fn word(self) -> &'static str {
        match self {
            Metric::Wall => "wall",
            Metric::Cpu => "cpu",
            Metric::User => "user",
            Metric::System => "system",
            Metric::PeakRss => "peak-rss",
            Metric::PageFaults => "page-faults",
            Metric::ContextSwitches => "context-switches",
            Metric::Allocations => "allocations",
            Metric::Bytes => "bytes",
            Metric::Peak => "peak",
            Metric::Leaked => "leaked",
            event => event.event().unwrap_or_default(),
        }
    }

    fn subject(self) -> &'static str {
        match self {
            Metric::Wall => "time from start to end",
            Metric::Cpu => "time on a processor",
            Metric::User => "time in the program",
            Metric::System => "time in the kernel",
            Metric::PeakRss => "peak of resident memory",
            Metric::PageFaults => "page faults",
            Metric::ContextSwitches => "context switches",
            Metric::Allocations => "allocations",
            Metric::Bytes => "bytes allocated",
            Metric::Peak => "peak of the heap",
            Metric::Leaked => "bytes live at the end",
            event => event.event().unwrap_or_default(),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Metric::Wall | Metric::Cpu | Metric::User | Metric::System => Unit::Nanoseconds,
            Metric::PeakRss | Metric::Bytes | Metric::Peak | Metric::Leaked => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    fn of_site(self, _: &NoWeights) -> u64 {
        0
    }
}

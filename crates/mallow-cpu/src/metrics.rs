//! What is counted of a stack: samples, time, events, and time off the processors with what it was spent on.

use mallow_base::{add_fields, words};
use mallow_stacks::{Metric, Unit, Weights};

/// The metrics of a stack, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// Samples.
    pub samples: u64,
    /// Time on a processor that the samples stand for, in nanoseconds.
    pub time_ns: u64,
    /// Events that the samples stand for, such as cycles.
    pub events: u64,
    /// Time off the processors, in nanoseconds.
    pub off_cpu_ns: u64,
    /// The part of it in which something was waited for; in the rest a thread could have run, but others did.
    pub blocked_ns: u64,
    /// How often a processor was given up.
    pub switches: u64,
}

/// One of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuMetric {
    /// Time on a processor.
    Time,
    /// Samples.
    Samples,
    /// Events of hardware, such as cycles.
    Events,
    /// Time off the processors.
    OffCpu,
    /// The part of it in which something was waited for.
    Blocked,
    /// How often a processor was given up.
    Switches,
}

words! { CpuMetric {
    Time = "time", Samples = "samples", Events = "events", OffCpu = "off-cpu", Blocked = "blocked", Switches = "switches",
} }

/// Which metrics a source could tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAvailability {
    /// Samples were counted.
    pub samples: bool,
    /// What they stand for is known as time.
    pub time: bool,
    /// What they stand for is known as events.
    pub events: bool,
    /// Time off the processors was measured.
    pub off_cpu: bool,
    /// It is known why it was spent there.
    pub blocked: bool,
    /// It was counted how often a processor was given up.
    pub switches: bool,
}

impl CpuAvailability {
    /// Returns whether a metric is among them.
    pub fn knows(&self, metric: CpuMetric) -> bool {
        match metric {
            CpuMetric::Time => self.time,
            CpuMetric::Samples => self.samples,
            CpuMetric::Events => self.events,
            CpuMetric::OffCpu => self.off_cpu,
            CpuMetric::Blocked => self.blocked,
            CpuMetric::Switches => self.switches,
        }
    }
}

impl Metric for CpuMetric {
    type Weights = CpuTotals;

    const ALL: &'static [CpuMetric] = &CpuMetric::ALL;

    const LIMITS: &'static str = "time>+1% or samples>100";

    fn word(self) -> &'static str {
        CpuMetric::word(self)
    }

    fn subject(self) -> &'static str {
        match self {
            CpuMetric::Time => "time on a processor",
            CpuMetric::Samples => "samples",
            CpuMetric::Events => "events",
            CpuMetric::OffCpu => "time off the processors",
            CpuMetric::Blocked => "time blocked",
            CpuMetric::Switches => "context switches",
        }
    }

    fn unit(self) -> Unit {
        match self {
            CpuMetric::Time | CpuMetric::OffCpu | CpuMetric::Blocked => Unit::Nanoseconds,
            CpuMetric::Samples | CpuMetric::Events | CpuMetric::Switches => Unit::Count,
        }
    }

    fn of_site(self, totals: &CpuTotals) -> u64 {
        match self {
            CpuMetric::Time => totals.time_ns,
            CpuMetric::Samples => totals.samples,
            CpuMetric::Events => totals.events,
            CpuMetric::OffCpu => totals.off_cpu_ns,
            CpuMetric::Blocked => totals.blocked_ns,
            CpuMetric::Switches => totals.switches,
        }
    }
}

impl Weights for CpuTotals {
    type Metric = CpuMetric;

    fn add(&mut self, other: &CpuTotals) {
        add_fields!(self, other; samples, time_ns, events, off_cpu_ns, blocked_ns, switches);
    }

    fn tie(&self) -> [u64; 2] {
        [self.time_ns.max(self.events), self.samples]
    }
}

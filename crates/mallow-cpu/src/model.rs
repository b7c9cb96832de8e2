//! What a profile of a processor's time holds.
//!
//! Everything is plain data with public fields; ids are indices into the table that their documentation names. Times are in
//! nanoseconds since the recording's start.

use crate::{CpuAvailability, CpuMetric, CpuTotals};
use mallow_stacks::{Metric, ProcessIndex, Site, StackId, StackProfile, Stacks};
use rustc_hash::FxHashMap;

/// Where a processor's time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuProfile {
    /// What was recorded, when, and by what.
    pub recording: CpuRecording,
    /// By [`ProcessIndex`]. An `exec` makes a new entry with the same pid. Only those that have samples.
    pub processes: Vec<CpuProcess>,
    /// By [`ThreadIndex`].
    pub threads: Vec<CpuThread>,
    /// The stacks. An address stands one behind the byte that it means, as a return address does behind its call; that is so for the
    /// innermost one, too.
    pub stacks: Stacks,
    /// The sums: one entry for each process and stack.
    pub sites: Vec<Site<CpuTotals>>,
    /// Every sample in the order of time; empty where the source kept none.
    pub samples: Vec<CpuSample>,
    /// Which metrics the source could tell.
    pub known: CpuAvailability,
    /// How far it can be trusted; none where the source does not say.
    pub quality: Option<Quality>,
}

/// What was recorded, when, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuRecording {
    /// The command and its arguments; empty if nobody knows.
    pub command: Vec<String>,
    /// Wall-clock start, in nanoseconds since 1970; 0 if nobody knows.
    pub started_unix_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// What made the samples, by perf's name, such as `cycles` or `cpu-clock`; empty if nobody knows.
    pub event: String,
    /// How many samples a second of a processor were asked for.
    pub frequency_hz: Option<u64>,
}

/// One process image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuProcess {
    /// The process id; 0 if nobody knows.
    pub pid: u32,
    /// Its name, as the kernel knows it.
    pub name: String,
    /// The path of its program; empty if nobody knows.
    pub program: String,
}

/// Index into [`CpuProfile::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadIndex(pub u32);

/// A thread of a process image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuThread {
    /// Its process.
    pub process: ProcessIndex,
    /// The thread id; 0 if nobody knows.
    pub tid: u32,
    /// Its name; empty if nobody knows.
    pub name: String,
}

/// One sample, or one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSample {
    /// When it was taken; of a wait, when it began. A wait's time off the processors follows it.
    pub time_ns: u64,
    /// Of which thread.
    pub thread: ThreadIndex,
    /// Where it was; none where no stack was taken.
    pub stack: Option<StackId>,
    /// What it stands for.
    pub totals: CpuTotals,
}

/// How far a profile can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Samples that were made, and where time off the processors was measured the waits with them: each has its stack.
    pub samples: u64,
    /// Samples that the kernel could not write.
    pub lost: u64,
    /// Samples whose stack ends where a program or a thread starts.
    pub whole: u64,
    /// Samples with no user stack, because no program was there: in the kernel, around an `exec` or an exit.
    pub kernel_only: u64,
    /// Of those that are not whole: stacks deeper than what was copied of them.
    pub too_deep: u64,
    /// Whether what the kernel did was seen.
    pub kernel_seen: bool,
    /// Time on processors that the command took and no sample stands for, where that is known: where timers made the samples.
    pub not_seen_ns: Option<u64>,
}

impl Quality {
    /// Samples whose stack ends too early.
    pub fn truncated(&self) -> u64 {
        self.samples.saturating_sub(self.whole + self.kernel_only)
    }
}

impl CpuProfile {
    /// The metrics of all stacks together.
    pub fn totals(&self) -> CpuTotals {
        let mut totals = CpuTotals::default();
        self.sites.iter().for_each(|site| mallow_stacks::Weights::add(&mut totals, &site.totals));
        totals
    }

    /// The first metric that is known, of those that say where time went: what samples stand for before how many there are.
    pub fn main_metric(&self) -> CpuMetric {
        let totals = self.totals();
        let first = [CpuMetric::Time, CpuMetric::Events].into_iter();
        let known = first
            .filter(|metric| metric.of_site(&totals) > 0)
            .chain([CpuMetric::Samples, CpuMetric::OffCpu])
            .find(|metric| self.known.knows(*metric));
        known.unwrap_or(CpuMetric::Samples)
    }

    /// Sums samples up by process and stack, in the order of first sight.
    pub fn sums<'a>(&self, samples: impl Iterator<Item = &'a CpuSample>) -> Vec<Site<CpuTotals>> {
        let mut sites: Vec<Site<CpuTotals>> = Vec::new();
        let mut places: FxHashMap<(ProcessIndex, Option<StackId>), usize> = FxHashMap::default();
        for sample in samples {
            let process = self.threads.get(sample.thread.0 as usize).map_or(ProcessIndex(0), |t| t.process);
            let at = *places.entry((process, sample.stack)).or_insert_with(|| {
                sites.push(Site { process, stack: sample.stack, totals: CpuTotals::default() });
                sites.len() - 1
            });
            mallow_stacks::Weights::add(&mut sites[at].totals, &sample.totals);
        }
        sites
    }
}

impl StackProfile for CpuProfile {
    type Weights = CpuTotals;

    fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    fn sites(&self) -> &[Site<CpuTotals>] {
        &self.sites
    }

    fn processes(&self) -> usize {
        self.processes.len()
    }

    fn command(&self) -> &[String] {
        &self.recording.command
    }

    fn program(&self, process: ProcessIndex) -> Option<&str> {
        let process = self.processes.get(process.0 as usize)?;
        let program = if process.program.is_empty() { &process.name } else { &process.program };
        (!program.is_empty()).then_some(program.as_str())
    }

    fn knows(&self, metric: CpuMetric) -> bool {
        self.known.knows(metric)
    }

    fn beyond(&self, _: &CpuTotals) -> CpuTotals {
        CpuTotals::default()
    }
}

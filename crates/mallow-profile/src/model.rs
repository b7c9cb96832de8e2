//! What a profile holds.
//!
//! Everything is plain data with public fields; ids are indices into the table that their documentation names
//! and are meaningless in any other profile.

use crate::{
    Aggregator, Availability, EventsLost, Measure, RequestTotals, Requests, SiteAccesses, SiteTotals, Totals,
};
use mallow_base::{Frame, Percent, grouped, printable};
use mallow_stacks::{ProcessIndex, StackId, StackProfile, Stacks};

/// A whole recording: one command, and all processes that it became.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What was recorded, where and when.
    pub recording: Recording,
    /// By [`ProcessIndex`], in the order in which they introduced themselves. An `exec` makes a new entry with the same pid.
    pub processes: Vec<Process>,
    /// The stacks, with their code.
    pub stacks: Stacks,
    /// One entry for each process and stack that allocated.
    pub sites: Vec<Site>,
    /// How often each byte of their blocks was accessed, of sites that have this.
    pub accesses: SiteAccesses,
    /// How their blocks were requested, of processes whose source tells this.
    pub requests: Requests,
    /// Which metrics the source has; the others are 0 and mean nothing.
    pub known: Availability,
}

/// A profile as a file holds it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The profile.
    pub profile: Profile,
    /// Sentences about what is missing or doubtful, for people.
    pub warnings: Vec<String>,
    /// Whether the file was closed in order and is undamaged.
    pub complete: bool,
}

/// What was recorded, where and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Wall-clock start, in microseconds since 1970.
    pub started_unix_us: u64,
    /// How long it took, in microseconds (or [`Recording::time_unit`]). Up to the last event when the end is missing.
    pub duration_us: u64,
    /// The unit of every field that ends in `_us`.
    pub time_unit: TimeUnit,
    /// The version of the counting rules.
    pub counting_version: u32,
    /// The mallow that recorded, such as `0.1.0`.
    pub recorder_version: String,
    /// What might explain a difference between two recordings: kernel, machine, processors. Pairs of name and value.
    pub environment: Vec<(String, String)>,
    /// Modules whose names were not looked up.
    pub nameless: Vec<Nameless>,
    /// Modules in which stacks end too early, those with most allocations first.
    pub early_ends: Vec<EarlyEnds>,
    /// Where code was mapped, if the file says it: an export has the same addresses then.
    pub mapped: Vec<MappedCode>,
    /// Lines of `leak:PATTERN` that the file has of the program.
    pub suppressions: Vec<String>,
}

/// Where the code of a file was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedCode {
    /// The file's path.
    pub module: String,
    /// The first address of the mapping.
    pub start_avma: u64,
    /// The address behind it.
    pub end_avma: u64,
    /// Where in the file it begins.
    pub file_offset: u64,
    /// Subtracted from an address, results in the one in the file.
    pub bias: u64,
}

/// A module whose frames are addresses because looking its names up failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nameless {
    /// Its path.
    pub module: String,
    /// What the process that reads its debug information did, as the end of a sentence.
    pub reason: String,
}

impl Nameless {
    /// Says it, with what can be done.
    pub fn sentence(&self) -> String {
        let [module, reason] = [&self.module, &self.reason].map(|text| printable(text));
        format!(
            "names of {module} were not looked up, so its frames are addresses: the process that reads its debug information {reason}; if you trust the \
             file, `mallow symbolize` tries again with ten times the memory and time"
        )
    }
}

/// A module with code that has no unwind table for it, in which stacks end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlyEnds {
    /// Its path.
    pub module: String,
    /// Of how many allocations.
    pub allocations: u64,
    /// They may be more.
    pub or_more: bool,
}

impl EarlyEnds {
    /// Says it of a recording with so many allocations, with what can be done.
    pub fn sentence(&self, of: u64) -> String {
        let at_least = if self.or_more { "at least " } else { "" };
        format!(
            "the stacks of {at_least}{} allocations ({}) end in code of {} that has no unwind tables, so their callers are not shown; build it \
             with -fasynchronous-unwind-tables and -Wl,--eh-frame-hdr",
            grouped(self.allocations),
            Percent { part: self.allocations, whole: of },
            printable(&self.module)
        )
    }
}

/// The unit of times. Our own recordings are in microseconds; some tools count instructions or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Microseconds.
    #[default]
    Microseconds,
    /// Instructions that the program executed.
    Instructions,
    /// Bytes that it allocated and freed.
    Bytes,
}

/// One process image: from its start, or from `exec`, to its end, or to the next `exec`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent_pid: u32,
    /// The command line, blanks between arguments.
    pub command: String,
    /// When it introduced itself, in microseconds since the recording's start.
    pub started_us: u64,
    /// When it ended.
    pub ended_us: u64,
    /// How it ended; `None` if that was not seen.
    pub exit: Option<Exit>,
    /// Its metrics.
    pub totals: Totals,
    /// When live bytes were highest, in microseconds since the recording's start.
    pub peak_us: u64,
    /// Events that were not recorded: without them metrics are too low.
    pub events_lost: EventsLost,
    /// Frees of blocks that were not allocated in this process image: inherited through `fork`, or from
    /// before the recorder was there. They are among `totals.frees`.
    pub frees_unmatched: u64,
    /// Threads in the order of their first call.
    pub threads: Vec<Thread>,
    /// Resident memory over time.
    pub samples: Vec<Sample>,
    /// Live memory over time, if the source has no events from which it could be computed.
    pub live_samples: Vec<LiveSample>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
    /// It became another program.
    Exec,
    /// Its recording ended before it did: it recorded itself, or became a program that is not recorded.
    GoesOn,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's thread id.
    pub tid: u32,
    /// Its name, when it was seen alive; else empty.
    pub name: String,
    /// Its successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

/// Resident memory at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Microseconds since the recording's start.
    pub time_us: u64,
    /// Resident bytes of the process.
    pub rss_bytes: u64,
}

/// Live memory at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSample {
    /// Microseconds since the recording's start.
    pub time_us: u64,
    /// Requested bytes live.
    pub live_bytes: u64,
    /// The allocator's overhead: headers and rounding. 0 if the source does not have it.
    pub overhead_bytes: u64,
    /// Bytes of the stacks. 0 if the source does not have it.
    pub stack_bytes: u64,
}

/// What one stack allocated in one process. The stack's leaf is the caller of the allocating function.
pub type Site = mallow_stacks::Site<SiteTotals>;

impl Profile {
    /// A sentence for each module in which stacks end too early.
    pub fn early_ends(&self) -> Vec<String> {
        let of = self.totals().allocations;
        self.recording.early_ends.iter().map(|ends| ends.sentence(of)).collect()
    }

    /// Returns the metrics of all processes together; peaks as in [`Totals::add`].
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for process in &self.processes {
            totals.add(&process.totals);
        }
        totals
    }

    /// Takes the requests of a process, if they are told apart; its stacks begin at `base`.
    pub fn take_requests(
        &mut self,
        process: ProcessIndex,
        base: u32,
        requests: Option<impl Iterator<Item = (StackId, RequestTotals)>>,
    ) {
        let Some(requests) = requests else { return };
        let site =
            |stack: StackId| (stack != Aggregator::NO_STACK).then(|| StackId(base.wrapping_add(stack.0)));
        self.requests.add(process, requests.map(|(stack, totals)| (site(stack), totals)));
    }

    /// Returns whether the requests of all sites are known.
    pub fn knows_requests(&self) -> bool {
        !self.requests.are_unknown() && self.sites.iter().all(|site| self.requests.knows(site.process))
    }

    /// Returns the requests of all sites that are left; none if those of any of them are not known.
    pub fn request_totals(&self) -> Option<RequestTotals> {
        self.knows_requests().then(|| {
            let mut sum = RequestTotals::default();
            let of_sites = self.sites.iter().filter_map(|site| self.requests.of(site.process, site.stack));
            of_sites.for_each(|totals| sum.add(&totals));
            sum
        })
    }

    /// Frees of all processes whose blocks were not allocated there: a parent's, or from before the recording.
    pub fn frees_unmatched(&self) -> u64 {
        self.processes.iter().map(|process| process.frees_unmatched).sum()
    }

    /// Events of all processes that were not recorded.
    pub fn events_lost(&self) -> EventsLost {
        self.processes.iter().fold(EventsLost::default(), |lost, process| lost.and(process.events_lost))
    }

    /// Keeps only these processes and their sites, in this order. All stacks are kept.
    pub fn keep_processes(&mut self, kept: &[ProcessIndex]) {
        let mut numbers = vec![None; self.processes.len()];
        for (number, index) in (0..).zip(kept) {
            numbers[index.0 as usize] = Some(ProcessIndex(number));
        }
        self.accesses.renumber(&numbers);
        self.requests.renumber(&numbers);
        self.sites.retain_mut(|site| match numbers[site.process.0 as usize] {
            Some(number) => {
                site.process = number;
                true
            }
            None => false,
        });
        self.processes = kept.iter().map(|index| self.processes[index.0 as usize].clone()).collect();
    }

    /// The frames of a stack, leaf first, inlined frames in their place.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = &Frame> {
        self.stacks.frames(stack)
    }
}

impl StackProfile for Profile {
    type Weights = SiteTotals;

    fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    fn sites(&self) -> &[Site] {
        &self.sites
    }

    fn processes(&self) -> usize {
        self.processes.len()
    }

    fn command(&self) -> &[String] {
        &self.recording.command
    }

    fn program(&self, process: ProcessIndex) -> Option<&str> {
        let own =
            self.processes[process.0 as usize].command.split(' ').next().filter(|word| !word.is_empty());
        own.or_else(|| self.recording.command.first().map(String::as_str))
    }

    fn knows(&self, measure: Measure) -> bool {
        measure.is_known(&self.known)
    }

    fn beyond(&self, sites: &SiteTotals) -> SiteTotals {
        let whole = self.totals();
        SiteTotals {
            allocations: whole.allocations.saturating_sub(sites.allocations),
            bytes: whole.bytes.saturating_sub(sites.bytes),
            temporary: whole.temporary.saturating_sub(sites.temporary),
            peak_bytes: whole.peak_bytes.saturating_sub(sites.peak_bytes),
            leaked_bytes: whole.leaked_bytes.saturating_sub(sites.leaked_bytes),
            ..SiteTotals::default()
        }
    }
}

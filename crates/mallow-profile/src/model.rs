//! What a profile holds.
//!
//! Everything is plain data with public fields; ids are indices into the table that their documentation names
//! and are meaningless in any other profile.

use crate::{Known, SiteTotals, Totals};
use mallow_base::Frame;

/// Index into [`Profile::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessIndex(pub u32);

/// Index into [`Profile::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// Index into [`Profile::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// Index into [`Profile::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// A whole recording: one command, and all processes that it became.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What was recorded, where and when.
    pub recording: Recording,
    /// In the order in which they introduced themselves. An `exec` makes a new entry with the same pid.
    pub processes: Vec<Process>,
    /// Executables and libraries.
    pub modules: Vec<Module>,
    /// Addresses with what symbols said about them.
    pub locations: Vec<Location>,
    /// Stack nodes; a parent comes before its children.
    pub stacks: Vec<StackNode>,
    /// One entry for each process and stack that allocated.
    pub sites: Vec<Site>,
    /// Which figures the source could tell; the others stand at 0 and mean nothing.
    pub known: Known,
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
    /// What every field that ends in `_us` is counted in.
    pub time_unit: TimeUnit,
    /// The version of the counting rules.
    pub counting_version: u32,
    /// The mallow that recorded, such as `0.1.0`.
    pub recorder_version: String,
    /// What might explain a difference between two recordings: kernel, machine, processors. Pairs of name and
    /// value.
    pub environment: Vec<(String, String)>,
}

/// What times are counted in. Our own recordings are in microseconds; some tools count by what the program does.
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
    /// How it ended; none when nobody saw it.
    pub exit: Option<Exit>,
    /// Its figures.
    pub totals: Totals,
    /// When live bytes were highest, in microseconds since the recording's start.
    pub peak_us: u64,
    /// Events the recorder had to drop. Figures are too low when this is not zero.
    pub events_lost: u64,
    /// Frees of blocks that were not allocated in this process image: inherited through `fork`, or from
    /// before the recorder was there. They are among `totals.frees`.
    pub frees_unmatched: u64,
    /// Threads in the order of their first call.
    pub threads: Vec<Thread>,
    /// Resident memory over time.
    pub samples: Vec<Sample>,
    /// Live memory over time, where the source kept no events that would tell it.
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
    /// What the allocator used beside them: headers and rounding. 0 where the source does not tell.
    pub overhead_bytes: u64,
    /// Bytes of the stacks. 0 where the source does not tell.
    pub stack_bytes: u64,
}

/// An executable or library as it was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its path as the loader knew it.
    pub path: String,
    /// Its build id; empty when it has none.
    pub build_id: Vec<u8>,
}

/// An address that stood on a stack, and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address, for look-ups elsewhere.
    pub address: Address,
    /// Innermost (inlined) frame first; never empty.
    pub frames: Vec<Frame>,
}

/// Where a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// In a module: the address as stated in its file. A return address points behind the call.
    InModule {
        /// The module.
        module: ModuleId,
        /// The address as stated in the module's file.
        svma: u64,
    },
    /// In code outside any module, such as JIT code: the mapped address.
    Anonymous {
        /// The address as mapped.
        avma: u64,
    },
    /// Another tool's file gave frames and no address.
    Unknown,
}

/// A stack is a node and its parents up to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller; none for an outermost frame.
    pub parent: Option<StackId>,
    /// Where this frame was.
    pub location: LocationId,
}

/// What one stack allocated in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The process.
    pub process: ProcessIndex,
    /// The stack, its leaf being the caller of the allocating function; none when no stack was taken.
    pub stack: Option<StackId>,
    /// The figures.
    pub totals: SiteTotals,
}

impl Profile {
    /// The figures of all processes together; peaks as [`Totals::add`] says.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for process in &self.processes {
            totals.add(&process.totals);
        }
        totals
    }

    /// The frames of a stack, leaf first, inlined frames in their place.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = &Frame> {
        std::iter::successors(stack, |id| self.stacks[id.0 as usize].parent)
            .flat_map(|id| &self.locations[self.stacks[id.0 as usize].location.0 as usize].frames)
    }
}

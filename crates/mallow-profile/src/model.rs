//! What a profile holds.
//!
//! Everything is plain data with public fields; ids are indices into the table that their documentation names
//! and are meaningless in any other profile.

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
}

/// What was recorded, where and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Wall-clock start, in microseconds since 1970.
    pub started_unix_us: u64,
    /// How long it took, in microseconds. Up to the last event when the end is missing.
    pub duration_us: u64,
    /// The version of the counting rules.
    pub counting_version: u32,
    /// The mallow that recorded, such as `0.1.0`.
    pub recorder_version: String,
    /// What might explain a difference between two recordings: kernel, machine, processors. Pairs of name and
    /// value.
    pub environment: Vec<(String, String)>,
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

/// The figures of a process or of a whole recording. The counting rules, version 1, define each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks freed, those that `realloc` replaced included.
    pub frees: u64,
    /// Successful `realloc` calls on a live block.
    pub reallocations: u64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: u64,
    /// Failed calls.
    pub failed: u64,
    /// The highest sum of live requested bytes.
    pub peak_bytes: u64,
    /// The live blocks at that moment.
    pub peak_blocks: u64,
    /// Bytes live at the end.
    pub leaked_bytes: u64,
    /// Blocks live at the end.
    pub leaked_blocks: u64,
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

/// The figures of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteTotals {
    /// Successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Those of the allocations that `realloc` made.
    pub reallocations: u64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: u64,
    /// Failed calls.
    pub failed: u64,
    /// The site's live bytes at the process's peak.
    pub peak_bytes: u64,
    /// The site's live blocks at the process's peak.
    pub peak_blocks: u64,
    /// The site's bytes live at the end.
    pub leaked_bytes: u64,
    /// The site's blocks live at the end.
    pub leaked_blocks: u64,
    /// The site's own maximum of live bytes, whenever that was.
    pub live_bytes_max: u64,
    /// The sum of lifetimes in microseconds over all blocks; blocks live at the end count up to it.
    pub lifetime_us_sum: u64,
    /// The first and the last allocation, in microseconds since the recording's start.
    pub first_us: u64,
    /// See `first_us`.
    pub last_us: u64,
}

impl Totals {
    /// Adds another process's figures. Peaks of different processes are summed although they may lie at
    /// different moments, so the sum is an upper bound. A sum that does not fit stays at the largest number: only
    /// a damaged file has such figures.
    pub fn add(&mut self, other: &Totals) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.frees = self.frees.saturating_add(other.frees);
        self.reallocations = self.reallocations.saturating_add(other.reallocations);
        self.temporary = self.temporary.saturating_add(other.temporary);
        self.failed = self.failed.saturating_add(other.failed);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.peak_blocks = self.peak_blocks.saturating_add(other.peak_blocks);
        self.leaked_bytes = self.leaked_bytes.saturating_add(other.leaked_bytes);
        self.leaked_blocks = self.leaked_blocks.saturating_add(other.leaked_blocks);
    }
}

impl SiteTotals {
    /// Adds another site's figures. `live_bytes_max` becomes an upper bound.
    pub fn add(&mut self, other: &SiteTotals) {
        self.first_us = match (self.allocations, other.allocations) {
            (0, _) => other.first_us,
            (_, 0) => self.first_us,
            _ => self.first_us.min(other.first_us),
        };
        self.last_us = self.last_us.max(other.last_us);
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.reallocations = self.reallocations.saturating_add(other.reallocations);
        self.temporary = self.temporary.saturating_add(other.temporary);
        self.failed = self.failed.saturating_add(other.failed);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.peak_blocks = self.peak_blocks.saturating_add(other.peak_blocks);
        self.leaked_bytes = self.leaked_bytes.saturating_add(other.leaked_bytes);
        self.leaked_blocks = self.leaked_blocks.saturating_add(other.leaked_blocks);
        self.live_bytes_max = self.live_bytes_max.saturating_add(other.live_bytes_max);
        self.lifetime_us_sum = self.lifetime_us_sum.saturating_add(other.lifetime_us_sum);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_damaged_file_add_up_without_overflow() {
        let mut totals = Totals { bytes: u64::MAX - 1, ..Totals::default() };
        totals.add(&Totals { bytes: 5, allocations: 2, ..Totals::default() });
        assert_eq!((totals.bytes, totals.allocations), (u64::MAX, 2));
        let mut site = SiteTotals { lifetime_us_sum: u64::MAX, ..SiteTotals::default() };
        site.add(&SiteTotals { lifetime_us_sum: 1, ..SiteTotals::default() });
        assert_eq!(site.lifetime_us_sum, u64::MAX);
    }
}

//! The memory that a profiled process shares with the collector: one memfd per process.
//!
//! ```text
//! offset 0             Header                                    one page
//!        NODES_OFFSET    stack nodes, 9 segments of 16-byte entries  96 MiB, touched as used
//!        MODULES_OFFSET  module log, append only                     1 MiB
//!        STARTS_OFFSET   StartNote[START_NOTES]                      64 KiB
//!        GUESSES_OFFSET  keys of guessed callers, GUESSES        128 KiB, touched as used
//!        CODES_OFFSET    log of scripts' code, append only           32 MiB, touched as used
//!        CHANNELS_OFFSET Channel[channel_count]                      320 bytes each
//!        RINGS_OFFSET    ring[channel_count]                         RING_BYTES each
//! ```
//!
//! The file is sparse: what is not touched costs address space only. A thread owns a *channel*: the channel's
//! header and the ring of the same index. The owner writes `head`, the collector writes `tail`, both count
//! words since the channel was taken and never wrap.
//!
//! Whoever maps this memory shares it with a program that may do anything, so the collector treats every
//! field as data from outside: indices are checked, and what makes no sense is counted and skipped.

pub use crate::channel::*;
pub use crate::guesses::*;
pub use crate::helper_thread::*;
pub use crate::module_log::*;
pub use crate::node::*;
pub use crate::order::*;
use crate::script::{CODE_LOG_BYTES, Scripts};
use crate::starts::{START_NOTES, StartNote};
pub use crate::wanted::*;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// "mallowsm", little endian.
pub const SHARED_MAGIC: u64 = u64::from_le_bytes(*b"mallowsm");

/// [`Header::malloc_in_front`]: nobody's.
pub const MALLOC_OURS: u32 = 0;
/// That of the executable.
pub const MALLOC_OF_EXECUTABLE: u32 = 1;
/// That of a library that is preloaded in front of ours.
pub const MALLOC_OF_LIBRARY: u32 = 2;
/// That of valgrind, whose tools lead calls of every `malloc` to their own.
pub const MALLOC_OF_VALGRIND: u32 = 3;

/// Bumped with every change of this module, of its parts, or of [`crate::event`]. Recorder and collector travel in one binary,
/// so a difference means that a child was started by another mallow.
pub const SHARED_VERSION: u32 = 27;

/// The page size that the layout is aligned to.
pub const PAGE_BYTES: usize = 4096;

/// Offset of the node table.
pub const NODES_OFFSET: usize = PAGE_BYTES;
/// Offset of the module log.
pub const MODULES_OFFSET: usize = NODES_OFFSET + NODE_COUNT * size_of::<Node>();
/// Offset of the notes of programs that are started.
pub const STARTS_OFFSET: usize = MODULES_OFFSET + MODULE_LOG_BYTES;
/// Offset of the table of frames whose callers were guessed.
pub const GUESSES_OFFSET: usize = STARTS_OFFSET + START_NOTES * size_of::<StartNote>();
/// Offset of the log of scripts' code.
pub const CODES_OFFSET: usize = GUESSES_OFFSET + GUESSES * size_of::<u64>();
/// Offset of the channel headers.
pub const CHANNELS_OFFSET: usize = CODES_OFFSET + CODE_LOG_BYTES;
/// Offset of the rings.
pub const RINGS_OFFSET: usize = CHANNELS_OFFSET + CHANNEL_COUNT_MAX * size_of::<Channel>();

const _: () = assert!(CHANNELS_OFFSET.is_multiple_of(PAGE_BYTES) && RINGS_OFFSET.is_multiple_of(PAGE_BYTES));

/// Of a limited address space the file may take one part of so many.
pub const ADDRESS_PARTS: usize = 3;

/// Bytes of the file for a number of channels.
pub const fn file_bytes(channel_count: usize) -> usize {
    RINGS_OFFSET + channel_count * RING_BYTES
}

/// How a process said it would end. In [`Header::exit_kind`].
pub const EXIT_UNKNOWN: u32 = 0;
/// It ran its exit handlers, or called `_exit`, with the status in [`Header::exit_status`].
pub const EXIT_STATUS: u32 = 1;

/// The longest path of an executable that is handed over.
pub const EXECUTABLE_BYTES_MAX: usize = 512;

/// The first page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Header {
    /// [`SHARED_MAGIC`].
    pub magic: u64,
    /// [`SHARED_VERSION`].
    pub version: u32,
    /// [`MODE_RECORD`] or [`MODE_STAT`].
    pub mode: u32,
    /// The process id that the recorder saw.
    pub pid: u32,
    /// The process id of its parent.
    pub parent_pid: u32,
    /// Channels in this file, at most [`CHANNEL_COUNT_MAX`].
    pub channel_count: u32,
    /// How the process said it would end.
    pub exit_kind: AtomicU32,
    /// The status it gave.
    pub exit_status: AtomicU32,
    /// Channels below this index have been used at least once.
    pub channels_high: AtomicU32,
    /// The time stamp counter when the process registered.
    pub started_tsc: u64,
    /// How often code was unloaded: from [`GENERATION_COUNT`] on, generations come again.
    pub generation: AtomicU64,
    /// Bytes of the module log that have been reserved.
    pub modules_reserved: AtomicU64,
    /// How often a module found no room in the log.
    pub modules_unlogged: AtomicU64,
    /// Events that were not recorded because the collector had gone or no channel came free.
    pub events_lost: AtomicU64,
    /// Threads that have taken a channel so far.
    pub channels_taken: AtomicU64,
    /// Threads waiting for a channel.
    pub channels_wanted: AtomicU32,
    /// Goes up while the collector lives; a waiting thread that sees it stand still for seconds gives up.
    pub heartbeat: AtomicU32,
    /// Set by the second thread's first call in [`MODE_STAT`]: from then on live bytes are summed in [`Header::live`].
    pub threads_many: AtomicU32,
    /// Memoised stacks that differed from a walk from scratch; counted by a recorder built to check itself.
    pub verify_mismatches: AtomicU32,
    /// Stacks that a checking recorder compared with a walk from scratch.
    pub verify_stacks: AtomicU64,
    /// Those of them that it compared with the C runtime's unwinder too.
    pub verify_judged: AtomicU64,
    /// Those of these that differed.
    pub verify_judge_mismatches: AtomicU64,
    /// What is wanted beside the heap: [`FEATURE_MARKS`], [`FEATURE_DESCRIPTORS`], [`FEATURE_HELPER_THREAD`],
    /// [`FEATURE_RUNTIMES`], [`FEATURE_PYTHON_OBJECTS`], [`FEATURE_MAPPINGS`].
    pub features: u32,
    /// 1 when the process was forked from one that had shared memory of its own, 0 when it began with `exec`.
    pub is_forked: u32,
    /// Threads that went where nothing of ours can run: seccomp's strict mode, or no time stamps.
    pub threads_locked_in: AtomicU32,
    /// Processes that were forked from this one behind a filter of system calls, and that nobody could be told of.
    pub children_filtered: AtomicU32,
    /// Whose `malloc` is called in front of ours: one of the `MALLOC_` numbers.
    pub malloc_in_front: u32,
    /// How often the recorder found that something is not as it always is. It stopped recording there.
    pub invariants_broken: AtomicU32,
    /// Processes that were forked from this one, and in which recording could not begin.
    pub children_missing: AtomicU32,
    /// What came of the plan for an allocator in the executable: one of the `PATCHES_` numbers of [`crate::patches`].
    pub patches_state: u32,
    /// How many of its functions lead to the recorder.
    pub patches_made: u32,
    /// How many of its functions cannot.
    pub patches_unseen: u32,
    /// Objects that were loaded and that mallow was asked about in vain ([`crate::plan_request`]).
    pub objects_unanswered: AtomicU32,
    /// When the process registered, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
    /// The number of the time namespace with that clock; 0 where there are none.
    pub clock: u64,
    /// How often a [`StartNote`] was written.
    pub starts_noted: AtomicU32,
    /// Notes below this index have been used at least once.
    pub starts_high: AtomicU32,
    /// Programs that were started while there was no room for a note.
    pub starts_lost: AtomicU32,
    /// 1 when the runtime was asked to write down the code that it makes, to `/tmp/perf-PID.map`: nobody else wants it.
    pub runtime_asked: AtomicU32,
    /// What came of [`FEATURE_PYTHON_OBJECTS`]: 0 where there is no Python.
    pub python_objects: AtomicU32,
    /// Not 0 when a frame was noted whose caller was guessed ([`GUESSES_OFFSET`]).
    pub has_guesses: AtomicU32,
    /// Not 0 when one found no room there.
    pub has_more_guesses: AtomicU32,
    /// How often events were lost that nobody counted.
    pub losses_uncounted: AtomicU32,
    /// Not 0 while nothing is recorded, because it is not yet time to begin ([`BEGIN_VARIABLE`]). The collector ends that.
    pub is_early: AtomicU32,
    /// Not 0 when the program has locked its memory (`mlockall`): what is resident then is not what is in use.
    pub is_locked: AtomicU32,
    /// Not 0 when libraries were loaded into a namespace of their own (`dlmopen`, `LD_AUDIT`), which has its own `malloc`.
    pub namespaces: AtomicU32,
    /// Private memory that belongs to no file and was resident when the process registered; 0 when it is not known.
    pub anonymous_bytes_at_start: AtomicU64,
    /// Private memory that belongs to no file and was resident when the process announced its exit; 0 when it was little, or
    /// is not known. The main thread's stack is part of it.
    pub anonymous_bytes_at_exit: AtomicU64,
    /// The size of that stack then.
    pub stack_bytes_at_exit: AtomicU64,
    /// Bytes of `executable`; 0 when it is not known.
    pub executable_bytes: u32,
    /// The path of the executable, unless it is longer.
    pub executable: [u8; EXECUTABLE_BYTES_MAX],
    /// What is known of scripts.
    pub scripts: Scripts,
    /// Under [`FEATURE_HELPER_THREAD`].
    pub helper_thread: HelperThread,
    /// Wakes the collector.
    pub doorbell: Doorbell,
    /// Which events need time stamps.
    pub order: Order,
    /// Under [`MODE_STAT`].
    pub live: Live,
}

const _: () = assert!(size_of::<Header>() <= PAGE_BYTES);

/// What a thread rings when its ring is half full and the collector sleeps between its passes.
#[repr(C)]
#[derive(Debug)]
pub struct Doorbell {
    /// Not 0 while it does. Written by the collector before it reads the rings for the last time.
    pub is_wanted: AtomicU32,
    /// Goes up with each ringing; the collector sleeps on it.
    pub rung: AtomicU32,
}

/// In [`Header::heartbeat`] when the collector has left on purpose.
pub const HEARTBEAT_LEFT: u32 = u32::MAX;

/// In the length of a record of a log: it is reserved and not filled yet. One that stays so was left by a signal handler that jumped out.
pub const UNFILLED: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn segments_add_up_and_the_design_says_which_they_are() {
        assert_eq!(NODE_SEGMENTS.iter().sum::<usize>(), NODE_COUNT);
        let powers = NODE_SEGMENTS.map(|entries| format!("2^{}", entries.ilog2()));
        let said = [
            format!("{} segments of {} entries", powers.len(), powers.join(", ")),
            format!("{} bytes per thread", size_of::<Channel>()),
            format!("{} KiB per thread", RING_BYTES / 1024),
        ];
        let design = include_str!("../../../docs/design/recorder.md");
        assert_eq!(said.iter().filter(|said| !design.contains(*said)).count(), 0, "{said:?}");
    }
}

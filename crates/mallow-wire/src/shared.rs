//! The memory that a profiled process shares with the collector: one memfd per process.
//!
//! ```text
//! offset 0             Header                                    one page
//!        NODES_OFFSET    stack nodes, 9 segments of 16-byte entries  96 MiB, touched as used
//!        MODULES_OFFSET  module log, append only                     1 MiB
//!        STARTS_OFFSET   StartNote[START_NOTES]                      64 KiB
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

pub use crate::order::*;
use crate::script::{CODE_LOG_BYTES, EXACT, Scripts};
use crate::starts::{START_NOTES, StartNote};
pub use crate::wanted::*;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// "mallowsm", little endian.
pub const SHARED_MAGIC: u64 = u64::from_le_bytes(*b"mallowsm");

/// Bumped with every change of this file or of [`crate::event`]. Recorder and collector travel in one binary,
/// so a difference means that a child was started by another mallow.
pub const SHARED_VERSION: u32 = 24;

/// The page size that the layout is aligned to.
pub const PAGE_BYTES: usize = 4096;

/// Entries in each segment of the node table. A stack node's id is its index over all segments.
///
/// A process begins with few nodes, and a look-up among them should touch few pages, each of which costs it, and mallow, 2 µs and more: the first segments are
/// small. With the one of 2^16 entries as the first and that of 2^18 as the next, a Python program with 35,000 nodes touched 1,220 pages of this memory where it
/// touches 528 now, a build of 60 small files took 5 % longer, and compilers of a million nodes as long. A still smaller one before these brought nothing.
/// With one of 2^19 entries in the place of the first of 2^18, 50,000 nodes took 8.8 MB of memory, where they took 5.2, and the recorder of a Python program with
/// 150,000 nodes 2 % more time. With one of 2^17 entries that program takes 5 % less, but a compiler of 560,000 nodes 3 % more, which searches one full segment
/// more for each.
/// A segment after two large ones is smaller on purpose: it stores the few nodes whose places in them are full, close together. In a larger one each of
/// them would touch a page of its own.
pub const NODE_SEGMENTS: [usize; 9] =
    [1 << 13, 1 << 16, 1 << 18, 1 << 18, 1 << 16, 1 << 18, 1 << 16, 1 << 20, 1 << 22];

/// Entries in all segments.
pub const NODE_COUNT: usize =
    (1 << 13) + (1 << 16) + (1 << 18) + (1 << 18) + (1 << 16) + (1 << 18) + (1 << 16) + (1 << 20) + (1 << 22);

/// The id for "no stack": the parent of outermost frames. No entry has it. Ids have 28 bits.
pub const NODE_ROOT: u32 = (1 << 28) - 1;

/// Set in the id of a stack whose inner frames found no place in the table: the rest of the id is the node of those that did.
const NODE_CUT: u32 = 1 << 27;
/// A stack of which not even the outermost frame found a place.
const NODE_CUT_ROOT: u32 = NODE_ROOT - 1;

const _: () = assert!(NODE_COUNT < (NODE_CUT_ROOT & !NODE_CUT) as usize);

/// Returns the id of a stack that continues inwards from `node` with frames for which there was no room.
#[inline(always)]
pub const fn node_cut(node: u32) -> u32 {
    if node == NODE_ROOT { NODE_CUT_ROOT } else { node | NODE_CUT }
}

/// Returns whether frames are missing at the inner end.
#[inline(always)]
pub const fn is_node_cut(node: u32) -> bool {
    node & NODE_CUT != 0 && node != NODE_ROOT
}

/// The node of the frames that have a place: [`NODE_ROOT`] or one that is not in the table when none has.
#[inline(always)]
pub const fn node_uncut(node: u32) -> u32 {
    if is_node_cut(node) { node & !NODE_CUT } else { node }
}

/// A stack node: 16 bytes, written once, both words by one 128-bit compare and exchange.
///
/// `key` is 0 while the entry is free. Otherwise it contains, from the low bits: the address (48 bits), one bit that
/// says whether the address is exact (a program counter) rather than a return address, and the module generation (15
/// bits) in which the address was seen. `link` contains the parent and the upper bits of the stack's hash:
/// [`node_link`].
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Node {
    /// Address, exactness, generation.
    pub key: AtomicU64,
    /// Parent and hash.
    pub link: AtomicU64,
}

/// The low bits of a link hold the parent's id plus 1, or 0 for the root.
pub const LINK_PARENT_BITS: u32 = 23;
const LINK_PARENT: u64 = (1 << LINK_PARENT_BITS) - 1;

const _: () = assert!(NODE_COUNT < LINK_PARENT as usize);

/// Packs a node's link: its parent's id, [`NODE_ROOT`] for none, and the upper 41 bits of the [`stack_hash`] of its
/// stack.
///
/// The root has all bits set, so that adding 1 to the low ones yields 0 for it.
#[inline(always)]
pub const fn node_link(parent: u32, hash: u64) -> u64 {
    hash & !LINK_PARENT | (parent as u64 + 1) & LINK_PARENT
}

/// The parent in a node's link.
#[inline(always)]
pub const fn node_parent(link: u64) -> u32 {
    ((link & LINK_PARENT) as u32).wrapping_sub(1) & NODE_ROOT
}

/// Returns whether a link may be one of a stack with this hash.
#[inline(always)]
pub const fn is_link_of(link: u64, hash: u64) -> bool {
    (link ^ hash) >> LINK_PARENT_BITS == 0
}

const _: () = assert!(size_of::<Node>() == 16);

/// Set in a node's key when the address is the program counter itself and not a return address: the frame was
/// interrupted by a signal, so nothing is subtracted before the look-up.
pub const NODE_EXACT: u64 = EXACT;

/// The number of module generations before they wrap.
pub const GENERATION_COUNT: u64 = 1 << 15;

/// The address that marks a stack deeper than the recorder follows: its only child chain is the part that was
/// kept.
pub const ADDRESS_TRUNCATED: u64 = 1;

/// Packs a node's key.
#[inline(always)]
pub const fn node_key(address: u64, exact: bool, generation: u64) -> u64 {
    (address & (NODE_EXACT - 1)) | (exact as u64) << 48 | (generation % GENERATION_COUNT) << 49
}

/// The address in a node's key.
pub const fn node_address(key: u64) -> u64 {
    key & (NODE_EXACT - 1)
}

/// Returns whether the address is a program counter.
#[inline(always)]
pub const fn is_node_exact(key: u64) -> bool {
    key & NODE_EXACT != 0
}

/// The module generation in a node's key.
pub const fn node_generation(key: u64) -> u64 {
    key >> 49
}

/// Entries of the node table in a cache line.
pub const NODE_LINE_ENTRIES: usize = 4;
/// How many entries a search visits in each segment before the next one: the cache line that the hash selects, and in every
/// segment but the first its neighbour too, so that a segment fills well before nodes overflow into the next. An overflowing
/// node touches a page of its own there, so the small segment before a large one is searched further. If the last one is full,
/// a deep stack loses its inner frames.
pub const NODE_PROBES: [usize; 9] = [4, 8, 8, 8, 32, 8, 32, 8, 64];

// A search flips the low bits of a place, which stays in its segment when that begins and ends at a multiple of the probes.
const _: () = {
    let (mut segment, mut start) = (0, 0);
    while segment < NODE_SEGMENTS.len() {
        let probes = NODE_PROBES[segment];
        let (at, entries): (usize, usize) = (start, NODE_SEGMENTS[segment]);
        assert!(probes.is_power_of_two() && at.is_multiple_of(probes) && entries.is_multiple_of(probes));
        start += NODE_SEGMENTS[segment];
        segment += 1;
    }
};

/// The hash of a stack: of its innermost frame's key, and of the hash of its callers (0 for none). It says
/// where the search for its node begins in each segment.
///
/// Both halves of a 128-bit product, folded: every bit of the key, the generation at its top included,
/// reaches the low bits that choose the place. A program that unloads libraries a hundred times has a hundred
/// keys that differ in nothing else.
#[inline(always)]
pub const fn stack_hash(key: u64, callers: u64) -> u64 {
    const KEY_SALT: u64 = 0x9e37_79b9_7f4a_7c15;
    const CALLERS_SALT: u64 = 0xd1b5_4a32_d192_ed03;
    let product = (key ^ KEY_SALT) as u128 * (callers ^ CALLERS_SALT) as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Bytes of a thread's ring. At most 32,768 allocations wait for the collector.
pub const RING_BYTES: usize = 512 * 1024;
/// Words of a thread's ring, a power of two.
pub const RING_WORDS: usize = RING_BYTES / 8;

/// Threads that can be alive at once in one process. The calls of a thread beyond are counted and not recorded.
pub const CHANNEL_COUNT_MAX: usize = 4096;

/// Bytes of the module log.
pub const MODULE_LOG_BYTES: usize = 1 << 20;

/// Offset of the node table.
pub const NODES_OFFSET: usize = PAGE_BYTES;
/// Offset of the module log.
pub const MODULES_OFFSET: usize = NODES_OFFSET + NODE_COUNT * size_of::<Node>();
/// Offset of the notes of programs that are started.
pub const STARTS_OFFSET: usize = MODULES_OFFSET + MODULE_LOG_BYTES;
/// Offset of the log of scripts' code.
pub const CODES_OFFSET: usize = STARTS_OFFSET + START_NOTES * size_of::<StartNote>();
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
    /// 1 when the executable, or a library in front of ours, defines `malloc`: its calls do not come to us.
    pub malloc_is_elsewhere: u32,
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

/// Orders to the thread in the process that speaks to its allocator, and its answers.
///
/// The collector writes `order`, then raises `asked` and wakes who sleeps on it; the helper thread carries the order out, writes
/// what it found, and sets `answered` to what it had read from `asked`.
#[repr(C)]
#[derive(Debug)]
pub struct HelperThread {
    /// The helper thread's thread id; 0 while there is none.
    pub tid: AtomicU32,
    /// What is wanted: [`REQUEST_TRIM`], [`REQUEST_ACCOUNT`].
    pub order: AtomicU32,
    /// How often something was asked.
    pub asked: AtomicU32,
    /// The last question that was answered.
    pub answered: AtomicU32,
    /// Which allocator answered: one of the `ALLOCATOR_` numbers.
    pub allocator: AtomicU32,
    /// Pad.
    pub pad: u32,
    /// Bytes that the allocator holds from the kernel.
    pub held_bytes: AtomicU64,
    /// Those of them that are in use.
    pub used_bytes: AtomicU64,
}

/// In [`HelperThread::order`]: give memory that is not used back to the kernel.
pub const REQUEST_TRIM: u32 = 1;
/// In [`HelperThread::order`]: say how much is held and used.
pub const REQUEST_ACCOUNT: u32 = 2;

/// In [`HelperThread::allocator`]: one that cannot be asked.
pub const ALLOCATOR_UNKNOWN: u32 = 0;
/// glibc's.
pub const ALLOCATOR_GLIBC: u32 = 1;
/// jemalloc.
pub const ALLOCATOR_JEMALLOC: u32 = 2;
/// mimalloc, which gives back but keeps no account.
pub const ALLOCATOR_MIMALLOC: u32 = 3;
/// gperftools' tcmalloc.
pub const ALLOCATOR_TCMALLOC: u32 = 4;

/// What lives, over all threads. On a cache line of its own: many write it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Live {
    /// Bytes, once there are several threads: what they have published, see [`Counters::unpublished_bytes`].
    pub bytes: AtomicU64,
    /// Blocks, likewise.
    pub blocks: AtomicU64,
    /// The highest sum of live bytes.
    pub peak_bytes: AtomicU64,
    /// The live blocks at that moment.
    pub peak_blocks: AtomicU64,
}

/// A thread's counters under [`MODE_STAT`]. Only its owner writes them. What busy threads write at each call is on one cache line, and what others read
/// while they publish on the next.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    /// Successful allocating calls.
    pub allocations: AtomicU64,
    /// Requested bytes of those.
    pub bytes: AtomicU64,
    /// Blocks freed of those that were counted when they were allocated, those that `realloc` replaced included.
    pub frees: AtomicU64,
    /// Blocks freed of which nothing is known.
    pub frees_unmatched: AtomicU64,
    /// Successful `realloc` calls on a live block.
    pub reallocations: AtomicU64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: AtomicU64,
    /// Failed calls.
    pub failed: AtomicU64,
    /// What the channel's owners added to the live bytes, less what they freed, and have not put into [`Live`]; wraps below zero.
    pub unpublished_bytes: AtomicU64,
    /// Live bytes, kept by the first thread while it is alone. May pass below zero in no moment.
    pub live_bytes: AtomicU64,
    /// What they have put into [`Live`] of their live blocks, which are their allocations less their frees; wraps below zero.
    pub published_blocks: AtomicU64,
    /// From so many unpublished bytes on, more or less than zero, the owner publishes. Never becomes less.
    pub slack_bytes: AtomicU64,
    /// How often something was published.
    pub publications: AtomicU64,
}

/// In [`Header::heartbeat`] when the collector has left on purpose.
pub const HEARTBEAT_LEFT: u32 = u32::MAX;

/// A channel's states. In [`Channel::state`].
pub const CHANNEL_FREE: u32 = 0;
/// A thread owns the channel; [`Channel::tid`] says which.
pub const CHANNEL_OWNED: u32 = 1;

/// A thread's channel: its ring's positions, and its counters.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Channel {
    /// [`CHANNEL_FREE`] or [`CHANNEL_OWNED`]. The recorder takes, the collector gives back.
    pub state: AtomicU32,
    /// The owner's thread id; 0 in a free channel, and in one that is being taken. Written last.
    pub tid: AtomicU32,
    /// Set while the owner sleeps because the ring is full.
    pub waiting: AtomicU32,
    /// Pad.
    pub pad0: u32,
    /// Which of the process's threads, counted from 1 in the order in which they took their channels, owns the
    /// channel.
    pub taken_serial: AtomicU64,
    /// Words published by the owner.
    pub head: AtomicU64,
    /// Calls that the channel's owners did not record because the collector stood still and the ring was full.
    pub lost: AtomicU64,
    /// Pad: `head` is the owner's cache line, `tail` the collector's.
    pub pad: [u64; 3],
    /// Words consumed by the collector.
    pub tail: AtomicU64,
    /// A word that changes with `tail`, to sleep on.
    pub tail_futex: AtomicU32,
    /// Pad.
    pub pad2: u32,
    /// Pad.
    pub pad3: [u64; 6],
    /// Under [`MODE_STAT`].
    pub counters: Counters,
    /// Marks that the owners of this channel wrote and that want an answer. Counted on over owners; each begins with what
    /// was answered, for its predecessor may have died before its answer.
    pub marks_asked: AtomicU32,
    /// Those of them that the collector has answered. The owner sleeps on it.
    pub marks_answered: AtomicU32,
    /// The answer to the last [`crate::event::Mark::CountEnds`].
    pub counted: Counted,
    /// Pad.
    pub pad4: [u64; 3],
}

const _: () = assert!(size_of::<Channel>() == 320);

/// How many values a [`Counted`] has.
pub const COUNTED_VALUES: usize = 7;

/// What a thread allocated between two marks. The collector writes it, before it answers the mark.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counted {
    /// How many of the values are valid: 0 if nothing was counted, or not everything.
    pub value_count: AtomicU64,
    /// Successful allocating calls of the thread, their bytes, those of them that were `realloc` of a live block, blocks that the thread freed
    /// before it allocated again, the highest sum of bytes that lived, blocks that live, their bytes. Programs get them in this order, so more may
    /// follow and none may go.
    pub values: [AtomicU64; COUNTED_VALUES],
}

/// In the length of a record of a log: it is reserved and not filled yet. One that stays so was left by a signal handler that jumped out.
pub const UNFILLED: u32 = 1 << 31;

/// A record of the module log. It is followed by `path_bytes` and `build_id_bytes` bytes, and padded to 8
/// bytes.
///
/// The log is appended by whichever thread first meets a module, so a module may stand in it twice. One that is the same as an
/// earlier one in all but its generation may be a [`ModuleAgain`].
#[repr(C)]
#[derive(Debug)]
pub struct ModuleRecord {
    /// The whole record's length in bytes, written last, with [`UNFILLED`] before that.
    pub record_bytes: AtomicU32,
    /// Bytes of the path that follows.
    pub path_bytes: u16,
    /// Bytes of the build id that follows the path.
    pub build_id_bytes: u16,
    /// The generation in which the module was met.
    pub generation: u64,
    /// Where the module's first byte is mapped.
    pub start_avma: u64,
    /// Behind its last byte.
    pub end_avma: u64,
    /// What is added to an address in the file to get the mapped one.
    pub bias: u64,
}

const _: () = assert!(size_of::<ModuleRecord>() == 40);

/// A record of the module log in place of a [`ModuleRecord`]; its length tells them apart. Plug-ins that come and go in each of all
/// generations have room in the log with it.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleAgain {
    /// The length of this, written last.
    pub record_bytes: AtomicU32,
    /// Where in the log the module's own record begins.
    pub offset: u32,
    /// The generation in which the module was met again.
    pub generation: u64,
}

const _: () = assert!(GENERATION_COUNT as usize * size_of::<ModuleAgain>() <= MODULE_LOG_BYTES / 2);

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn node_keys_round_trip() {
        let key = node_key(0x7fff_1234_5678, true, 5);
        assert_eq!(node_address(key), 0x7fff_1234_5678);
        assert_eq!(node_generation(key), 5);
        assert_ne!(key & NODE_EXACT, 0);
        assert_eq!(node_generation(node_key(1, false, GENERATION_COUNT + 3)), 3);
    }

    #[test]
    fn links_round_trip_their_parent_and_hash() {
        for parent in [0, 5, NODE_COUNT as u32 - 1, NODE_ROOT] {
            for hash in [0, 1 << 23, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
                let link = node_link(parent, hash);
                assert_eq!(node_parent(link), parent);
                assert!(
                    is_link_of(link, hash)
                        && !is_link_of(link, hash ^ 1 << 23)
                        && !is_link_of(link, hash ^ 1 << 63)
                );
            }
        }
    }

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

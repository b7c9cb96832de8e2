//! The memory in which what is preloaded by `mallow cpu` leaves samples: a header, slots behind it, and regions behind these.
//!
//! `mallow cpu` makes it before the command starts, and every process of the command maps it. A slot is free, being written by a thread, or
//! full; whoever dies while it writes leaves its slot marked with its thread, so that it can be freed. A process that runs a script has a
//! region, with the log of the script's code. Every process may write everywhere, so nothing in it is trusted.

use crate::script::CODE_LOG_BYTES;
use crate::shared::PAGE_BYTES;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The variable with the path of the memory.
pub const VARIABLE: &str = "MALLOW_TIMERS";
/// The variable with the path of a pipe: who writes a byte into it is looked at.
pub const WAKE_VARIABLE: &str = "MALLOW_WAKE";
/// What the memory begins with.
pub const MAGIC: u64 = 0x3273_7265_6d69_746d;
/// The signal of the timers, `SIGURG`: programs that do not handle it are not harmed by it, and hardly any does.
pub const SIGNAL: u32 = 23;
/// The signal of the kernel's own events, `SIGTRAP`: there is no other for them.
pub const EVENT_SIGNAL: u32 = 5;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a slot in front of what was copied.
pub const SLOT_HEAD_BYTES: usize = size_of::<SlotHead>();

/// What the memory begins with. It is written once, but for the counters.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// How many slots there are.
    pub slots: u32,
    /// How many bytes of a stack are copied at most: the room of each slot behind its head.
    pub room_bytes: u32,
    /// The time of a thread on processors between two of its samples.
    pub period_ns: u64,
    /// The kernel's own tick: no timer expires more often.
    pub tick_ns: u64,
    /// How many filters of system calls `mallow` itself is behind; a process with more of them is left alone.
    pub filters: u32,
    /// [`BY_TIMERS`] or [`BY_EVENTS`].
    pub way: u32,
    /// Not 0 when nobody reads any more.
    pub is_over: AtomicU32,
    /// Samples for which no slot was free.
    pub lost: AtomicU64,
    /// Frames of scripts for which no slot was free.
    pub lost_scripts: AtomicU64,
    /// Threads for which there was no timer.
    pub threads_without: AtomicU64,
    /// Processes that went behind a filter of system calls, or began behind one.
    pub processes_filtered: AtomicU64,
    /// Signals that came late, as the program had blocked them.
    pub late: AtomicU64,
    /// Processes with a script for which there was no region.
    pub scripts_without: AtomicU64,
    /// The regions.
    pub regions: [Region; REGIONS],
}

/// Timers make the samples. In [`Header::way`].
pub const BY_TIMERS: u32 = 0;
/// Events of the kernel do, and a signal of theirs asks for the script's frames.
pub const BY_EVENTS: u32 = 1;

/// Whose a region is, and what it is asked.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// The process; 0 when it is free.
    pub pid: AtomicU32,
    /// One of the `REGION_` numbers.
    pub state: AtomicU32,
}

/// How many processes with scripts there may be at once.
pub const REGIONS: usize = 256;
/// Bytes of a region: a page that begins as the shared memory of a recorded process does, and the log of code.
pub const REGION_BYTES: usize = PAGE_BYTES + CODE_LOG_BYTES;
/// A process asks for events with signals.
pub const REGION_ASKS: u32 = 1;
/// It has them.
pub const REGION_SAMPLED: u32 = 2;
/// It has none, and no signals.
pub const REGION_REFUSED: u32 = 3;
/// It asks that they end.
pub const REGION_ENDS: u32 = 4;

/// A slot: nobody has it.
pub const FREE: u32 = 0;
/// In the low bits of a slot's state, the thread's number above them: it is being written.
pub const WRITING: u32 = 1;
/// In the same place: it can be read.
pub const FULL: u32 = 2;
/// How far the thread's number is up in the state.
pub const THREAD_SHIFT: u32 = 2;

/// A sample: registers, and what was copied of the stack.
pub const SAMPLE: u32 = 1;
/// A process begins, by executing a program: what is mapped in it, as a text of the kernel's.
pub const BEGINS: u32 = 2;
/// The same for a process that another one has forked.
pub const FORKED: u32 = 3;
/// What did not fit of that text.
pub const MORE: u32 = 4;
/// The script's frames at a sample, innermost first, each as the key of its node.
pub const SCRIPT: u32 = 5;
/// A runtime was asked to write down what code it makes.
pub const ASKED: u32 = 6;

/// In [`Note::flags`]: the signal came later than the sample, as it was blocked.
pub const IS_LATE: u32 = 1;
/// In [`Note::flags`]: the script's frames at this moment come beside it, in a slot of their own.
pub const HAS_SCRIPT: u32 = 2;
/// In [`Note::flags`]: there were more frames than fit.
pub const IS_CUT: u32 = 4;

/// What stands in front of a slot's copy.
#[derive(Debug)]
#[repr(C)]
pub struct SlotHead {
    /// [`FREE`], or a thread and what it does.
    pub state: AtomicU32,
    /// Nothing.
    pub reserved: u32,
    /// What the copy is of.
    pub note: Note,
}

/// What a slot says beside its copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Note {
    /// [`SAMPLE`], [`BEGINS`], [`FORKED`], [`MORE`], [`SCRIPT`] or [`ASKED`].
    pub kind: u32,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// How much was copied.
    pub bytes: u32,
    /// By the monotonic clock.
    pub time_ns: u64,
    /// The thread's time on processors that the sample stands for.
    pub cpu_ns: u64,
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer, from where on the stack is copied.
    pub sp: u64,
    /// The frame pointer register.
    pub bp: u64,
    /// The register of a function's first argument.
    pub di: u64,
    /// The register in which a JVM's interpreter has its bytecode.
    pub r13: u64,
    /// The process's region.
    pub region: u32,
    /// [`IS_LATE`], [`HAS_SCRIPT`], [`IS_CUT`].
    pub flags: u32,
    /// The thread's name, zeros behind it.
    pub name: [u8; 16],
}

const _: () = assert!(size_of::<SlotHead>() == 104 && size_of::<Header>() <= HEADER_BYTES);
const _: () = assert!(align_of::<SlotHead>() == 8 && align_of::<Header>() == 8);

/// Bytes of a slot with so much room.
pub const fn slot_bytes(room_bytes: u32) -> usize {
    (SLOT_HEAD_BYTES + room_bytes as usize).next_multiple_of(64)
}

/// Bytes of the part of the memory that each process maps: the header, and so many slots; none if that is no size.
pub fn slots_bytes(slots: u32, room_bytes: u32) -> Option<usize> {
    let bytes = slot_bytes(room_bytes).checked_mul(slots as usize)?.checked_add(HEADER_BYTES)?;
    bytes.checked_next_multiple_of(PAGE_BYTES)
}

/// Where a region begins.
pub fn region_offset(slots: u32, room_bytes: u32, region: usize) -> Option<usize> {
    slots_bytes(slots, room_bytes)?.checked_add(region.checked_mul(REGION_BYTES)?)
}

/// Bytes of the whole memory.
pub fn memory_bytes(slots: u32, room_bytes: u32) -> Option<usize> {
    region_offset(slots, room_bytes, REGIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart() {
        assert_eq!((slot_bytes(8), slot_bytes(32), slot_bytes(32 << 10)), (128, 192, 32_896));
        assert_eq!((slots_bytes(2, 8), slots_bytes(31, 8)), (Some(8192), Some(8192)));
        assert_eq!(region_offset(2, 8, 1), Some(8192 + REGION_BYTES));
        assert_eq!(memory_bytes(2, 8), region_offset(2, 8, REGIONS));
    }
}

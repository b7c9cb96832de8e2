//! The memory in which timers of a program's threads leave their samples: a header, and slots behind it.
//!
//! `mallow cpu` makes it before the command starts, and every process of the command maps it. A slot is free, being written by a thread, or
//! full; whoever dies while it writes leaves its slot marked with its thread, so that it can be freed. Every process may write everywhere, so
//! nothing in it is trusted.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The variable with the path of the memory.
pub const VARIABLE: &str = "MALLOW_TIMERS";
/// What the memory begins with.
pub const MAGIC: u64 = 0x3173_7265_6d69_746d;
/// The signal of the timers, `SIGURG`: programs that do not handle it are not harmed by it, and hardly any does.
pub const SIGNAL: u32 = 23;
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
    /// Not 0 when nobody reads any more.
    pub is_over: AtomicU32,
    /// Samples for which no slot was free.
    pub lost: AtomicU64,
    /// Threads for which there was no timer.
    pub threads_without: AtomicU64,
    /// Processes that went behind a filter of system calls, or began behind one.
    pub processes_filtered: AtomicU64,
    /// Signals that came late, as the program had blocked them.
    pub late: AtomicU64,
}

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
    /// [`SAMPLE`], [`BEGINS`], [`FORKED`] or [`MORE`].
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
    /// The thread's name, zeros behind it.
    pub name: [u8; 16],
}

const _: () = assert!(size_of::<SlotHead>() == 88 && size_of::<Header>() <= HEADER_BYTES);
const _: () = assert!(align_of::<SlotHead>() == 8 && align_of::<Header>() == 8);

/// Bytes of a slot with so much room.
pub const fn slot_bytes(room_bytes: u32) -> usize {
    (SLOT_HEAD_BYTES + room_bytes as usize).next_multiple_of(64)
}

/// Bytes of a memory with so many slots; none if that is no size.
pub fn memory_bytes(slots: u32, room_bytes: u32) -> Option<usize> {
    slot_bytes(room_bytes).checked_mul(slots as usize)?.checked_add(HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart() {
        assert_eq!((slot_bytes(8), slot_bytes(40), slot_bytes(32 << 10)), (128, 128, 32_896));
        assert_eq!(memory_bytes(2, 8), Some(4096 + 256));
        assert_eq!(
            memory_bytes(u32::MAX, u32::MAX),
            4_294_967_295_usize.checked_mul(slot_bytes(u32::MAX)).and_then(|it| it.checked_add(4096))
        );
    }
}

//! Notes of programs that are started, in the memory that a process shares with the collector.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// How many there are that the collector has not taken yet.
pub const START_NOTES: usize = 256;

/// A program that takes the place of a process's own, noted before it does. Whether it registers is then to be seen.
///
/// A process that was forked and has recorded nothing yet writes into the memory of the one it was forked from, so the writer need
/// not be the owner.
#[repr(C)]
#[derive(Debug)]
pub struct StartNote {
    /// [`START_FREE`], [`START_WRITING`] or [`START_NOTED`]. Writers take, the collector gives back.
    pub state: AtomicU32,
    /// The process, as it sees itself; 0 for a shell that libc starts, whose number nobody is told.
    pub pid: AtomicU32,
    /// When, in nanoseconds of the monotonic clock: what registers earlier is not yet the program.
    pub time_ns: AtomicU64,
    /// The number of its network namespace; 0 when it is not known.
    pub network: AtomicU64,
    /// What stands against its being recorded: one of the `FOUND_` numbers.
    pub found: AtomicU32,
    /// Bytes of `path`.
    pub path_bytes: AtomicU32,
    /// The program's path, its end when it is longer.
    pub path: [AtomicU8; 224],
}

const _: () = assert!(size_of::<StartNote>() == 256);

/// In [`StartNote::state`]: nobody's.
pub const START_FREE: u32 = 0;
/// In [`StartNote::state`]: being written.
pub const START_WRITING: u32 = 1;
/// In [`StartNote::state`]: for the collector to take.
pub const START_NOTED: u32 = 2;

/// In [`StartNote::found`]: nothing.
pub const FOUND_NOTHING: u32 = 0;
/// [`crate::executable::Obstacle::Static`].
pub const FOUND_STATIC: u32 = 1;
/// [`crate::executable::Obstacle::OtherMachine`].
pub const FOUND_OTHER_MACHINE: u32 = 2;
/// [`crate::executable::Obstacle::Sanitizer`].
pub const FOUND_SANITIZER: u32 = 3;
/// The loader ignores preloaded libraries, because the file gives other rights than its caller's.
pub const FOUND_PRIVILEGED: u32 = 4;
/// The environment that it is given does not name the recorder or the session.
pub const FOUND_CLEARED: u32 = 5;
/// The recorder's file is not to be found from where it starts.
pub const FOUND_ELSEWHERE: u32 = 6;
/// A limit on memory, on the length of files or on their number leaves no room.
pub const FOUND_LIMITED: u32 = 7;
/// The start that was noted with the same process and time has failed.
pub const FOUND_FAILED: u32 = 8;
/// A filter of system calls that was set before does not let through what a recording begins with.
pub const FOUND_FILTERED: u32 = 9;

//! What the spawner says of a command that it has started and waited for: words of 64 bits on a stream.
//!
//! The spawner is started with the number of the stream's descriptor, the program's path and the command's words. It waits for one byte,
//! starts the command, waits for its end and writes one report. Times are those of `CLOCK_MONOTONIC`.

/// Words of a report.
pub const WORDS: usize = RUSAGE + RUSAGE_WORDS;
/// Bytes of a report.
pub const BYTES: usize = WORDS * 8;

/// The word that says what became of the command: [`ENDED`] or [`CANNOT_RUN`].
pub const KIND: usize = 0;
/// The word with the status as `wait4` has it, or with the error number.
pub const STATUS: usize = 1;
/// The word with the time before the start, in nanoseconds.
pub const STARTED_NS: usize = 2;
/// The word with the time at which the end was known.
pub const ENDED_NS: usize = 3;
/// The first word of the kernel's `struct rusage`.
pub const RUSAGE: usize = 4;
/// Its words: two times of two words each, and fourteen numbers.
pub const RUSAGE_WORDS: usize = 18;

/// The command ran and ended.
pub const ENDED: u64 = 1;
/// The system refused to run the program.
pub const CANNOT_RUN: u64 = 2;

/// The word with the peak of resident memory, in KiB.
pub const PEAK_RSS_KIB: usize = RUSAGE + 4;
/// The word with faults that were served from memory.
pub const MINOR_FAULTS: usize = RUSAGE + 8;
/// The word with faults that needed the disk.
pub const MAJOR_FAULTS: usize = RUSAGE + 9;
/// The word with switches because the process waited.
pub const VOLUNTARY_SWITCHES: usize = RUSAGE + 16;
/// The word with switches because another process was to run.
pub const INVOLUNTARY_SWITCHES: usize = RUSAGE + 17;

//! What the spawner is told and what it answers: one request and one report for each command, on a stream.
//!
//! The spawner is started with the number of the stream's descriptor. A request is three numbers of 32 bits and texts, each ended by a zero byte: the
//! program's path, the command's words, its environment. The spawner starts the command, waits for its end and writes a report of words of 64 bits;
//! then it waits for the next request, until nobody holds the stream's other end. Times are those of `CLOCK_MONOTONIC`.

/// Bytes in front of a request's texts.
pub const REQUEST_HEAD_BYTES: usize = 12;
/// The most bytes of a request's texts: the kernel takes no more.
pub const REQUEST_BYTES_MAX: usize = 2 << 20;
/// The most texts of a request.
pub const REQUEST_TEXTS_MAX: usize = 1 << 17;

/// What stands in front of a request's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes of the texts, with the zeros behind them.
    pub bytes: u32,
    /// How many words the command has, the name that it is told included.
    pub words: u32,
    /// How many texts its environment has.
    pub environment: u32,
}

impl RequestHead {
    /// As bytes of the stream.
    pub fn to_bytes(self) -> [u8; REQUEST_HEAD_BYTES] {
        let mut bytes = [0; REQUEST_HEAD_BYTES];
        for (into, number) in bytes.chunks_exact_mut(4).zip([self.bytes, self.words, self.environment]) {
            into.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From bytes of the stream.
    pub fn from_bytes(bytes: [u8; REQUEST_HEAD_BYTES]) -> RequestHead {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        let number = u32::from_le_bytes;
        RequestHead {
            bytes: number([a, b, c, d]),
            words: number([e, f, g, h]),
            environment: number([i, j, k, l]),
        }
    }

    /// Returns whether the spawner takes it.
    pub fn is_fitting(&self) -> bool {
        self.bytes as usize <= REQUEST_BYTES_MAX
            && u64::from(self.words) + u64::from(self.environment) < REQUEST_TEXTS_MAX as u64
    }
}

/// Words of a report.
pub const WORDS: usize = RUSAGE + RUSAGE_WORDS;
/// Bytes of a report.
pub const BYTES: usize = WORDS * 8;

/// The word that says what became of the command: [`ENDED`], [`CANNOT_RUN`] or [`NOT_WAITED_FOR`].
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
/// The command ran, and the system does not tell how it ended.
pub const NOT_WAITED_FOR: u64 = 3;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_have_a_limit() {
        let head = RequestHead { bytes: 0x0102_0304, words: 7, environment: 9 };
        assert_eq!(head.to_bytes()[..5], [4, 3, 2, 1, 7]);
        assert_eq!(RequestHead::from_bytes(head.to_bytes()), head);
        let fitting = RequestHead { bytes: 2 << 20, words: 1 << 16, environment: (1 << 16) - 1 };
        assert!(fitting.is_fitting() && !head.is_fitting());
        assert!(!RequestHead { environment: u32::MAX, ..fitting }.is_fitting());
    }
}

//! Room at the end of a log in shared memory, which many threads append to.
//!
//! A record begins with its length, which is written last and says that all of it is there. Until then it stands there with a mark, and it is written
//! *before* the log's end moves: whoever takes room writes the length where the log ends, if nothing stands there yet, and only then moves the end
//! behind it; whoever finds a length there moves the end in the other's place and tries again. So a signal handler that jumps out at any instruction, and
//! a thread that never comes back, leave a record whose length is known, and the collector can pass over it when the process has ended.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use mallow_wire::shared::UNFILLED;

/// Reserves room for a record; returns its offset, or `None` if the log is full.
///
/// # Safety
/// `log` has `log_bytes` bytes, aligned to 8, and those after the end are zero except for what this function wrote
/// there. `record_bytes` is a multiple of 8, and not 0.
pub(crate) unsafe fn take(
    end: &AtomicU64,
    log: *mut u8,
    log_bytes: usize,
    record_bytes: usize,
) -> Option<usize> {
    loop {
        let offset = end.load(Ordering::Acquire) as usize;
        if offset.saturating_add(record_bytes) > log_bytes {
            return None;
        }
        // SAFETY: within the log by the check above, and aligned as all records' lengths are multiples of 8.
        let length = unsafe { &*log.add(offset).cast::<AtomicU32>() };
        let mark = record_bytes as u32 | UNFILLED;
        let found = length.compare_exchange(0, mark, Ordering::AcqRel, Ordering::Acquire);
        let bytes = match found {
            Ok(_) => record_bytes,
            // Somebody else's, filled or not. The program may have written there, too: then the log is full.
            Err(there) if there & !UNFILLED != 0 => (there & !UNFILLED) as usize,
            Err(_) => return None,
        };
        end.fetch_max(offset.saturating_add(bytes) as u64, Ordering::AcqRel);
        if found.is_ok() {
            return Some(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log {
        words: Vec<u64>,
        end: AtomicU64,
    }

    impl Log {
        fn new() -> Log {
            Log { words: vec![0; 16], end: AtomicU64::new(0) }
        }

        fn take(&self, bytes: usize) -> Option<usize> {
            // SAFETY: a log of 128 bytes, which only this function writes to through atomics.
            unsafe { take(&self.end, self.words.as_ptr() as *mut u8, 128, bytes) }
        }
    }

    #[test]
    fn log_records_are_contiguous_with_their_lengths() {
        let log = Log::new();
        assert_eq!(
            [log.take(40), log.take(16), log.take(64), log.take(16), log.take(8)],
            [Some(0), Some(40), Some(56), None, Some(120)]
        );
        assert_eq!(log.words[0] as u32, 40 | UNFILLED);
        assert_eq!(log.words[5] as u32, 16 | UNFILLED);
    }

    /// Somebody wrote the length and was gone before the end moved.
    #[test]
    fn an_abandoned_reservation_is_finished_by_the_next_writer() {
        let mut log = Log::new();
        log.words[0] = u64::from(24 | UNFILLED);
        assert_eq!(log.take(16), Some(24));
        assert_eq!(log.end.load(Ordering::Relaxed), 40);
        // What no record begins with ends the log.
        log.words[5] = u64::from(UNFILLED);
        assert_eq!(log.take(16), None);
    }

    #[test]
    fn concurrent_reservations_do_not_overlap() {
        let (words, end) = (vec![0u64; 1 << 15], AtomicU64::new(0));
        let at = words.as_ptr() as usize;
        let mut taken: Vec<usize> = std::thread::scope(|scope| {
            // SAFETY: as above, a log of 256 KiB.
            let take = |_| unsafe { take(&end, at as *mut u8, 1 << 18, 16) };
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(move || (0..2000).filter_map(take).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        taken.sort_unstable();
        assert_eq!(taken, (0..8000).map(|at| at * 16).collect::<Vec<_>>());
    }
}

//! How long the collector sleeps between two passes over the rings.
//!
//! Each pass costs its own wake-up, a dozen system calls and a place on a processor that the program may want, however little
//! there is to read. So passes come as rarely as the rings allow: when an eighth of a ring is expected to have been written.

use std::time::{Duration, Instant};

/// Sleeps between passes: longer and longer while nothing happens, and no longer than the rings can wait.
#[derive(Debug)]
pub(crate) struct Pause {
    current: Duration,
    last_words: u64,
    since: Instant,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { current: Pause::MIN, last_words: 0, since: Instant::now() }
    }
}

impl Pause {
    const MIN: Duration = Duration::from_micros(100);
    const MAX: Duration = Duration::from_millis(4);
    /// What a pass shall find, of all rings together: the fullest of them then holds no more, and a thread that begins to
    /// allocate as fast as it can fills the rest of its ring in a millisecond.
    const WANTED_WORDS: u64 = mallow_wire::shared::RING_WORDS as u64 / 8;
    /// A pass that found less found little.
    const LITTLE_WORDS: u64 = Pause::WANTED_WORDS / 8;

    /// Whether the last pass found little.
    pub(crate) fn is_idle(&self) -> bool {
        self.last_words < Pause::LITTLE_WORDS
    }

    /// Sleeps after a pass that read so many words.
    pub(crate) fn after(&mut self, words: u64) {
        self.last_words = words;
        self.current = next(self.current, self.since.elapsed(), words);
        self.since = Instant::now();
        std::thread::sleep(self.current);
    }
}

/// The pause after one of `current`, when so many words were written within `elapsed`. It shrinks at once, and grows by doubling:
/// a program that was quiet for a moment may go on.
fn next(current: Duration, elapsed: Duration, words: u64) -> Duration {
    let until_wanted_ns = elapsed.as_nanos() * u128::from(Pause::WANTED_WORDS) / u128::from(words.max(1));
    let until_wanted = Duration::from_nanos(u64::try_from(until_wanted_ns).unwrap_or(u64::MAX));
    until_wanted.min(current * 2).clamp(Pause::MIN, Pause::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_quiet_program_is_looked_at_less_and_less_often() {
        assert_eq!(next(Pause::MIN, Pause::MIN, 0), 2 * Pause::MIN);
        assert_eq!(next(3 * MS, 3 * MS, 10), Pause::MAX);
        assert_eq!(next(Pause::MAX, Duration::from_secs(3_600), 0), Pause::MAX);
    }

    #[test]
    fn a_busy_one_when_an_eighth_of_a_ring_is_full() {
        let wanted = Pause::WANTED_WORDS;
        assert_eq!(next(2 * MS, 2 * MS, wanted), 2 * MS);
        assert_eq!(next(2 * MS, 2 * MS, 2 * wanted), MS);
        assert_eq!(next(2 * MS, 2 * MS, wanted / 4 * 3), 2 * MS * 4 / 3);
        // The pass itself and the wake-up took as long as the sleep.
        assert_eq!(next(MS, 2 * MS, wanted), 2 * MS);
        assert_eq!(next(Pause::MAX, Pause::MAX, 1 << 40), Pause::MIN);
    }
}

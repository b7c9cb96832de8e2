//! How long the collector sleeps between two passes over the rings.
//!
//! Short sleeps cost wake-ups but are still cheaper overall: with passes only when an eighth of a ring was expected, a
//! server with twenty events a request kept 0.62 of its rate instead of 0.85 (`cargo xtask soak-record --runs 0 --only rust/clean`).
//! After a pass that found much there is none: a storm fills a ring in less time than a sleep takes beside other load, and then its
//! thread waits. Whoever comes or ends wakes it: what it would have slept on is waited for by a shell. So does a ring that fills (`doorbell.rs`), where the kernel can.

use mallow_wire::shared::RING_WORDS;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use std::time::Duration;

/// So many processes are looked at as often as one.
const FEW: usize = 64;
/// However many there are, a process that begins to work is seen in so many times the longest sleep.
const IDLE_FACTOR_MAX: usize = 8;

/// How often the resident memory of each of so many processes is sampled.
pub(crate) fn sample_interval(processes: usize) -> Duration {
    const OF_FEW: Duration = Duration::from_millis(10);
    const FACTOR_MAX: usize = 16;
    OF_FEW * processes.div_ceil(FEW).clamp(1, FACTOR_MAX) as u32
}

/// Sleeps between passes: shortly while rings fill quickly, longer and longer while nothing happens.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    current: Duration,
    /// The last pass found so much that none of its threads was to ring.
    is_storm: bool,
}

impl Default for PollBackoff {
    fn default() -> PollBackoff {
        PollBackoff { current: PollBackoff::MIN, is_storm: false }
    }
}

impl PollBackoff {
    const MIN: Duration = Duration::from_micros(100);
    /// While anything comes. What fills a ring in less time has to wait, which a program with 15 million calls a second does in 2 ms.
    const BUSY_MAX: Duration = Duration::from_millis(1);
    const MAX: Duration = Duration::from_millis(4);

    /// Returns whether the last passes found little.
    pub(crate) fn is_idle(&self) -> bool {
        self.current > PollBackoff::MIN
    }

    /// Returns whether the next pass may be followed by a sleep, so that a ring that fills has to end it.
    pub(crate) fn may_sleep(&self) -> bool {
        !self.is_storm
    }

    /// Returns how long to sleep after a pass over so many processes that read so many words; `None` if there is too much to do. Many idle processes are
    /// passed over less often: a thousand of them took a quarter of a processor.
    pub(crate) fn after(&mut self, words: u64, processes: usize) -> Option<Duration> {
        /// A sixteenth of a ring.
        const MANY_WORDS: u64 = RING_WORDS as u64 / 16;
        /// An eighth of a ring.
        const STORM_WORDS: u64 = RING_WORDS as u64 / 8;
        if words >= STORM_WORDS {
            self.is_storm = true;
            return None;
        }
        if std::mem::take(&mut self.is_storm) {
            // Nobody would have rung in this pass: one more before there is a sleep.
            self.current = PollBackoff::MIN;
            return None;
        }
        let idle_max = PollBackoff::MAX * (processes / FEW).clamp(1, IDLE_FACTOR_MAX) as u32;
        let longest = if words > 0 { PollBackoff::BUSY_MAX } else { idle_max };
        self.current = if words > MANY_WORDS { PollBackoff::MIN } else { (self.current * 2).min(longest) };
        Some(self.current)
    }
}

/// Sleeps for so long, or until a descriptor is ready. Returns whether one is.
pub(crate) fn sleep_until_ready(longest: Duration, descriptors: &mut [PollFd<'_>]) -> bool {
    let time = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
    match poll(descriptors, Some(&time)) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => false,
        // A filter of system calls refuses it.
        Err(_) => {
            std::thread::sleep(longest);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_the_longer_the_less_comes() {
        let (mut backoff, ring) = (PollBackoff::default(), RING_WORDS as u64);
        let mut sleeps = |words: u64, passes: usize| -> Vec<Option<u128>> {
            (0..passes).map(|_| backoff.after(words, FEW).map(|pause| pause.as_micros())).collect()
        };
        assert_eq!(sleeps(ring / 8, 2), [None, None]);
        assert_eq!(sleeps(ring / 8 - 1, 3), [None, Some(100), Some(100)], "nobody rings in a storm");
        assert_eq!(sleeps(1, 5), [200, 400, 800, 1000, 1000].map(Some), "a ring is not filled meanwhile");
        assert_eq!(sleeps(0, 3), [2000, 4000, 4000].map(Some));
        assert_eq!(sleeps(1, 1), [Some(1000)]);
    }

    #[test]
    fn many_idle_processes_are_looked_at_less_often_and_busy_ones_are_not() {
        let longest = |processes: usize, words: u64| {
            let mut backoff = PollBackoff::default();
            (0..10).map(|_| backoff.after(words, processes).unwrap().as_millis()).max().unwrap()
        };
        assert_eq!([1, 127, 128, 1000, 100_000].map(|count| longest(count, 0)), [4, 4, 8, 32, 32]);
        assert_eq!(longest(1000, 1), 1);
        assert_eq!(
            [0, 1, 64, 65, 1000, 100_000].map(|count| sample_interval(count).as_millis()),
            [10, 10, 10, 20, 160, 160]
        );
    }
}

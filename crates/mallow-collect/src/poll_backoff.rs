//! How long the collector sleeps between two passes over the rings.
//!
//! Short sleeps cost wake-ups but are still cheaper overall: with passes only when an eighth of a ring was expected, a
//! server with twenty events a request kept 0.62 of its rate instead of 0.85 (`cargo xtask soak-record --runs 0 --only rust/clean`).
//! After a pass that found much there is none: a storm fills a ring in less time than a sleep takes beside other load, and then its
//! thread waits. Whoever comes or ends wakes it: what it would have slept on is waited for by a shell.

use mallow_wire::shared::RING_WORDS;
use rustix::event::{PollFd, Timespec, poll};
use std::time::Duration;

/// Sleeps between passes: shortly while rings fill quickly, longer and longer while nothing happens.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    current: Duration,
}

impl Default for PollBackoff {
    fn default() -> PollBackoff {
        PollBackoff { current: PollBackoff::MIN }
    }
}

impl PollBackoff {
    const MIN: Duration = Duration::from_micros(100);
    const MAX: Duration = Duration::from_millis(4);

    /// Returns whether the last passes found little.
    pub(crate) fn is_idle(&self) -> bool {
        self.current > PollBackoff::MIN
    }

    /// Returns how long to sleep after a pass that read so many words; `None` if there is too much to do.
    pub(crate) fn after(&mut self, words: u64) -> Option<Duration> {
        /// A sixteenth of a ring.
        const MANY_WORDS: u64 = RING_WORDS as u64 / 16;
        /// An eighth of a ring.
        const STORM_WORDS: u64 = RING_WORDS as u64 / 8;
        if words >= STORM_WORDS {
            self.current = PollBackoff::MIN;
            return None;
        }
        self.current =
            if words > MANY_WORDS { PollBackoff::MIN } else { (self.current * 2).min(PollBackoff::MAX) };
        Some(self.current)
    }
}

/// Sleeps for so long, or until a descriptor is ready. Returns whether one is.
pub(crate) fn sleep_until_ready(longest: Duration, descriptors: &mut [PollFd<'_>]) -> bool {
    let longest = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
    poll(descriptors, Some(&longest)).is_ok_and(|ready| ready > 0)
}

//! The processor's time stamps as microseconds since the recording's start.
//!
//! Events carry raw time stamp counts. The collector notes the counter beside the system's clock each time it
//! looks at the rings, and an event lies between two such notes, so its time is a straight line between them.
//! No rate is assumed, and none has to be measured first.

use std::time::Instant;

/// A conversion that learns as it goes.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// The note before the last: the counter, nanoseconds since the start, and the same as [`fixed_us`].
    anchor_tsc: u64,
    anchor_ns: u64,
    anchor_us: i128,
    /// Microseconds per tick, in units of 2^-[`FRACTION_BITS`].
    rate: i64,
    /// The counter at the latest note.
    noted_tsc: u64,
}

/// Bits behind the point. With them a rate is exact to a billionth, and a time to a microsecond through a
/// quarter of an hour without a note.
const FRACTION_BITS: u32 = 40;

/// Nanoseconds as microseconds with a fraction.
fn fixed_us(ns: u64) -> i128 {
    (i128::from(ns) << FRACTION_BITS) / 1000
}

impl Clock {
    /// Starts at now.
    pub(crate) fn start() -> Clock {
        let tsc = now_tsc();
        Clock {
            started: Instant::now(),
            anchor_tsc: tsc,
            anchor_ns: 0,
            anchor_us: 0,
            rate: 0,
            noted_tsc: tsc,
        }
    }

    /// Notes now; gives the counter. Events up to it can be converted until the next note.
    pub(crate) fn note(&mut self) -> u64 {
        let (tsc, ns) = (now_tsc(), self.started.elapsed().as_nanos() as u64);
        let ticks = tsc.saturating_sub(self.anchor_tsc).max(1);
        let passed_ns = ns.saturating_sub(self.anchor_ns);
        self.rate = (fixed_us(passed_ns) / i128::from(ticks)) as i64;
        // The line is kept for at least a millisecond, so that a jitter of nanoseconds in the reading does
        // not bend it.
        const KEEP_NS: u64 = 1_000_000;
        if passed_ns >= KEEP_NS {
            (self.anchor_tsc, self.anchor_ns, self.anchor_us) = (tsc, ns, fixed_us(ns));
        }
        self.noted_tsc = tsc;
        tsc
    }

    /// The counter at the latest note.
    pub(crate) fn noted_tsc(&self) -> u64 {
        self.noted_tsc
    }

    /// Microseconds since the start.
    pub(crate) fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// The time of an event.
    #[inline(always)]
    pub(crate) fn time_us(&self, tsc: u64) -> u64 {
        let ticks = tsc.wrapping_sub(self.anchor_tsc) as i64;
        let time_us = (self.anchor_us + i128::from(ticks) * i128::from(self.rate)) >> FRACTION_BITS;
        (time_us as i64).max(0) as u64
    }
}

fn now_tsc() -> u64 {
    // SAFETY: the instruction is there on every x86-64 processor.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn event_times_follow_the_system_clock() {
        let mut clock = Clock::start();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(2));
            let (tsc, before_us) = (now_tsc(), clock.now_us());
            clock.note();
            let error_us = clock.time_us(tsc).abs_diff(before_us);
            assert!(error_us < 200, "off by {error_us} µs");
        }
    }

    #[test]
    fn later_counts_are_never_earlier_times() {
        let mut clock = Clock::start();
        let mut last = 0;
        for _ in 0..1000 {
            let tsc = now_tsc();
            clock.note();
            let time = clock.time_us(tsc);
            assert!(time + 1 >= last, "{time} after {last}");
            last = time;
        }
    }
}

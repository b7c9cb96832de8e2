//! The processor's time stamps as microseconds since the recording's beginning.
//!
//! Events carry raw time stamp counts. The collector notes the counter beside the system's clock each time it
//! looks at the rings, and an event's time lies on the straight line through the latest note and one that is at least a
//! millisecond older. No rate is assumed, and none has to be measured first. Two notes that lie close together make no line: what
//! passes between the two readings of one note would bend it, and events from before would be moved by milliseconds.

use std::time::{Duration, Instant};

/// A conversion that learns as it goes.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// Where the line starts, a millisecond or more before the latest note; the start while that is younger.
    older: Note,
    /// Where the next line will start.
    newer: Note,
    /// [`fixed_us`] of the line's beginning.
    older_us: i128,
    /// Microseconds per tick, in units of 2^-[`FRACTION_BITS`].
    rate: i64,
    /// The counter at the latest note.
    noted_tsc: u64,
    /// How long after the start times begin.
    delay: Duration,
}

/// The counter, and nanoseconds since the start, at one moment.
#[derive(Clone, Copy, Debug)]
struct Note {
    tsc: u64,
    ns: u64,
}

/// Bits of the fraction. With them a rate is exact to a billionth, and a time to a microsecond through a quarter of
/// an hour without a note.
const FRACTION_BITS: u32 = 40;

/// Nanoseconds as microseconds with a fraction.
fn fixed_us(ns: u64) -> i128 {
    (i128::from(ns) << FRACTION_BITS) / 1000
}

impl Clock {
    /// Starts at now.
    pub(crate) fn start() -> Clock {
        Clock::start_in(Duration::ZERO)
    }

    /// Counts from `delay` after now on: everything before is at 0.
    pub(crate) fn start_in(delay: Duration) -> Clock {
        let started = Instant::now();
        let mut clock = Clock::at(started, Note::now(started));
        clock.delay = delay;
        clock.older_us = clock.since_beginning_us(clock.older.ns);
        clock
    }

    /// How long after the start times begin.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns whether that is over.
    pub(crate) fn has_begun(&self) -> bool {
        self.started.elapsed() >= self.delay
    }

    /// [`fixed_us`] of a time since the start.
    fn since_beginning_us(&self, ns: u64) -> i128 {
        fixed_us(ns) - ((self.delay.as_micros() as i128) << FRACTION_BITS)
    }

    fn at(started: Instant, first: Note) -> Clock {
        let (older, newer, older_us) = (first, first, fixed_us(first.ns));
        Clock { started, older, newer, older_us, rate: 0, noted_tsc: first.tsc, delay: Duration::ZERO }
    }

    /// Records the current time and returns the time stamp counter. Events up to it can be converted until the next
    /// call.
    pub(crate) fn note(&mut self) -> u64 {
        self.take(Note::now(self.started))
    }

    fn take(&mut self, note: Note) -> u64 {
        const APART_NS: u64 = 1_000_000;
        if note.ns.saturating_sub(self.newer.ns) >= APART_NS {
            (self.older, self.newer) = (self.newer, note);
            self.older_us = self.since_beginning_us(self.older.ns);
        }
        let ticks = note.tsc.saturating_sub(self.older.tsc).max(1);
        let passed_ns = note.ns.saturating_sub(self.older.ns);
        self.rate = (fixed_us(passed_ns) / i128::from(ticks)) as i64;
        self.noted_tsc = note.tsc;
        note.tsc
    }

    /// The counter at the latest note.
    pub(crate) fn noted_tsc(&self) -> u64 {
        self.noted_tsc
    }

    /// Microseconds since the beginning.
    pub(crate) fn now_us(&self) -> u64 {
        self.started.elapsed().saturating_sub(self.delay).as_micros() as u64
    }

    /// The time of an event.
    #[inline(always)]
    pub(crate) fn time_us(&self, tsc: u64) -> u64 {
        let ticks = tsc.wrapping_sub(self.older.tsc) as i64;
        let time_us = (self.older_us + i128::from(ticks) * i128::from(self.rate)) >> FRACTION_BITS;
        (time_us as i64).max(0) as u64
    }
}

impl Note {
    /// Reads both clocks, as close together as a few tries achieve: if it is interrupted between the two it tries
    /// again.
    fn now(started: Instant) -> Note {
        const TRIES: usize = 4;
        const CLOSE_TICKS: u64 = 3_000;
        let mut best: Option<(u64, Note)> = None;
        for _ in 0..TRIES {
            let before = now_tsc();
            let ns = started.elapsed().as_nanos() as u64;
            let ticks = now_tsc().saturating_sub(before);
            if best.is_none_or(|(width, _)| ticks < width) {
                best = Some((ticks, Note { tsc: before + ticks / 2, ns }));
            }
            if ticks < CLOSE_TICKS {
                break;
            }
        }
        best.map_or(Note { tsc: now_tsc(), ns: 0 }, |(_, note)| note)
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
            let (error_us, _) = error_us(&mut clock);
            assert!(error_us < 200, "off by {error_us} µs");
        }
    }

    /// How far the time of an event lies outside of two readings of the system's clock around it, between which a busy machine may do something else; and the later one.
    fn error_us(clock: &mut Clock) -> (u64, u64) {
        let (before_us, tsc, after_us) = (clock.now_us(), now_tsc(), clock.now_us());
        clock.note();
        let time_us = clock.time_us(tsc);
        (before_us.saturating_sub(time_us).max(time_us.saturating_sub(after_us)), after_us)
    }

    /// A counter of 2 ticks a nanosecond; the second of two notes that follow each other closely was interrupted between its readings.
    #[test]
    fn clock_readings_close_together_do_not_distort_the_rate() {
        let mut clock = Clock::at(Instant::now(), Note { tsc: 1_000, ns: 0 });
        let tsc_of = |ns: u64| 1_000 + 2 * ns;
        for ns in [1_500_000, 3_000_000] {
            clock.take(Note { tsc: tsc_of(ns), ns });
            clock.take(Note { tsc: tsc_of(ns + 100), ns: ns + 5_000 });
            for us in [200, 700, 1_400] {
                let error_us = clock.time_us(tsc_of(us * 1_000)).abs_diff(us);
                assert!(error_us <= 5, "{us} µs was off by {error_us} µs at {ns} ns");
            }
        }
    }

    #[test]
    fn times_before_the_beginning_are_0() {
        let mut clock = Clock::start_in(Duration::from_millis(20));
        let early = now_tsc();
        clock.note();
        assert_eq!((clock.now_us(), clock.time_us(early), clock.has_begun()), (0, 0, false));
        while !clock.has_begun() {
            std::thread::sleep(Duration::from_millis(2));
            clock.note();
        }
        std::thread::sleep(Duration::from_millis(2));
        let (error_us, now_us) = error_us(&mut clock);
        assert!(error_us < 200 && now_us >= 2000, "off by {error_us} µs at {now_us} µs");
        assert_eq!(clock.time_us(early), 0);
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

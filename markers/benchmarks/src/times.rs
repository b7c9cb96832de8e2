//! How long a call takes: the median of samples, each of so many calls that the clock does not matter.

use std::time::{Duration, Instant};

/// How long a sample takes at least.
const SAMPLE: Duration = Duration::from_millis(2);
/// How many there are, and how many of calls so slow that all would take longer than [`ALL_MAX`].
const SAMPLES: usize = 51;
const SAMPLES_MIN: usize = 5;
const ALL_MAX: Duration = Duration::from_secs(3);

/// Nanoseconds of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) median_ns: f64,
    pub(crate) fastest_ns: f64,
    pub(crate) slowest_ns: f64,
    /// Calls that were measured.
    pub(crate) calls: u64,
}

/// Measures it.
pub(crate) fn measured(mut call: impl FnMut()) -> Times {
    let mut calls: u64 = 1;
    // This warms up as well.
    while time_of(calls, &mut call) < SAMPLE {
        calls = calls.saturating_mul(2);
    }
    let begin = Instant::now();
    let mut samples_ns = Vec::with_capacity(SAMPLES);
    while samples_ns.len() < SAMPLES && (samples_ns.len() < SAMPLES_MIN || begin.elapsed() < ALL_MAX) {
        samples_ns.push(time_of(calls, &mut call).as_nanos() as f64 / calls as f64);
    }
    summed(samples_ns, calls)
}

fn time_of(calls: u64, call: &mut impl FnMut()) -> Duration {
    let begin = Instant::now();
    (0..calls).for_each(|_| call());
    begin.elapsed()
}

fn summed(mut samples_ns: Vec<f64>, calls_each: u64) -> Times {
    samples_ns.sort_by(f64::total_cmp);
    let at = |index: usize| samples_ns.get(index).copied().unwrap_or(f64::NAN);
    let count = samples_ns.len();
    Times {
        median_ns: (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0,
        fastest_ns: at(0),
        slowest_ns: at(count.saturating_sub(1)),
        calls: calls_each.saturating_mul(count as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_samples_is_the_time() {
        let times = summed(vec![7.0, 1.0, 3.0], 100);
        assert_eq!(times, Times { median_ns: 3.0, fastest_ns: 1.0, slowest_ns: 7.0, calls: 300 });
        assert_eq!(summed(vec![4.0, 1.0], 1).median_ns, 2.5);
    }

    #[test]
    fn a_sleep_takes_as_long_as_it_says() {
        let times = measured(|| std::thread::sleep(Duration::from_millis(3)));
        assert!(times.fastest_ns >= 3e6 && times.calls == SAMPLES as u64, "{times:?}");
        assert!(times.median_ns < 30e6, "{times:?}");
    }
}

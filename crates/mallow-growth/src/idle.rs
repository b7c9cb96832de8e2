//! Growth with time: what a program does while nothing is asked of it.

use crate::series::{Point, noise_about};
use crate::theil_sen::{Z_995, theil_sen};
use crate::{Evidence, Observation, Rules};

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// Fewer observations than this mean nothing.
const LOOKS_MIN: usize = 4;

/// How many standard deviations the rise must have.
const SIGMAS: f64 = 5.0;

/// One step may make up so much of the rise: a timer that fires once is no growth.
const STEP_SHARE_MAX: f64 = 0.6;

/// Rises below these are noise: one page of live heap; of resident memory what the kernel accounts in batches.
const HEAP_RISE_MIN: f64 = 4_096.0;
const RESIDENT_RISE_MIN: f64 = 262_144.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Idle {
    /// Bytes an hour: slope, low, high.
    pub(crate) per_hour: (f64, f64, f64),
    /// It grows with certainty.
    pub(crate) grows: bool,
}

impl Idle {
    pub(crate) fn per_second(&self) -> f64 {
        self.per_hour.0 / SECONDS_PER_HOUR
    }
}

/// Returns the growth in the last idle time; `None` if there were too few observations. For a program whose memory
/// `is_elsewhere`, that of resident memory.
pub(crate) fn idle(evidence: &Evidence, is_elsewhere: bool, rules: &Rules) -> Option<Idle> {
    let looks = last_rest(&evidence.idle);
    let has_heap = !is_elsewhere && looks.iter().all(|seen| seen.live_bytes.is_some());
    let metric = |seen: &Observation| match seen.live_bytes {
        Some(bytes) if has_heap => bytes,
        _ => seen.resident_bytes,
    };
    let points: Vec<Point> =
        looks.iter().map(|seen| Point { x: seen.seconds, y: metric(seen) as f64 }).collect();
    if points.len() < LOOKS_MIN {
        return None;
    }
    let slope = theil_sen(&points, Z_995)?;
    let steps = points.windows(2).map(|pair| pair[1].y - pair[0].y);
    let (rise, largest) =
        steps.fold((0.0, 0.0), |(rise, largest), step| (rise + step, f64::max(largest, step)));
    let rise_min = if has_heap { HEAP_RISE_MIN } else { RESIDENT_RISE_MIN };
    // A rise that comes to a halt is a server that has just begun, or has just rested.
    let grows = slope.slope * SECONDS_PER_HOUR > rules.idle_per_hour_min
        && slope.low > 0.0
        && rise >= rise_min
        && rise > SIGMAS * noise_about(&points, slope.slope)
        && largest <= STEP_SHARE_MAX * rise;
    let hourly = |slope: f64| slope * SECONDS_PER_HOUR;
    Some(Idle { per_hour: (hourly(slope.slope), hourly(slope.low), hourly(slope.high)), grows })
}

/// Returns the observations of the last period without requests: a pause before the load and one after it are two.
fn last_rest(looks: &[Observation]) -> &[Observation] {
    let requests = looks.last().map(|last| last.requests);
    let start = looks.iter().rposition(|seen| Some(seen.requests) != requests).map_or(0, |index| index + 1);
    &looks[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(bytes: &[u64], recorder: bool) -> Evidence {
        let look = |(index, bytes): (usize, &u64)| Observation {
            requests: 9,
            seconds: 100.0 + index as f64 / 2.0,
            live_bytes: recorder.then_some(*bytes),
            resident_bytes: *bytes,
            ..Observation::default()
        };
        Evidence { idle: bytes.iter().enumerate().map(look).collect(), ..Evidence::default() }
    }

    #[test]
    fn a_steady_rise_is_growth_at_its_rate() {
        // 50 KiB each half second.
        let seen = evidence(&[0, 51_200, 102_400, 153_600, 204_800], true);
        let rate = 102_400.0 * 3_600.0;
        let found = idle(&seen, false, &Rules::default()).expect("five looks");
        assert_eq!(found, Idle { per_hour: (rate, rate, rate), grows: true });
        assert_eq!(found.per_second(), 102_400.0);
    }

    #[test]
    fn idle_noise_and_single_steps_are_no_growth() {
        for bytes in [[7_000; 6], [0, 0, 0, 90_000, 90_000, 90_000], [0, 100, 200, 300, 400, 500]] {
            let found = idle(&evidence(&bytes, true), false, &Rules::default()).expect("six looks");
            assert!(!found.grows, "{bytes:?}");
        }
        assert_eq!(idle(&evidence(&[1, 2, 3], true), false, &Rules::default()), None);
    }

    /// A busy machine's server is ready, and loads the last of its modules while it is watched.
    #[test]
    fn a_rise_that_halts_within_a_short_look_is_no_growth() {
        let bytes = [2_000_000, 2_500_000, 3_000_000, 3_400_000, 3_400_000];
        let found = idle(&evidence(&bytes, true), false, &Rules::default()).expect("five looks");
        assert!(found.per_hour.1 <= 0.0 && !found.grows, "{found:?}");
        let found = idle(&evidence(&bytes[..4], true), false, &Rules::default()).expect("four looks");
        assert!(found.grows, "{found:?}");
    }

    #[test]
    fn idle_growth_of_resident_memory_has_a_higher_threshold() {
        let rise = [0, 51_200, 102_400, 153_600, 204_800];
        assert!(!idle(&evidence(&rise, false), false, &Rules::default()).expect("five looks").grows);
        let rise = [0, 512_000, 1_024_000, 1_536_000, 2_048_000];
        assert!(idle(&evidence(&rise, false), false, &Rules::default()).expect("five looks").grows);
    }

    #[test]
    fn of_memory_that_is_elsewhere_the_heap_says_nothing() {
        let mut seen = evidence(&[0, 512_000, 1_024_000, 1_536_000, 2_048_000], true);
        seen.idle.iter_mut().for_each(|look| look.live_bytes = Some(1_824));
        assert!(!idle(&seen, false, &Rules::default()).expect("five looks").grows);
        assert!(idle(&seen, true, &Rules::default()).expect("five looks").grows);
    }

    #[test]
    fn the_rest_before_the_load_is_another_one() {
        let mut seen = evidence(&[0, 0, 0, 0, 900_000, 900_000, 900_000, 900_000], true);
        for look in &mut seen.idle[..4] {
            look.requests = 0;
        }
        let found = idle(&seen, false, &Rules::default()).expect("four looks");
        assert_eq!(found, Idle { per_hour: (0.0, 0.0, 0.0), grows: false });
    }
}

//! Does the growth double whenever the number of requests doubles?
//!
//! A container that leaks by doubling is a staircase: flat nearly everywhere, so no slope is ever certain. But from one eighth of
//! the requests to a quarter, to a half, to all of them, its growth doubles each time, whatever the phase of its steps. A
//! straight leak's growth does so too. A warm-up's shrinks; that of a maximum which is seldom exceeded (a logarithm) stays
//! the same; one late burst has nothing before it.

use crate::series::{Point, level};

/// The ratio of one octave's growth to that of the one before. 2 in theory; a logarithm has 1, a square root 1.4.
const RATIO: std::ops::RangeInclusive<f64> = 1.65..=2.6;

/// The first octave's growth in standard deviations of the noise.
const SIGMAS: f64 = 4.0;

/// Where the last octave may end, as a part of all requests. A step in the three observations before an octave's end
/// can be hidden by their median; it cannot be at both ends.
const ENDS: [f64; 2] = [1.0, 0.85];

/// Growth that doubles from octave to octave, in units for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Doubling {
    /// Over the three octaves together.
    pub(crate) per_request: f64,
    /// In the slowest octave.
    pub(crate) low: f64,
    /// In the fastest.
    pub(crate) high: f64,
}

/// How near to an octave's end its level has to be observed, as a part of the requests until then.
const NEAR: f64 = 0.8;

/// The growth, if it doubles over three octaves of requests. Needs observations from the first eighth of the requests on.
pub(crate) fn doubling(points: &[Point], per_request_min: f64, noise: f64) -> Option<Doubling> {
    let last = points.last().map_or(0.0, |last| last.x);
    ENDS.iter().find_map(|end| doubling_until(points, last * end, per_request_min, noise))
}

fn doubling_until(points: &[Point], end: f64, per_request_min: f64, noise: f64) -> Option<Doubling> {
    let levels = [
        level_before(points, end / 8.0)?,
        level_before(points, end / 4.0)?,
        level_before(points, end / 2.0)?,
        level_before(points, end)?,
    ];
    let growth = [levels[1] - levels[0], levels[2] - levels[1], levels[3] - levels[2]];
    let rates = [growth[0] / (end / 8.0), growth[1] / (end / 4.0), growth[2] / (end / 2.0)];
    let is_enough = rates.iter().all(|rate| *rate > per_request_min) && growth[0] > SIGMAS * noise;
    let ratios = [growth[1] / growth[0], growth[2] / growth[1]];
    if !is_enough || !ratios.iter().all(|ratio| RATIO.contains(ratio)) {
        return None;
    }
    Some(Doubling {
        per_request: (levels[3] - levels[0]) / (end * 7.0 / 8.0),
        low: rates.iter().copied().fold(f64::INFINITY, f64::min),
        high: rates.iter().copied().fold(0.0, f64::max),
    })
}

/// Returns the level at this number of requests: the median of the last three observations before it, of those that
/// are near enough; `None` if there is none.
fn level_before(points: &[Point], requests: f64) -> Option<f64> {
    let end = points.iter().rposition(|point| point.x <= requests)? + 1;
    let near = points[..end].iter().rev().take(3).take_while(|point| point.x > NEAR * requests).count();
    (near > 0).then(|| level(&points[end - near..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(level: impl Fn(f64) -> f64) -> Vec<Point> {
        (4..=84).map(|i| Point { x: 1_000.0 * f64::from(i), y: level(1_000.0 * f64::from(i)) }).collect()
    }

    #[test]
    fn a_doubling_vector_is_found_wherever_its_steps_lie() {
        let capacity = |x: f64, phase: f64| 16.0 * phase * (x / phase).log2().ceil().exp2();
        for phase in 0..50 {
            let phase = 2f64.powf(f64::from(phase) / 50.0);
            let found = doubling(&series(|x| capacity(x, phase)), 4.0, 8_192.0);
            // Capacity is once to twice what is in it.
            assert!(
                found.is_some_and(|found| (12.0..34.0).contains(&found.per_request)),
                "{phase}: {found:?}"
            );
        }
    }

    #[test]
    fn a_straight_leak_is_found() {
        let exactly = Doubling { per_request: 16.0, low: 16.0, high: 16.0 };
        assert_eq!(doubling(&series(|x| 16.0 * (x + 1_000.0)), 4.0, 0.0).map(rounded), Some(exactly));
        assert!(doubling(&series(|x| 3.0 * x), 4.0, 0.0).is_none(), "below the limit");
        assert!(doubling(&series(|x| 16.0 * x), 4.0, 1e6).is_none(), "in the noise");
    }

    /// The levels lag one to three observations behind the octaves' ends.
    fn rounded(found: Doubling) -> Doubling {
        let whole = |rate: f64| (rate / 4.0).round() * 4.0;
        Doubling { per_request: whole(found.per_request), low: whole(found.low), high: whole(found.high) }
    }

    #[test]
    fn growth_that_slows_down_is_not_doubling() {
        assert!(doubling(&series(|x| 1e6 * x.ln()), 4.0, 0.0).is_none());
        assert!(doubling(&series(|x| 1e4 * x.sqrt()), 4.0, 0.0).is_none());
        assert!(doubling(&series(|x| 1e7 * (1.0 - (-x / 20_000.0).exp())), 4.0, 0.0).is_none());
        assert!(doubling(&series(|x| if x > 50_000.0 { 4e6 } else { 0.0 }), 4.0, 0.0).is_none());
        assert!(doubling(&series(|x| 16.0 * x.min(50_000.0)), 4.0, 0.0).is_none());
    }

    #[test]
    fn a_run_that_began_too_late_says_nothing() {
        assert!(doubling(&series(|x| 16.0 * x)[20..], 4.0, 0.0).is_none());
        assert!(doubling(&[], 4.0, 0.0).is_none());
    }
}

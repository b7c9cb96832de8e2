//! Which observations are judged: those of the second half of all requests.
//!
//! Half of the *requests*, not of the observations: warm-up is not observed, so the last half of the observations would begin
//! later. A container that doubles when it is full steps at least once while the number of requests doubles. With this
//! window each such step is seen, so a staircase can never pass for a plateau.

use crate::Observation;
use crate::series::Point;
use std::ops::Range;

/// Fewer points than this have no interval at 99.5 %.
pub(crate) const WINDOW_MIN: usize = 10;

/// Returns the judged window: from the last observation before half of the requests on, and at least ten
/// observations.
pub(crate) fn window(observations: &[Observation]) -> Range<usize> {
    let all = observations.len();
    let half = observations.last().map_or(0.0, |last| last.requests as f64 / 2.0);
    let start = observations.iter().rposition(|seen| seen.requests as f64 <= half);
    // Warm-up was longer than the run: half of the observations is the best that is left.
    let start = start.unwrap_or(all / 2);
    start.min(all.saturating_sub(WINDOW_MIN))..all
}

/// The same for the points of one metric, which may lack some of the observations.
pub(crate) fn window_of(points: &[Point]) -> usize {
    let half = points.last().map_or(0.0, |last| last.x / 2.0);
    let start = points.iter().rposition(|point| point.x <= half).unwrap_or(points.len() / 2);
    start.min(points.len().saturating_sub(WINDOW_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(warm_up: u64, iterations: u64) -> Vec<Observation> {
        (1..=iterations)
            .map(|i| Observation { requests: 1_000 * (warm_up + i), ..Observation::default() })
            .collect()
    }

    #[test]
    fn the_window_is_the_last_half_of_the_requests() {
        assert_eq!(window(&run(0, 20)), 9..20);
        // 23,000 requests: half are reached between the eighth observation (11,000) and the ninth.
        assert_eq!(window(&run(3, 20)), 7..20);
        assert_eq!(window(&run(3, 80)), 37..80);
        // A long warm-up: all observations lie in the second half.
        assert_eq!(window(&run(100, 40)), 20..40);
    }

    #[test]
    fn it_has_ten_observations_or_all() {
        assert_eq!(window(&run(0, 12)), 2..12);
        assert_eq!(window(&run(0, 4)), 0..4);
        assert_eq!(window(&[]), 0..0);
    }

    #[test]
    fn points_have_the_same_window_as_their_observations() {
        for (warm_up, iterations) in [(0, 20), (3, 20), (3, 80), (100, 40), (0, 12), (0, 4), (0, 0)] {
            let run = run(warm_up, iterations);
            let points: Vec<Point> =
                run.iter().map(|seen| Point { x: seen.requests as f64, y: 0.0 }).collect();
            assert_eq!(window(&run).start, window_of(&points));
        }
    }
}

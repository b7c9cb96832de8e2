//! One metric over the requests: the form in which every metric is looked at.
//!
//! All levels are medians, so that one odd observation moves nothing. Nothing here may panic, whatever the metrics.

use crate::Observation;

/// The standard deviation divided by the median of absolute deviations, for normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// With more points a series is thinned out before all pairs are used: 500 points are 125,000 pairs.
const POINTS_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The points of one metric in the order of time; none when not one observation has the metric.
pub(crate) fn points_of(
    observations: &[Observation],
    metric: impl Fn(&Observation) -> Option<u64>,
) -> Option<Vec<Point>> {
    let point = |seen: &Observation| Some(Point { x: seen.requests as f64, y: metric(seen)? as f64 });
    let points: Vec<Point> = observations.iter().filter_map(point).collect();
    (!points.is_empty()).then_some(points)
}

/// The median; 0 of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    mallow_base::median(values).unwrap_or(0.0)
}

/// The median of the levels.
pub(crate) fn level(points: &[Point]) -> f64 {
    median(points.iter().map(|point| point.y))
}

/// The point in the middle of some points: median of requests, median of levels.
pub(crate) fn centre(points: &[Point]) -> Point {
    Point { x: median(points.iter().map(|point| point.x)), y: level(points) }
}

/// Returns how far points are from the line with this slope through their middle: a robust standard deviation.
pub(crate) fn noise_about(points: &[Point], slope: f64) -> f64 {
    let rest: Vec<f64> = points.iter().map(|point| point.y - slope * point.x).collect();
    let middle = median(rest.iter().copied());
    MAD_TO_SIGMA * median(rest.iter().map(|rest| (rest - middle).abs()))
}

/// At most `POINTS_MAX` points: each the centre of equally many neighbours. A leak of many hours is as straight through them,
/// and noise becomes smaller, not larger.
pub(crate) fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let group = points.len().div_ceil(POINTS_MAX);
    points.chunks(group).map(centre).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn noise_is_measured_about_the_line_and_does_not_see_one_outlier() {
        let off = [0.0, 1.0, -1.0, 1.0, -1.0, 500.0, 1.0, -1.0, 0.0];
        let points: Vec<Point> = (0..9).map(|i| Point { x: i as f64, y: 10.0 * i as f64 + off[i] }).collect();
        assert!((noise_about(&points, 10.0) - MAD_TO_SIGMA).abs() < 1e-9);
    }

    #[test]
    fn a_long_straight_line_stays_one() {
        let points: Vec<Point> = (0..2_001).map(|i| Point { x: i as f64, y: 3.0 * i as f64 }).collect();
        let thin = thinned(&points);
        assert_eq!(thin.len(), 401);
        assert!(thin.iter().all(|point| point.y == 3.0 * point.x));
        assert_eq!(thin[0].x, 2.0);
        assert_eq!(thinned(&points[..500]), points[..500]);
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_the_sorted(values in prop::collection::vec(-1e12..1e12f64, 1..40)) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len();
            let naive = (sorted[(n - 1) / 2] / 2.0) + (sorted[n / 2] / 2.0);
            prop_assert!((median(values) - naive).abs() <= 1e-3);
        }
    }
}

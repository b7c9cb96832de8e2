//! The slope of a series: Theil-Sen's median of the slopes of all pairs, with Sen's confidence interval.
//!
//! Sources: H. Theil (1950); P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63
//! (1968): the interval's ends are order statistics of the pairs' slopes, as far from the middle as Kendall's S may stray by
//! chance. What a program holds at one look is not independent of what it held at the last one, so the variance of S is
//! taken twice as large as for independent noise; the replays of this crate (`tests/replays`) measure what comes of it.

use crate::series::Point;

/// By how much the variance of Kendall's S is raised because neighbours are alike.
const AUTOCORRELATION: f64 = 2.0;

/// The normal deviate of a two-sided 99.5 % interval.
pub(crate) const Z_995: f64 = 2.807;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    pub(crate) slope: f64,
    /// The interval's lower end. Of fewer than ten points it is the smallest slope, and no interval of that confidence.
    pub(crate) low: f64,
    /// The upper end, or the largest slope.
    pub(crate) high: f64,
    /// Kendall's S in its standard deviations: how clearly the series goes up (or, negative, down).
    pub(crate) z: f64,
}

/// The slope; none when no two points have different requests.
pub(crate) fn theil_sen(points: &[Point], z: f64) -> Option<Slope> {
    let mut slopes = pair_slopes(points);
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let pairs = slopes.len();
    let middle = slopes[(pairs - 1) / 2] / 2.0 + slopes[pairs / 2] / 2.0;
    let sigma = kendall_sigma(points.len());
    let kendall: f64 = slopes.iter().map(|slope| if *slope == 0.0 { 0.0 } else { slope.signum() }).sum();
    let reach = z * sigma;
    // Sen: the M1-th and the (M2 + 1)-th smallest slope, M1 = (N - C) / 2, M2 = (N + C) / 2, counted from 1.
    let below = ((pairs as f64 - reach) / 2.0).floor().max(1.0) as usize;
    let (low, high) = (slopes[below.min(pairs) - 1], slopes[pairs - below.min(pairs)]);
    Some(Slope { slope: middle, low: low.min(middle), high: high.max(middle), z: kendall / sigma })
}

fn pair_slopes(points: &[Point]) -> Vec<f64> {
    let mut slopes = Vec::with_capacity(points.len().saturating_mul(points.len().saturating_sub(1)) / 2);
    for (index, first) in points.iter().enumerate() {
        for second in &points[index + 1..] {
            let slope = (second.y - first.y) / (second.x - first.x);
            if slope.is_finite() {
                slopes.push(slope);
            }
        }
    }
    slopes
}

fn kendall_sigma(points: usize) -> f64 {
    let n = points as f64;
    (AUTOCORRELATION * n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(levels: &[f64]) -> Vec<Point> {
        levels.iter().enumerate().map(|(x, y)| Point { x: x as f64, y: *y }).collect()
    }

    #[test]
    fn a_straight_line_has_its_slope_and_no_width() {
        let line: Vec<f64> = (0..12).map(|x| 5.0 + 16.0 * f64::from(x)).collect();
        let slope = theil_sen(&series(&line), Z_995).expect("twelve points");
        assert_eq!((slope.slope, slope.low, slope.high), (16.0, 16.0, 16.0));
        // S = 66 of 66 pairs; its variance is 2 * 12 * 11 * 29 / 18.
        assert!((slope.z - 66.0 / (425.333_f64).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn one_outlier_of_forty_moves_neither_the_slope_nor_the_interval() {
        let mut line: Vec<f64> = (0..40).map(f64::from).collect();
        line[6] = 1e9;
        let slope = theil_sen(&series(&line), Z_995).expect("forty points");
        assert_eq!((slope.slope, slope.low, slope.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_interval_of_twelve_points_lies_between_the_fourth_slopes_from_either_end() {
        // 66 pairs, C = 2.807 * sqrt(425.33) = 57.9: the 4th smallest, and the 63rd.
        let levels = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0];
        let points = series(&levels);
        let mut all = pair_slopes(&points);
        all.sort_by(f64::total_cmp);
        let slope = theil_sen(&points, Z_995).expect("twelve points");
        assert_eq!((slope.low, slope.high), (all[3], all[62]));
    }

    #[test]
    fn few_points_have_the_extremes_for_an_interval() {
        let slope = theil_sen(&series(&[1.0, 2.0, 5.0]), Z_995).expect("three points");
        assert_eq!((slope.slope, slope.low, slope.high), (2.0, 1.0, 3.0));
        assert_eq!(theil_sen(&series(&[1.0]), Z_995), None);
        assert_eq!(theil_sen(&[], Z_995), None);
        let same = [Point { x: 4.0, y: 1.0 }, Point { x: 4.0, y: 2.0 }];
        assert_eq!(theil_sen(&same, Z_995), None);
    }

    proptest! {
        // A leak added to a series moves slope and interval by exactly itself: what `detectable_per_request` rests on.
        #[test]
        fn an_added_leak_moves_the_whole_interval(
            levels in prop::collection::vec(0..1_000_000i32, 10..40),
            leak in 0..100i32,
        ) {
            let levels: Vec<f64> = levels.into_iter().map(f64::from).collect();
            let leaking: Vec<f64> =
                levels.iter().enumerate().map(|(x, y)| y + f64::from(leak) * x as f64).collect();
            let before = theil_sen(&series(&levels), Z_995).expect("ten points");
            let after = theil_sen(&series(&leaking), Z_995).expect("ten points");
            for (before, after) in
                [(before.slope, after.slope), (before.low, after.low), (before.high, after.high)]
            {
                prop_assert!((before + f64::from(leak) - after).abs() < 1e-6);
            }
        }

        #[test]
        fn the_slope_lies_in_its_interval(levels in prop::collection::vec(any::<f64>(), 0..40)) {
            if let Some(slope) = theil_sen(&series(&levels), Z_995) {
                prop_assert!(slope.low <= slope.slope && slope.slope <= slope.high, "{slope:?}");
            }
        }
    }
}

//! What speaks against a series: outliers, a slow first run, drift, neighbours that are alike.
//!
//! Distances are measured in robust deviations (1.4826 times the median absolute deviation, which is the standard deviation of normal noise), since
//! a few wild runs move a mean and a standard deviation at will.

use crate::Summary;

/// Something that is wrong with a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// So many runs are far from the others, not counting the first one.
    Outliers(usize),
    /// The first run took so many times the median of the others.
    SlowFirst(f64),
    /// The last third's median is so many times the first third's, and that is no chance.
    Drift(f64),
    /// Runs are like their neighbours: the machine did something else for a while. The autocorrelation at a distance of one.
    Moods(f64),
}

/// A run is an outlier when it is so many robust deviations from the median.
const OUTLIER_DEVIATIONS: f64 = 10.0;
/// Noise that is this small, as a share of the median, is no reason to speak of outliers: timers are not finer.
const DEVIATION_MIN: f64 = 0.001;
/// Fewer runs have no course.
const RUNS_MIN: usize = 12;
/// The maximal autocorrelation of neighbours.
const AUTOCORRELATION_MAX: f64 = 0.3;

/// Returns what disturbed a series of runs, in the order in which they were made.
pub fn disturbances(values: &[f64]) -> Vec<Disturbance> {
    let mut found = Vec::new();
    let Some((first, others)) = values.split_first().filter(|(_, others)| others.len() >= 2) else {
        return found;
    };
    let Some(summary) = Summary::of(others) else { return found };
    let reach = OUTLIER_DEVIATIONS * robust_deviation(others).max(DEVIATION_MIN * summary.median);
    if first - summary.median > reach && *first > summary.median * 1.05 {
        found.push(Disturbance::SlowFirst(first / summary.median));
    }
    let outliers = others.iter().filter(|value| (*value - summary.median).abs() > reach).count();
    if outliers > 0 {
        found.push(Disturbance::Outliers(outliers));
    }
    if others.len() >= RUNS_MIN {
        found.extend(drift(others));
        let likeness = autocorrelation(others);
        // Chance alone makes a correlation of two deviations of 1/sqrt(n) now and then.
        if likeness > AUTOCORRELATION_MAX.max(2.6 / (others.len() as f64).sqrt()) {
            found.push(Disturbance::Moods(likeness));
        }
    }
    found
}

/// A last third that is not like the first one: by more than 2 %, and by more than four times what its own noise allows.
fn drift(values: &[f64]) -> Option<Disturbance> {
    let third = values.len() / 3;
    let (first, last) = (&values[..third], &values[values.len() - third..]);
    let (before, after) = (Summary::of(first)?.median, Summary::of(last)?.median);
    let noise = robust_deviation(first).max(robust_deviation(last)) / (third as f64).sqrt();
    let is_clear = (after - before).abs() > (4.0 * noise * 1.25).max(0.02 * before);
    (is_clear && before > 0.0).then(|| Disturbance::Drift(after / before))
}

/// The standard deviation as the middle half of the values has it.
pub fn robust_deviation(values: &[f64]) -> f64 {
    let Some(summary) = Summary::of(values) else { return 0.0 };
    let distances: Vec<f64> = values.iter().map(|value| (value - summary.median).abs()).collect();
    1.4826 * Summary::of(&distances).map_or(0.0, |distances| distances.median)
}

/// Returns the autocorrelation of neighbours: 0 for independent runs, 1 for a smooth series. Values are clipped at
/// three robust deviations, so that one outlying pair decides nothing.
pub fn autocorrelation(values: &[f64]) -> f64 {
    let Some(summary) = Summary::of(values) else { return 0.0 };
    let reach = 3.0 * robust_deviation(values);
    let cut: Vec<f64> = values.iter().map(|value| (value - summary.median).clamp(-reach, reach)).collect();
    let mean = cut.iter().sum::<f64>() / cut.len() as f64;
    let variance: f64 = cut.iter().map(|value| (value - mean).powi(2)).sum();
    let together: f64 = cut.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    if variance > 0.0 { together / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise without a course, of ±1 %.
    fn noise(count: usize) -> Vec<f64> {
        let mut state = 12_345_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1_u64 << 31) as f64
        };
        (0..count).map(|_| 1.0 + 0.02 * (next() - 0.5)).collect()
    }

    #[test]
    fn plain_noise_is_no_disturbance() {
        assert_eq!(disturbances(&noise(60)), []);
        assert_eq!(disturbances(&[1.0; 30]), []);
        assert_eq!(disturbances(&[1.0, 2.0]), []);
    }

    #[test]
    fn a_slow_first_run_is_named_apart() {
        let mut values = noise(20);
        values[0] = 1.5;
        let found = disturbances(&values);
        assert!(
            matches!(found[..], [Disturbance::SlowFirst(times)] if (times - 1.5).abs() < 0.02),
            "{found:?}"
        );
    }

    #[test]
    fn outliers_are_counted() {
        let mut values = noise(30);
        (values[7], values[19]) = (3.0, 2.0);
        assert_eq!(disturbances(&values), [Disturbance::Outliers(2)]);
    }

    #[test]
    fn drift_and_moods_are_seen() {
        let drifting: Vec<f64> =
            noise(60).iter().enumerate().map(|(at, value)| value + at as f64 / 200.0).collect();
        let found = disturbances(&drifting);
        assert!(found.iter().any(|it| matches!(it, Disturbance::Drift(times) if *times > 1.1)), "{found:?}");
        let moody: Vec<f64> = (0..60).map(|at| if at / 10 % 2 == 0 { 1.0 } else { 1.3 }).collect();
        let moody: Vec<f64> = moody.iter().zip(noise(60)).map(|(mood, noise)| mood * noise).collect();
        let found = disturbances(&moody);
        assert!(found.iter().any(|it| matches!(it, Disturbance::Moods(_))), "{found:?}");
    }
}

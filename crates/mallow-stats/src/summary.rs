//! What is typical of a series, and how it spreads.

/// A series in a few numbers, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample's standard deviation; none of a single value.
    pub deviation: Option<f64>,
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The 5th, 25th, 75th and 95th percentile, between neighbours in proportion.
    pub percentiles: [f64; 4],
}

/// The percentages of [`Summary::percentiles`].
pub const PERCENTILES: [u32; 4] = [5, 25, 75, 95];

impl Summary {
    /// The summary; none of nothing.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        let percentiles = PERCENTILES.map(|per_cent| percentile(&sorted, f64::from(per_cent) / 100.0));
        Some(Summary { count, mean, deviation, median: percentile(&sorted, 0.5), min, max, percentiles })
    }

    /// Returns the standard deviation of the mean, as a share of it: what `perf stat -r` prints after `+-`. `None`
    /// for a single value, or for zeros.
    pub fn relative_error(&self) -> Option<f64> {
        let deviation = self.deviation?;
        (self.mean != 0.0).then(|| deviation / (self.count as f64).sqrt() / self.mean)
    }
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_known_values() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.count, summary.mean, summary.median), (4, 2.5, 2.5));
        assert_eq!((summary.min, summary.max), (1.0, 4.0));
        assert!((summary.deviation.unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((summary.relative_error().unwrap() - (5.0_f64 / 3.0).sqrt() / 2.0 / 2.5).abs() < 1e-15);
        assert_eq!(summary.percentiles, [1.15, 1.75, 3.25, 3.8499999999999996]);
    }

    #[test]
    fn one_value_has_no_deviation_and_none_no_summary() {
        let one = Summary::of(&[7.0]).unwrap();
        assert_eq!((one.deviation, one.relative_error(), one.percentiles), (None, None, [7.0; 4]));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[0.0, 0.0]).unwrap().relative_error(), None);
    }
}

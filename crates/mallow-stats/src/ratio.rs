//! How much one series is of another, from runs that were made side by side.
//!
//! Sources: J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of Mathematical Statistics 34 (1963), for
//! the median of the averages of all pairs of differences; J. W. Tukey for its interval by the signed-rank statistic. The differences are those
//! of logarithms, so the estimate is of a ratio. A neighbour in time is the partner because a machine's mood lasts longer than a run.

use crate::signed_rank;

/// An estimate of `other / reference`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate: 0.5 if the other takes half.
    pub ratio: f64,
    /// The lower end of the interval; 0 where there are too few pairs for one.
    pub low: f64,
    /// The upper end, or infinity.
    pub high: f64,
    /// How many pairs it is based on.
    pub pairs: usize,
    /// The chance, at most, that the interval misses the truth.
    pub error: f64,
}

impl Ratio {
    /// The ratio of pairs (reference, other); none without a pair of positive values. Pairs with another value are left out, since they
    /// have no ratio.
    pub fn of_pairs(pairs: &[(f64, f64)], error: f64) -> Option<Ratio> {
        let is_positive = |(reference, other): &&(f64, f64)| *reference > 0.0 && *other > 0.0;
        let logs: Vec<f64> =
            pairs.iter().filter(is_positive).map(|(reference, other)| (other / reference).ln()).collect();
        if logs.is_empty() {
            return None;
        }
        let averages = averages(&logs);
        let count = averages.len();
        let middle = averages[(count - 1) / 2] / 2.0 + averages[count / 2] / 2.0;
        // The ends are the averages of that rank from either side: Walsh's averages below a value are as many as the ranks that speak
        // against it.
        let (low, high) = match signed_rank::end_rank(logs.len(), error) {
            Some(rank) => (averages[(rank - 1).min(count - 1)], averages[count - rank.min(count)]),
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Some(Ratio {
            ratio: middle.exp(),
            low: low.min(middle).exp(),
            high: high.max(middle).exp(),
            pairs: logs.len(),
            error,
        })
    }

    /// Returns whether there were enough pairs for an interval.
    pub fn has_interval(&self) -> bool {
        self.high.is_finite()
    }

    /// Half the interval's width, as a share of the estimate: 0.01 for ±1 %.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.ratio
    }
}

/// Walsh's averages: of each two values, each with itself too, sorted.
fn averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, one) in values.iter().enumerate() {
        averages.extend(values[index..].iter().map(|other| (one + other) / 2.0));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_median_of_all_averages() {
        // The logarithms' averages: 0, ln 2, ln 4 and what lies between; the middle one of six is between 1/2 ln 4 and ln 2.
        let ratio = Ratio::of_pairs(&[(1.0, 1.0), (1.0, 2.0), (1.0, 4.0)], 0.01).unwrap();
        assert!((ratio.ratio - 2.0).abs() < 1e-12);
        assert_eq!((ratio.pairs, ratio.has_interval()), (3, false));
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
    }

    #[test]
    fn nothing_positive_has_no_ratio() {
        assert_eq!(Ratio::of_pairs(&[], 0.01), None);
        assert_eq!(Ratio::of_pairs(&[(0.0, 1.0), (1.0, 0.0)], 0.01), None);
    }

    #[test]
    fn equal_pairs_have_an_interval_of_no_width() {
        let ratio = Ratio::of_pairs(&[(2.0, 3.0); 12], 0.01).unwrap();
        assert!((ratio.low - 1.5).abs() < 1e-12 && (ratio.high - 1.5).abs() < 1e-12);
        assert!(ratio.half_width() < 1e-12);
    }

    #[test]
    fn one_wild_pair_of_twelve_moves_nothing_far() {
        let mut pairs = vec![(1.0, 1.02); 11];
        pairs.push((1.0, 50.0));
        let ratio = Ratio::of_pairs(&pairs, 0.01).unwrap();
        assert!((ratio.ratio - 1.02).abs() < 1e-9, "{ratio:?}");
    }
}

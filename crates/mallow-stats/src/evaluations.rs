//! When a growing series may be looked at, and how sure an interval must be then.
//!
//! Whoever looks after each run and stops at the first clear result finds differences where none are. So the looks are at fixed numbers of
//! pairs, and the error that is allowed over the whole session is divided among them (Bonferroni), and among the commands that are compared.

/// The chance, at most, that anything is called faster or slower that is not.
pub const ERROR: f64 = 0.01;

/// After so many pairs an unlimited session is evaluated.
pub const PAIRS_AT_LOOKS: [usize; 10] = [12, 18, 27, 40, 60, 90, 135, 200, 300, 450];

/// The interim analyses of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluations {
    at: Vec<usize>,
    comparisons: usize,
    is_fixed: bool,
}

impl Evaluations {
    /// One analysis, after exactly so many pairs.
    pub fn fixed(pairs: usize, comparisons: usize) -> Evaluations {
        Evaluations { at: vec![pairs], comparisons: comparisons.max(1), is_fixed: true }
    }

    /// Analyses at the numbers of [`PAIRS_AT_LOOKS`] that are at least `min`, none beyond `max`, which is the last
    /// one.
    pub fn adaptive(min: usize, max: Option<usize>, comparisons: usize) -> Evaluations {
        let last = max.unwrap_or(PAIRS_AT_LOOKS[PAIRS_AT_LOOKS.len() - 1]).max(min);
        let mut at: Vec<usize> =
            PAIRS_AT_LOOKS.into_iter().filter(|pairs| *pairs >= min && *pairs < last).collect();
        at.push(last);
        Evaluations { at, comparisons: comparisons.max(1), is_fixed: false }
    }

    /// Returns after how many pairs an analysis is made, in rising order.
    pub fn at(&self) -> &[usize] {
        &self.at
    }

    /// After how many pairs the session ends, whatever was seen.
    pub fn last(&self) -> usize {
        self.at.last().copied().unwrap_or(0)
    }

    /// Returns whether there is no analysis before the end.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Returns the error of an interval at one analysis. One more analysis than planned is paid for if the time may
    /// be over between two.
    pub fn error(&self) -> f64 {
        let looks = if self.is_fixed { 1 } else { self.at.len() + 1 };
        ERROR / looks as f64 / self.comparisons as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_rank::end_rank;

    #[test]
    fn the_error_is_divided_among_looks_and_comparisons() {
        assert_eq!(Evaluations::fixed(10, 1).error(), 0.01);
        assert_eq!(Evaluations::fixed(10, 4).error(), 0.0025);
        assert!((Evaluations::adaptive(2, None, 1).error() - 0.01 / 11.0).abs() < 1e-15);
    }

    #[test]
    fn the_first_look_has_an_interval() {
        assert!(end_rank(PAIRS_AT_LOOKS[0], Evaluations::adaptive(0, None, 1).error()).is_some());
    }

    #[test]
    fn a_limit_is_the_last_look() {
        assert_eq!(Evaluations::adaptive(20, Some(50), 1).at(), [27, 40, 50]);
        assert_eq!(Evaluations::adaptive(0, Some(5), 1).at(), [5]);
        assert_eq!(Evaluations::adaptive(30, Some(5), 1).at(), [30]);
        assert_eq!(Evaluations::adaptive(600, None, 1).at(), [600]);
    }
}

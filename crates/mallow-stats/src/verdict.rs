//! What follows from a ratio with its interval.

use crate::Ratio;

/// How another command compares with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes less: the whole interval is below 1.
    Faster,
    /// It takes more: the whole interval is above 1.
    Slower,
    /// Whatever the difference is, it is smaller than the threshold: the whole interval lies within it.
    Same,
    /// It cannot be decided.
    Unclear,
}

impl Verdict {
    /// The verdict. `threshold` is a share, 0.01 for 1 %; what lies wholly within it is the same even where it is not exactly 1.
    pub fn of(ratio: Option<&Ratio>, threshold: f64) -> Verdict {
        let Some(ratio) = ratio.filter(|ratio| ratio.has_interval()) else { return Verdict::Unclear };
        let bound = 1.0 + threshold;
        if ratio.low >= 1.0 / bound && ratio.high <= bound {
            Verdict::Same
        } else if ratio.high < 1.0 {
            Verdict::Faster
        } else if ratio.low > 1.0 {
            Verdict::Slower
        } else {
            Verdict::Unclear
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
        }
    }
}

/// Returns whether more runs would not improve the result: the verdict is clear, and its interval is ±1 %, or a tenth
/// of the difference if that is large.
pub fn is_precise(ratio: &Ratio, threshold: f64) -> bool {
    const SHARE: f64 = 0.01;
    let wanted = SHARE.max((ratio.ratio - 1.0).abs() / 10.0);
    Verdict::of(Some(ratio), threshold) != Verdict::Unclear && ratio.half_width() <= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64) -> Ratio {
        Ratio { ratio: (low * high).sqrt(), low, high, pairs: 12, error: 0.01 }
    }

    #[test]
    fn the_whole_interval_decides() {
        for (low, high, verdict) in [
            (0.90, 0.99, Verdict::Faster),
            (1.001, 1.02, Verdict::Slower),
            (0.995, 1.005, Verdict::Same),
            (1.002, 1.008, Verdict::Same),
            (0.98, 1.005, Verdict::Unclear),
            (0.9, 1.1, Verdict::Unclear),
        ] {
            assert_eq!(Verdict::of(Some(&ratio(low, high)), 0.01), verdict, "{low} {high}");
        }
    }

    #[test]
    fn lack_of_data_is_never_the_same() {
        assert_eq!(Verdict::of(None, 0.01), Verdict::Unclear);
        let none = Ratio { ratio: 1.0, low: 0.0, high: f64::INFINITY, pairs: 3, error: 0.01 };
        assert_eq!(Verdict::of(Some(&none), 10.0), Verdict::Unclear);
    }

    #[test]
    fn a_large_difference_need_not_be_known_to_a_per_cent() {
        assert!(is_precise(&ratio(2.9, 3.1), 0.01));
        assert!(!is_precise(&ratio(1.01, 1.05), 0.01));
        assert!(is_precise(&ratio(1.015, 1.025), 0.01));
        assert!(!is_precise(&ratio(0.992, 1.009), 0.005));
    }
}

//! A part of what was sampled: how large it may really be, and how much larger than another.
//!
//! Wilson's interval for one part, Newcombe's (his method 10) for the difference of two: both hold for small parts and for none at all,
//! where the textbook's does not.

/// So many of so many samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// Samples of the part.
    pub part: u64,
    /// All samples.
    pub whole: u64,
}

/// The half width of an interval in standard deviations, for a confidence of 99 %.
const DEVIATIONS: f64 = 2.575_829_303_548_901;

impl Proportion {
    /// The part as it was sampled, 0 to 1; 0 of nothing.
    pub fn share(self) -> f64 {
        self.part.min(self.whole) as f64 / self.whole.max(1) as f64
    }

    /// Between which bounds the true part lies with 99 %; none without samples.
    pub fn interval(self) -> Option<(f64, f64)> {
        if self.whole == 0 {
            return None;
        }
        let (count, share, square) = (self.whole as f64, self.share(), DEVIATIONS * DEVIATIONS);
        let centre = (share + square / (2.0 * count)) / (1.0 + square / count);
        let variance = share * (1.0 - share) / count + square / (4.0 * count * count);
        let half = DEVIATIONS * variance.sqrt() / (1.0 + square / count);
        Some(((centre - half).max(0.0), (centre + half).min(1.0)))
    }

    /// Between which bounds it is more than another one with 99 %, in parts of the whole: negative where it is less. None without samples.
    pub fn more_than(self, before: Proportion) -> Option<(f64, f64)> {
        let ((low, high), (low_before, high_before)) = (self.interval()?, before.interval()?);
        let (share, share_before) = (self.share(), before.share());
        let difference = share - share_before;
        let down = ((share - low).powi(2) + (high_before - share_before).powi(2)).sqrt();
        let up = ((high - share).powi(2) + (share_before - low_before).powi(2)).sqrt();
        Some((difference - down, difference + up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: u64, whole: u64) -> Proportion {
        Proportion { part, whole }
    }

    #[track_caller]
    fn is_near((low, high): (f64, f64), expected: (f64, f64)) {
        let is_near = (low - expected.0).abs() < 5e-4 && (high - expected.1).abs() < 5e-4;
        assert!(is_near, "{low} {high}, expected {expected:?}");
    }

    #[test]
    fn intervals_are_wilsons_and_newcombes() {
        // By hand from the formula: 10 of 100, 0 of 50.
        is_near(of(10, 100).interval().unwrap(), (0.0461, 0.2036));
        is_near(of(0, 50).interval().unwrap(), (0.0, 0.1171));
        // The same part twice is no difference, whatever its size.
        let (low, high) = of(10, 100).more_than(of(10, 100)).unwrap();
        assert!(low < 0.0 && high > 0.0 && (low + high).abs() < 1e-12);
        assert_eq!((of(0, 0).interval(), of(1, 2).more_than(of(0, 0))), (None, None));
        // All of it is possible, more is not.
        assert_eq!(of(9, 9).interval().unwrap().1, 1.0);
    }

    /// The chance of so many of `whole` where the true part is `truth`, term by term.
    fn chances(whole: u64, truth: f64) -> Vec<f64> {
        let mut logs = vec![whole as f64 * (1.0 - truth).ln()];
        for part in 1..=whole {
            let before = logs[part as usize - 1];
            logs.push(before + ((whole - part + 1) as f64 / part as f64 * truth / (1.0 - truth)).ln());
        }
        logs.into_iter().map(f64::exp).collect()
    }

    #[test]
    fn the_true_part_lies_within_as_often_as_is_said() {
        for (whole, truth) in [(400, 0.02), (400, 0.3), (2000, 0.005), (2000, 0.5)] {
            let chances = chances(whole, truth);
            let within = |part: u64| {
                let (low, high) = of(part, whole).interval().unwrap();
                (low..=high).contains(&truth)
            };
            let sure: f64 = (0..=whole).filter(|part| within(*part)).map(|part| chances[part as usize]).sum();
            assert!(sure > 0.989, "{whole} {truth}: {sure}");
        }
    }

    #[test]
    fn two_samples_of_one_program_are_seldom_called_different() {
        for (whole, truth) in [(400, 0.05), (1000, 0.3)] {
            let chances = chances(whole, truth);
            let likely: Vec<u64> = (0..=whole).filter(|part| chances[*part as usize] > 1e-9).collect();
            let pairs = likely.iter().flat_map(|before| likely.iter().map(move |after| (*before, *after)));
            let alarms = pairs
                .filter(|(before, after)| of(*after, whole).more_than(of(*before, whole)).unwrap().0 > 0.0);
            let chance: f64 =
                alarms.map(|(before, after)| chances[before as usize] * chances[after as usize]).sum();
            assert!(chance < 0.0055, "{whole} {truth}: {chance}");
        }
    }
}

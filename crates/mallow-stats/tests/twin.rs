//! The interval of the ratio against its definition: all 2^n signs are tried.

use mallow_stats::Ratio;
use proptest::prelude::*;

/// The sum of the ranks of the positive differences, by counting.
fn rank_sum(differences: &[f64]) -> f64 {
    let rank = |one: f64| {
        let below = differences.iter().filter(|other| other.abs() < one.abs()).count();
        let equal = differences.iter().filter(|other| other.abs() == one.abs()).count();
        below as f64 + (equal + 1) as f64 / 2.0
    };
    differences.iter().filter(|difference| **difference > 0.0).map(|one| rank(*one)).sum()
}

/// The two-sided chance of a rank sum this far out, over all signs.
fn chance(differences: &[f64]) -> f64 {
    let n = differences.len();
    let middle = (n * (n + 1)) as f64 / 4.0;
    let seen = (rank_sum(differences) - middle).abs();
    let far = |signs: u32| {
        let with = |(at, value): (usize, &f64)| if signs >> at & 1 == 1 { value.abs() } else { -value.abs() };
        let flipped: Vec<f64> = differences.iter().enumerate().map(with).collect();
        (rank_sum(&flipped) - middle).abs() >= seen - 1e-9
    };
    (0..1_u32 << n).filter(|signs| far(*signs)).count() as f64 / f64::from(1_u32 << n)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// A ratio lies in the interval exactly when the test over all signs does not reject it.
    #[test]
    fn the_interval_holds_what_the_test_does_not_reject(
        others in prop::collection::vec(0.5_f64..2.0, 6..=10),
        error in prop::sample::select(vec![0.05, 0.1, 0.2]),
        candidate in 0.6_f64..1.6,
    ) {
        // Equal ranks have another distribution, which times measured in nanoseconds do not need.
        let others: Vec<f64> = others.iter().enumerate().map(|(at, it)| it * (1.0 + 0.001 * (at as f64).sqrt())).collect();
        let pairs: Vec<(f64, f64)> = others.iter().map(|other| (1.0, *other)).collect();
        let ratio = Ratio::of_pairs(&pairs, error).unwrap();
        let shifted: Vec<f64> = others.iter().map(|other| other.ln() - candidate.ln()).collect();
        let is_inside = ratio.low < candidate && candidate < ratio.high;
        prop_assert_eq!(is_inside, chance(&shifted) > error, "{:?} {}", ratio, candidate);
    }

    /// The estimate is the median of the averages of each two.
    #[test]
    fn the_estimate_is_what_its_definition_says(others in prop::collection::vec(0.5_f64..2.0, 1..=30)) {
        let mut averages = Vec::new();
        for i in 0..others.len() {
            for j in i..others.len() {
                averages.push((others[i] * others[j]).sqrt());
            }
        }
        averages.sort_by(f64::total_cmp);
        let middle = (averages[(averages.len() - 1) / 2] * averages[averages.len() / 2]).sqrt();
        let pairs: Vec<(f64, f64)> = others.iter().map(|other| (1.0, *other)).collect();
        let ratio = Ratio::of_pairs(&pairs, 0.01).unwrap();
        prop_assert!((ratio.ratio / middle - 1.0).abs() < 1e-9);
        prop_assert!(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
    }

    /// Who changes places sees the reciprocal.
    #[test]
    fn the_other_way_round_is_the_reciprocal(others in prop::collection::vec((0.5_f64..2.0, 0.5_f64..2.0), 8..=40)) {
        let turned: Vec<(f64, f64)> = others.iter().map(|(one, other)| (*other, *one)).collect();
        let (one, other) = (Ratio::of_pairs(&others, 0.01).unwrap(), Ratio::of_pairs(&turned, 0.01).unwrap());
        prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
        prop_assert!((one.low * other.high - 1.0).abs() < 1e-9);
    }
}

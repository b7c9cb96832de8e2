//! The null distribution of Wilcoxon's signed-rank statistic, and the rank at which an interval of a given error begins.
//!
//! Source: F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics 1 (1945): if the signs of n differences are fair coins, the
//! sum of the ranks of the positive ones is distributed as a sum over the subsets of 1..n, which is counted here exactly up to
//! [`EXACT_MAX`] and taken as normal above.

/// Above so many pairs the normal approximation differs from the exact one by less than one rank in a hundred.
pub const EXACT_MAX: usize = 120;

/// At which rank of the averages of pairs, counted from 1 at either side, an interval ends that misses the truth with a probability of at most
/// `error`; none where there are too few pairs for any interval of that error.
pub fn end_rank(pairs: usize, error: f64) -> Option<usize> {
    // The statistic may be 0 with probability 2^-n on each side: the widest interval there is.
    if pairs == 0 || 0.5_f64.powi(pairs.min(1000) as i32) > error / 2.0 {
        return None;
    }
    if pairs <= EXACT_MAX { Some(exact(pairs, error / 2.0)) } else { Some(normal(pairs, error / 2.0)) }
}

/// One above the largest k with P(T <= k) <= `tail`.
fn exact(pairs: usize, tail: f64) -> usize {
    let most = pairs * (pairs + 1) / 2;
    let mut chance = vec![0.0_f64; most + 1];
    chance[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    let mut below = 0.0;
    let mut rank = 0;
    for (sum, chance) in chance.iter().enumerate() {
        below += chance;
        if below > tail {
            break;
        }
        rank = sum + 1;
    }
    rank
}

fn normal(pairs: usize, tail: f64) -> usize {
    let n = pairs as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (mean - 0.5 - normal_quantile(1.0 - tail) * deviation).floor().max(0.0) as usize + 1
}

/// The standard normal quantile, by bisection of its tail, which is good to far more digits than a rank needs.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if normal_below(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The chance that a standard normal number is below `z`, by Simpson's rule from 0.
fn normal_below(z: f64) -> f64 {
    const STEPS: usize = 400;
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = z / STEPS as f64;
    let weight = |index: usize| match index {
        0 | STEPS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS).map(|index| weight(index) * density(index as f64 * step)).sum();
    0.5 + sum * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_the_one_of_tables() {
        for (probability, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.9995, 3.290_527)] {
            assert!((normal_quantile(probability) - z).abs() < 1e-5, "{probability}");
        }
    }

    #[test]
    fn critical_values_are_those_of_the_printed_tables() {
        // Two-sided 5 %: T <= 8 for 10, <= 52 for 20; 1 %: T <= 3 for 10, <= 37 for 20. The rank is the next one.
        for (pairs, error, critical) in [(10, 0.05, 8), (20, 0.05, 52), (10, 0.01, 3), (20, 0.01, 37)] {
            assert_eq!(end_rank(pairs, error), Some(critical + 1), "{pairs} {error}");
        }
    }

    #[test]
    fn few_pairs_have_no_interval() {
        assert_eq!((end_rank(0, 0.05), end_rank(7, 0.01)), (None, None));
        assert_eq!(end_rank(8, 0.01), Some(1));
        assert_eq!((end_rank(10, 0.0017), end_rank(11, 0.0017)), (None, Some(1)));
    }

    #[test]
    fn the_normal_rank_is_next_to_the_exact_one() {
        for error in [0.05, 0.01, 0.001] {
            let (exact, normal) = (exact(EXACT_MAX, error / 2.0), normal(EXACT_MAX, error / 2.0));
            assert!(exact.abs_diff(normal) * 50 <= exact, "{exact} {normal}");
        }
    }
}

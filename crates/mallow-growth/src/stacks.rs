//! Which stacks grow.
//!
//! Each stack's live bytes are a metric of their own. Hundreds of stacks are hundreds of tests, so Holm's step-down method
//! decides which of them rise beyond chance (S. Holm, 1979).

use crate::metric_trend::{MetricTrend, trend_of};
use crate::series::{Point, level, thinned};
use crate::theil_sen::{Z_995, theil_sen};
use crate::window::window_of;
use crate::{GrowingStack, Observation, Rules, Shape, StackSeries};

/// Stacks with less of the growth than this are ignored.
const SHARE_MIN: f64 = 0.01;

/// The chance that one stack that does not rise is among those named.
const ALPHA: f64 = 0.005;

/// Returns the stacks that grow, those that grow most first. `stacks` has one metric for each of the observations.
///
/// If no stack keeps growing, it returns those that rose, by their rise over the whole run: for a plateau, these
/// filled it. The shape of the trend distinguishes the two.
pub fn growing_stacks(
    observations: &[Observation],
    stacks: &[StackSeries],
    rules: &Rules,
) -> Vec<GrowingStack> {
    let growing = by_rise(observations, stacks, rules, Span::Window);
    let mut growing: Vec<GrowingStack> = growing
        .into_iter()
        .filter(|stack| matches!(stack.trend.shape, Shape::Grows | Shape::Doubles))
        .collect();
    if growing.is_empty() {
        growing = by_rise(observations, stacks, rules, Span::Run);
    }
    growing.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.id.cmp(&b.id)));
    growing
}

/// Over what a rise is measured.
#[derive(Clone, Copy, PartialEq)]
enum Span {
    Window,
    Run,
}

struct Candidate<'a> {
    stack: &'a StackSeries,
    points: Vec<Point>,
    rise: f64,
    /// Kendall's S over the whole run, in standard deviations.
    z: f64,
}

fn by_rise(
    observations: &[Observation],
    stacks: &[StackSeries],
    rules: &Rules,
    span: Span,
) -> Vec<GrowingStack> {
    let points = stacks.iter().map(|stack| series(observations, &stack.bytes));
    let rises: Vec<(&StackSeries, Vec<Point>, f64)> = stacks
        .iter()
        .zip(points)
        .map(|(stack, points)| {
            let rise = rise(&points, span);
            (stack, points, rise)
        })
        .filter(|(.., rise)| *rise > 0.0)
        .collect();
    let whole: f64 = rises.iter().map(|(.., rise)| rise).sum();
    let candidates = rises.into_iter().filter(|(.., rise)| *rise > SHARE_MIN * whole);
    let candidates = candidates.map(|(stack, points, rise)| {
        let z = theil_sen(&thinned(&points), Z_995).map_or(0.0, |slope| slope.z);
        Candidate { stack, points, rise, z }
    });
    let significant = holm(candidates.collect());
    // A stack may have a small part of a growth that is above the limit as a whole.
    let share = if span == Span::Window { SHARE_MIN } else { 1.0 };
    let least = rules.heap_per_request_min * share;
    significant.into_iter().map(|candidate| grown(observations, &candidate, least, whole)).collect()
}

/// The points of one stack.
pub(crate) fn series(observations: &[Observation], metrics: &[u64]) -> Vec<Point> {
    let point = |(seen, metric): (&Observation, &u64)| Point { x: seen.requests as f64, y: *metric as f64 };
    observations.iter().zip(metrics).map(point).collect()
}

fn rise(points: &[Point], span: Span) -> f64 {
    let start = if span == Span::Window { window_of(points) } else { 0 };
    let points = &points[start..];
    let edge = points.len().min(3);
    level(&points[points.len() - edge..]) - level(&points[..edge])
}

/// Returns those that rise significantly. The whole run is used: the window alone has too few points for many tests
/// at once.
fn holm(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    candidates.sort_by(|a, b| b.z.total_cmp(&a.z));
    let all = candidates.len();
    let beyond = candidates
        .iter()
        .enumerate()
        .take_while(|(index, candidate)| chance(candidate.z) <= ALPHA / (all - index) as f64);
    let kept = beyond.count();
    candidates.truncate(kept);
    candidates
}

/// An upper bound of the chance that a normal deviate exceeds `z`: the density over `z`.
fn chance(z: f64) -> f64 {
    if z <= 0.0 {
        return 1.0;
    }
    ((-z * z / 2.0).exp() / (z * (2.0 * std::f64::consts::PI).sqrt())).min(1.0)
}

fn grown(observations: &[Observation], candidate: &Candidate<'_>, least: f64, whole: f64) -> GrowingStack {
    let MetricTrend { trend, .. } = trend_of(&candidate.points, least);
    let blocks = series(observations, &candidate.stack.blocks);
    let start = window_of(&blocks);
    let slope = theil_sen(&thinned(&blocks[start..]), Z_995).map_or(0.0, |slope| slope.slope);
    GrowingStack { id: candidate.stack.id, trend, blocks_per_request: slope, share: candidate.rise / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(count: u64) -> Vec<Observation> {
        (4..4 + count).map(|i| Observation { requests: 1_000 * i, ..Observation::default() }).collect()
    }

    fn stack(id: u32, seen: &[Observation], bytes: impl Fn(f64) -> f64) -> StackSeries {
        let bytes: Vec<u64> = seen.iter().map(|seen| bytes(seen.requests as f64) as u64).collect();
        let blocks = bytes.iter().map(|bytes| bytes / 16).collect();
        StackSeries { id, bytes, blocks }
    }

    #[test]
    fn two_leaks_are_named_with_their_shares() {
        let seen = observations(20);
        let stacks = [
            stack(7, &seen, |_| 5e6),
            stack(8, &seen, |x| 4.0 * x),
            stack(9, &seen, |x| 12.0 * x),
            stack(10, &seen, |x| 9e6 * (1.0 - (-x / 900.0).exp())),
        ];
        let found = growing_stacks(&seen, &stacks, &Rules::default());
        let short: Vec<(u32, f64, f64)> =
            found.iter().map(|found| (found.id, found.trend.per_request, found.blocks_per_request)).collect();
        assert_eq!(short, [(9, 12.0, 0.75), (8, 4.0, 0.25)]);
        assert!((found[0].share - 0.75).abs() < 0.01 && (found[1].share - 0.25).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_doubling_vector_is_named() {
        let seen = observations(40);
        let found =
            growing_stacks(&seen, &[stack(3, &seen, |x| 16.0 * x.log2().ceil().exp2())], &Rules::default());
        assert_eq!((found.len(), found[0].id, found[0].trend.shape), (1, 3, Shape::Doubles));
    }

    #[test]
    fn of_a_plateau_those_that_filled_it_are_named() {
        let seen = observations(40);
        let stacks = [
            stack(1, &seen, |_| 5e6),
            stack(2, &seen, |x| 1e7 * (1.0 - (-x / 4_000.0).exp())),
            stack(3, &seen, |x| 9e6 - x),
        ];
        let found = growing_stacks(&seen, &stacks, &Rules::default());
        let short: Vec<(u32, Shape)> = found.iter().map(|found| (found.id, found.trend.shape)).collect();
        assert_eq!(short, [(2, Shape::RoseThenFlat)]);
    }

    #[test]
    fn noise_alone_lists_no_stack() {
        let seen = observations(20);
        // A hundred stacks of noise, from a generator with a full avalanche (SplitMix64's).
        let mixed = |seed: u64| {
            let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((seed ^ (seed >> 31)) >> 40) as f64
        };
        let noise = |id: u32| stack(id, &seen, move |x| mixed(u64::from(id) << 32 | x as u64));
        let stacks: Vec<StackSeries> = (0..100).map(noise).collect();
        assert_eq!(growing_stacks(&seen, &stacks, &Rules::default()), []);
    }

    #[test]
    fn the_bound_of_chance_is_one() {
        for (z, exact) in [(1.0, 0.158_66), (2.0, 0.022_75), (3.0, 0.001_349_9), (4.0, 3.167e-5)] {
            assert!(chance(z) >= exact && chance(z) < 1.6 * exact, "{z}");
        }
        assert_eq!(chance(-1.0), 1.0);
    }

    #[test]
    fn missing_metrics_are_no_panic() {
        let short = StackSeries { id: 1, bytes: vec![1, 2], blocks: Vec::new() };
        assert_eq!(growing_stacks(&observations(20), &[short], &Rules::default()).len(), 0);
        assert_eq!(growing_stacks(&[], &[StackSeries::default()], &Rules::default()), []);
    }
}

//! A leak that stands out of any noise: stacks that grow by a constant for each request, for the whole run.
//!
//! The live heap as a whole may be too restless to be judged: a compiler's arenas come and go by megabytes. The recorder knows each
//! stack by itself, and one that holds a straight line needs no judging of the others. It is asked for from a quarter of the requests
//! on, which is the octave before the window and the window: until then code may have been compiled anew, and calls from elsewhere. Two
//! things could make a straight line of a program that does not leak. A cache that is being filled looks like a leak to any
//! statistic, and is called one here as on the whole heap. And blocks may only have changed their owner: what one stack's blocks
//! give way to, another's are allocated for. So stacks that fall as steadily as these grow leave it open.

use crate::metric_trend::{MetricTrend, trend_of};
use crate::series::{Point, centre, noise_about, thinned};
use crate::stacks::series;
use crate::theil_sen::{Z_995, theil_sen};
use crate::window::window_of;
use crate::{Evidence, Observation, Rules, Shape, Trend};

/// With fewer observations, garbage that is thrown away every twenty iterations is a straight line.
const OBSERVATIONS_MIN: usize = 40;

/// A stack may have this part of the limit, when others have the rest.
const PART_MIN: f64 = 0.01;

/// How far observations may be from the line, as a part of the line's rise.
const NOISE_SHARE_MAX: f64 = 0.02;

/// No observation may lie farther off than this part of the rise: a line has no steps.
const FARTHEST_SHARE_MAX: f64 = 0.1;

/// The maximal ratio of the slopes of both halves.
const HALVES_RATIO_MAX: f64 = 1.15;

/// How much of the growth other stacks may release.
const OFFSET_MAX: f64 = 0.5;

/// How far observations may be from the line of an even fall, as a part of it.
const FALL_NOISE_SHARE_MAX: f64 = 0.1;

/// Stacks that grow by a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steady {
    /// The trend of all of them together.
    pub(crate) trend: Trend,
    /// Others fall while they grow, by so much that it may be the same memory.
    pub(crate) is_offset: bool,
}

/// Returns the stacks that grow by a constant, if together they grow beyond the limit.
pub(crate) fn steady(evidence: &Evidence, rules: &Rules) -> Option<Steady> {
    let stacks = &evidence.stacks;
    let axis: Vec<Observation> =
        stacks.observations.iter().filter_map(|at| evidence.observations.get(*at).copied()).collect();
    if evidence.observations.len() < OBSERVATIONS_MIN || axis.len() != stacks.observations.len() {
        return None;
    }
    let limit = rules.heap_per_request_min;
    let (straight, others): (Vec<_>, Vec<_>) =
        stacks.series.iter().partition(|stack| is_steady(&series(&axis, &stack.bytes), PART_MIN * limit));
    if straight.is_empty() {
        return None;
    }
    let sum = |at: usize| straight.iter().map(|stack| stack.bytes.get(at).copied().unwrap_or(0)).sum();
    let sums: Vec<u64> = (0..axis.len()).map(sum).collect();
    let MetricTrend { trend, requests, .. } = trend_of(&series(&axis, &sums), limit);
    let fall: f64 = others.iter().map(|stack| fall(&series(&axis, &stack.bytes))).sum();
    let is_offset = fall > OFFSET_MAX * trend.per_request * requests;
    (trend.shape == Shape::Grows).then_some(Steady { trend, is_offset })
}

/// Returns whether a stack grows by a constant. No test of chance is needed beside that: noise does not stay within a fiftieth of its own rise
/// for thirty observations.
fn is_steady(points: &[Point], least: f64) -> bool {
    let quarter = points.last().map_or(0.0, |last| last.x / 4.0);
    let late: Vec<Point> = points.iter().copied().filter(|point| point.x >= quarter).collect();
    // Of thousands of stacks, this leaves few for the rest.
    near_its_ends_line(&late, least)
        && is_straight(&thinned(&late))
        && trend_of(points, least).trend.shape == Shape::Grows
}

/// Returns whether it rises, and no point lies far from the line between its ends.
fn near_its_ends_line(points: &[Point], least: f64) -> bool {
    let edge = points.len().min(3);
    let (first, last) = (centre(&points[..edge]), centre(&points[points.len() - edge..]));
    let slope = (last.y - first.y) / (last.x - first.x);
    let far = |at: &Point| (at.y - first.y - slope * (at.x - first.x)).abs();
    slope > least && points.iter().map(far).fold(0.0, f64::max) <= FARTHEST_SHARE_MAX * (last.y - first.y)
}

/// Returns whether a series is a straight line with little noise.
fn is_straight(points: &[Point]) -> bool {
    let (Some(first), Some(last), Some(slope)) =
        (points.first(), points.last(), theil_sen(points, Z_995).map(|slope| slope.slope))
    else {
        return false;
    };
    let rise = slope * (last.x - first.x);
    rise > 0.0 && noise_about(points, slope) <= NOISE_SHARE_MAX * rise && has_equal_halves(points)
}

fn has_equal_halves(points: &[Point]) -> bool {
    let (early, late) = points.split_at(points.len() / 2);
    let slope = |half: &[Point]| theil_sen(half, Z_995).map_or(0.0, |slope| slope.slope);
    let ratio = slope(late) / slope(early);
    (1.0 / HALVES_RATIO_MAX..=HALVES_RATIO_MAX).contains(&ratio)
}

/// Returns by how much a stack falls over the window, if it does so all the time: what is replaced by a constant
/// growth falls as evenly, and random changes do not.
fn fall(points: &[Point]) -> f64 {
    let window = thinned(&points[window_of(points)..]);
    let (Some(first), Some(last), Some(slope)) = (window.first(), window.last(), theil_sen(&window, Z_995))
    else {
        return 0.0;
    };
    let fall = -slope.slope * (last.x - first.x);
    let is_even = slope.high < 0.0 && noise_about(&window, slope.slope) <= FALL_NOISE_SHARE_MAX * fall;
    if is_even { fall } else { 0.0 }
}

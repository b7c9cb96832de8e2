//! One metric's trend: does it grow with the requests?
//!
//! Growth is called growth when all of this holds in the window (the second half of the requests, [`crate::window`]): the
//! 99.5 % interval of its slope lies above the limit; it goes on in each third; it is not the work of two steps; nothing was given
//! back in between; and it goes on as fast as in the quarter before the window. The last one keeps out whatever slows
//! down: a logarithm's slope halves from one octave of requests to the next, an exponential warm-up's shrinks faster. A
//! staircase of doublings is left to [`crate::doubling`].
//!
//! A metric is flat when the interval lies below the limit and nothing rose since half of the requests. Whatever is neither is unclear,
//! and more iterations are asked for: doubt is never decided in favour of either side. Only of workers that are replaced more iterations give no longer
//! series, so there a metric is flat as far as it can be seen: [`trend_by_age`].

use crate::doubling::{Doubling, doubling};
use crate::floor;
use crate::sawtooth;
use crate::series::{Point, centre, level, noise_about, thinned};
use crate::theil_sen::{Slope, Z_995, theil_sen};
use crate::window::{WINDOW_MIN, window_of};
use crate::{Plateau, Shape, Trend};

/// With fewer observations growth is not called growth: there is nothing before the window to compare it with.
pub(crate) const GROWTH_OBSERVATIONS_MIN: usize = 20;

/// The slope of a later part may be as small as this part of the slope before it. A logarithm over two octaves has 0.5.
const KEEPS_UP: f64 = 0.75;

/// The earlier slope is known from few points. It may have been larger by this part of the distance to its interval's
/// upper end, ...
const UNCERTAINTY: f64 = 0.5;

/// ... and growth must not be this much slower than that.
const KEEPS_UP_IF_UNCERTAIN: f64 = 0.65;

/// The same between the thirds of the window, which are short and noisy. The exponential warm-ups that it is there for have less than 0.4.
const THIRDS_KEEP_UP: f64 = 0.5;

/// The two largest steps of the window may make up so much of its rise.
const STEPS_SHARE_MAX: f64 = 0.6;

/// A fall of this part of the window's rise means that something is collected now and then.
const DROP_SHARE_MAX: f64 = 0.5;

/// How many standard deviations a single difference must have to be no noise.
const SIGMAS: f64 = 5.0;

/// A rise below this is no warm-up worth a word.
const RISE_BYTES_MIN: f64 = 65_536.0;

/// By how much neighbours' differences understate the noise of a series whose neighbours are alike: 1 / sqrt(1 - 0.7).
const NEIGHBOURS: f64 = 1.826;

/// A judged metric.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricTrend {
    pub(crate) trend: Trend,
    /// Requests from the window's first observation to its last.
    pub(crate) requests: f64,
    pub(crate) plateau: Option<Plateau>,
    /// Its growth doubles with the number of requests ([`crate::doubling`]).
    pub(crate) doubles: bool,
    /// It rises with certainty, even if below the limit.
    pub(crate) creeps: bool,
    /// The smallest leak that would not have been passed, in units for each request.
    pub(crate) detectable: f64,
}

impl MetricTrend {
    pub(crate) fn grows(&self) -> bool {
        matches!(self.trend.shape, Shape::Grows | Shape::Doubles)
    }

    pub(crate) fn stands(&self) -> bool {
        matches!(self.trend.shape, Shape::Flat | Shape::RoseThenFlat | Shape::Falls)
    }

    pub(crate) fn is_unclear(&self) -> bool {
        self.trend.shape == Shape::Unclear
    }

    /// Growth over the window by its slope.
    pub(crate) fn growth(&self) -> f64 {
        self.trend.per_request * self.requests
    }
}

/// From so many looks at workers on, a metric that does not rise is flat as far as it can be seen.
const LOOKS_MIN: usize = 40;

/// The trend of a metric whose growth below `per_request_min` does not matter.
pub(crate) fn trend_of(points: &[Point], per_request_min: f64) -> MetricTrend {
    trend_within(points, per_request_min, 0.0)
}

/// The trend of a metric of workers over their age. A series ends where a worker ends, so noise of some kilobytes may be a slope above the limit however
/// many workers are looked at. If the interval then has zero in it, any leak above the limit and half its width would have been called growth, or
/// would at least have been in doubt: the metric is flat, if that is not above `sensitivity`.
pub(crate) fn trend_by_age(points: &[Point], per_request_min: f64, sensitivity: f64) -> MetricTrend {
    trend_within(points, per_request_min, sensitivity)
}

fn trend_within(points: &[Point], per_request_min: f64, sensitivity: f64) -> MetricTrend {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return MetricTrend::default() };
    let mut trend = Trend { first: first.y, last: last.y, ..Trend::default() };
    let start = window_of(points);
    let window = thinned(&points[start..]);
    let Some(slope) = theil_sen(&window, Z_995) else {
        return MetricTrend { trend, ..MetricTrend::default() };
    };
    (trend.per_request, trend.per_request_low, trend.per_request_high) = (slope.slope, slope.low, slope.high);
    trend.noise = noise_about(&window, slope.slope);
    let is_in_time = sensitivity == 0.0;
    // Neighbours of one age are different workers, and no climb and fall of one.
    let bounded = is_in_time
        .then(|| {
            sawtooth::bounds(&window, per_request_min).or_else(|| floor::stands(&window, per_request_min))
        })
        .flatten();
    let quiet = trend.noise;
    let mut look =
        Shape_ { points, start, window: &window, slope, per_request_min, sensitivity, quiet, bounded };
    look.quiet = trend.noise.min(NEIGHBOURS * neighbour_noise(&window));
    let doubling = look.doubling();
    let plateau = look.plateau();
    trend.shape = if look.grows() {
        Shape::Grows
    } else if let Some(found) = doubling {
        // The median of a staircase's slopes is that of its landings.
        (trend.per_request, trend.per_request_low, trend.per_request_high) =
            (found.per_request, found.low, found.high);
        Shape::Doubles
    } else if !look.is_flat() {
        Shape::Unclear
    } else if look.falls() {
        Shape::Falls
    } else if plateau.is_some() {
        Shape::RoseThenFlat
    } else {
        Shape::Flat
    };
    MetricTrend {
        trend,
        requests: look.requests(),
        plateau,
        doubles: doubling.is_some(),
        creeps: look.creeps(),
        detectable: look.detectable(),
    }
}

/// Returns the noise between neighbours: for a staircase too, where the distance from a line would be that of the
/// steps.
fn neighbour_noise(window: &[Point]) -> f64 {
    let differences: Vec<Point> =
        window.windows(2).map(|pair| Point { x: pair[1].x - pair[0].x, y: pair[1].y - pair[0].y }).collect();
    noise_about(&differences, 0.0) / std::f64::consts::SQRT_2
}

struct Shape_<'a> {
    points: &'a [Point],
    start: usize,
    /// Thinned.
    window: &'a [Point],
    slope: Slope,
    per_request_min: f64,
    /// The leak that may be missed where more iterations would not help; 0 where they would.
    sensitivity: f64,
    /// The smaller of two views of the noise.
    quiet: f64,
    /// For memory that rises and falls: the smallest leak that would have moved its bounds, or its floor.
    bounded: Option<f64>,
}

impl Shape_<'_> {
    fn requests(&self) -> f64 {
        match self.window {
            [first, .., last] => last.x - first.x,
            _ => 0.0,
        }
    }

    /// The rise since half of the requests, up to the very last observation: a step may have been taken just before the end.
    fn rise(&self) -> f64 {
        let before = &self.points[self.start.saturating_sub(2)..=self.start];
        self.points.last().map_or(0.0, |last| last.y) - level(before)
    }

    fn grows(&self) -> bool {
        self.points.len() >= GROWTH_OBSERVATIONS_MIN
            && self.slope.low > self.per_request_min
            && self.thirds_go_on()
            && !self.is_made_of_steps()
            && !self.drops()
            && self.keeps_up()
    }

    fn doubling(&self) -> Option<Doubling> {
        if self.points.len() < GROWTH_OBSERVATIONS_MIN || self.drops() {
            return None;
        }
        doubling(self.points, self.per_request_min, self.quiet)
    }

    fn thirds_go_on(&self) -> bool {
        let third = self.window.len() / 3;
        let rest = self.window.len() - third;
        let (first, second, third) =
            (centre(&self.window[..third]), centre(&self.window[third..rest]), centre(&self.window[rest..]));
        let (early, late) = (between(first, second), between(second, third));
        early > self.per_request_min / 2.0
            && late > self.per_request_min / 2.0
            && late > THIRDS_KEEP_UP * early
    }

    fn is_made_of_steps(&self) -> bool {
        let mut steps: Vec<f64> = self.window.windows(2).map(|pair| pair[1].y - pair[0].y).collect();
        let rise: f64 = steps.iter().sum();
        steps.sort_unstable_by(|a, b| b.total_cmp(a));
        steps.iter().take(2).sum::<f64>() > STEPS_SHARE_MAX * rise
    }

    /// Returns whether much was released at once, from a quarter of the requests on: memory that is collected now and
    /// then.
    fn drops(&self) -> bool {
        let quarter = self.quarter();
        let points = thinned(&self.points[quarter..]);
        let fall = points.windows(2).map(|pair| pair[0].y - pair[1].y).fold(0.0, f64::max);
        fall > SIGMAS * self.quiet && fall > DROP_SHARE_MAX * self.slope.slope.abs() * self.requests()
    }

    /// The first observation of the octave of requests before the window.
    fn quarter(&self) -> usize {
        let quarter = self.points.last().map_or(0.0, |last| last.x / 4.0);
        self.points.iter().position(|point| point.x >= quarter).unwrap_or(0).min(self.start)
    }

    /// Returns whether it grows as fast as in the octave before, or as in its own first half when warm-up took all of that octave.
    fn keeps_up(&self) -> bool {
        let before = &self.points[self.quarter()..=self.start];
        if before.len() >= 4 {
            return keeps_up(&self.slope, before);
        }
        let (early, late) = self.window.split_at(self.window.len() / 2);
        theil_sen(late, Z_995).is_some_and(|late| keeps_up(&late, early))
    }

    fn is_flat(&self) -> bool {
        self.is_level() || self.bounded.is_some() || self.is_flat_as_far_as_seen()
    }

    /// Flat by its slope.
    fn is_level(&self) -> bool {
        let has_small_slope = self.window.len() >= WINDOW_MIN && self.slope.high < self.per_request_min;
        has_small_slope && !self.is_unfinished()
    }

    fn is_unfinished(&self) -> bool {
        let rise = self.rise();
        rise > SIGMAS * self.quiet && rise > self.per_request_min * self.requests()
    }

    /// Without a sign of growth, and without the noise to hide one that matters.
    fn is_flat_as_far_as_seen(&self) -> bool {
        self.points.len() >= LOOKS_MIN
            && self.slope.low < 0.0
            && self.detectable() <= self.sensitivity
            && !self.is_unfinished()
    }

    /// A leak adds the same to each pair's slope, so it moves the estimate and both ends of its interval by exactly itself. It is
    /// called as soon as the lower end passes the limit, and clears the run no longer as soon as the upper one does.
    fn detectable(&self) -> f64 {
        let Slope { slope, low, high, .. } = self.slope;
        let by_slope = self.per_request_min + (slope - low).max(high - slope);
        let least = if self.is_level() { by_slope } else { self.bounded.unwrap_or(by_slope) };
        // Where zero in the interval is enough to pass, a leak has to lift its lower end above that.
        let passes_by_sight = self.points.len() >= LOOKS_MIN && by_slope <= self.sensitivity;
        if passes_by_sight { least.max(-low) } else { least }
    }

    fn falls(&self) -> bool {
        self.slope.high < 0.0
            && -self.slope.slope * self.requests() > SIGMAS * self.quiet.max(RISE_BYTES_MIN / SIGMAS)
    }

    fn creeps(&self) -> bool {
        let growth = self.slope.slope * self.requests();
        self.slope.low > 0.0 && growth > SIGMAS * self.quiet && growth > RISE_BYTES_MIN
    }

    fn plateau(&self) -> Option<Plateau> {
        let first = self.points.first()?;
        let late = level(&self.window[self.window.len() - self.window.len().div_ceil(3)..]);
        let rise_bytes = late - first.y;
        if rise_bytes <= SIGMAS * self.quiet || rise_bytes <= RISE_BYTES_MIN {
            return None;
        }
        let reached = self.points.iter().find(|point| point.y >= first.y + 0.9 * rise_bytes)?;
        Some(Plateau { rise_bytes, after_requests: reached.x as u64 })
    }
}

fn keeps_up(slope: &Slope, before: &[Point]) -> bool {
    let Some(before) = theil_sen(&thinned(before), Z_995) else { return false };
    let perhaps = before.slope + UNCERTAINTY * (before.high - before.slope);
    slope.slope > KEEPS_UP * before.slope && slope.slope > KEEPS_UP_IF_UNCERTAIN * perhaps
}

fn between(first: Point, second: Point) -> f64 {
    let slope = (second.y - first.y) / (second.x - first.x);
    if slope.is_finite() { slope } else { 0.0 }
}

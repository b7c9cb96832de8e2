//! Memory that is collected in batches: it climbs, falls, climbs again, so its slope says nothing. Its edges do.
//!
//! Each climb ends in a fall. The lowest level of a climb is the floor, as nearly as the observations met it, the highest one the
//! ceiling. If neither the lowest floors nor the highest ceilings of the window's second half lie above those of its
//! first, nothing accumulates.

use crate::series::Point;

/// A fall of this part of the whole range ends a climb.
const FALL_SHARE: f64 = 0.3;

/// Climbs in each half of the window that are needed.
const CLIMBS_MIN: usize = 4;

/// Whether the series climbs and falls between edges that rise by less than `per_request_min`.
pub(crate) fn is_bounded(window: &[Point], per_request_min: f64) -> bool {
    let (Some(first), Some(last)) = (window.first(), window.last()) else { return false };
    let climbs = climbs(window);
    if climbs.len() < 2 * CLIMBS_MIN {
        return false;
    }
    let (early, late) = climbs.split_at(climbs.len() / 2);
    // Half of the window lies between the middles of its halves.
    let allowed = per_request_min * (last.x - first.x) / 2.0;
    let floors = |climbs: &[&[Point]]| -> Vec<f64> { climbs.iter().map(|climb| lowest(climb)).collect() };
    let ceilings = |climbs: &[&[Point]]| -> Vec<f64> { climbs.iter().map(|climb| highest(climb)).collect() };
    is_steady(&floors(early), &floors(late), allowed, f64::min)
        && is_steady(&ceilings(early), &ceilings(late), allowed, f64::max)
}

/// Whether the edge of the later climbs is where that of the earlier ones is, and is known well enough to say so: of n edges met by
/// chance, the outermost lies about a (n + 1)-th of their spread inside the true one.
fn is_steady(early: &[f64], late: &[f64], allowed: f64, outermost: fn(f64, f64) -> f64) -> bool {
    let edge = |edges: &[f64]| edges.iter().copied().reduce(outermost).unwrap_or(0.0);
    let both: Vec<f64> = early.iter().chain(late).copied().collect();
    let spread =
        both.iter().copied().fold(f64::MIN, f64::max) - both.iter().copied().fold(f64::MAX, f64::min);
    let doubt = spread / (early.len().min(late.len()) + 1) as f64;
    doubt < allowed && (edge(late) - edge(early)).abs() < allowed
}

/// The series cut at its falls; the first and the last climb may have begun before the window, or go on after it.
fn climbs(window: &[Point]) -> Vec<&[Point]> {
    let range = highest(window) - lowest(window);
    window.chunk_by(|before, after| before.y - after.y <= FALL_SHARE * range).collect()
}

fn lowest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.y).fold(f64::MAX, f64::min)
}

fn highest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.y).fold(f64::MIN, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(level: impl Fn(f64) -> f64) -> Vec<Point> {
        (42..=84).map(|i| Point { x: 1_000.0 * f64::from(i), y: level(1_000.0 * f64::from(i)) }).collect()
    }

    fn teeth(x: f64) -> f64 {
        256.0 * (x % 2_700.0)
    }

    #[test]
    fn teeth_of_one_height_are_bounded() {
        assert!(is_bounded(&series(teeth), 4.0));
        assert!(!is_bounded(&series(|x| teeth(x) + 16.0 * x), 4.0), "they climb");
        assert!(!is_bounded(&series(|x| 20.0 * teeth(x)), 4.0), "too large to say so");
    }

    #[test]
    fn what_has_no_teeth_is_not_judged() {
        assert!(!is_bounded(&series(|x| x), 4.0));
        assert!(!is_bounded(&series(|_| 5.0), 4.0));
        assert!(!is_bounded(&[], 4.0));
    }
}

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

/// When the series climbs and falls between edges that rise by less than `per_request_min`: the smallest leak that would have moved
/// them by more. None when the edges rise, or are not known well enough.
pub(crate) fn bounds(window: &[Point], per_request_min: f64) -> Option<f64> {
    let (first, last) = (window.first()?, window.last()?);
    let climbs = climbs(window);
    if climbs.len() < 2 * CLIMBS_MIN {
        return None;
    }
    let (early, late) = climbs.split_at(climbs.len() / 2);
    // Half of the window lies between the middles of its halves.
    let half = (last.x - first.x) / 2.0;
    let allowed = per_request_min * half;
    let of = |climbs: &[&[Point]], edge: fn(&[Point]) -> f64| -> Vec<f64> {
        climbs.iter().map(|climb| edge(climb)).collect()
    };
    let floors = rise(&of(early, lowest), &of(late, lowest), allowed, f64::min)?;
    let ceilings = rise(&of(early, highest), &of(late, highest), allowed, f64::max)?;
    Some(((allowed - floors) / half).min((allowed - ceilings) / half))
}

/// Returns by how much the bound of the later climbs is above that of the earlier ones; `None` if that is more than
/// allowed, or not known well enough: of n bounds observed by chance, the outermost is about a (n + 1)-th of their
/// spread inside the true one.
fn rise(early: &[f64], late: &[f64], allowed: f64, outermost: fn(f64, f64) -> f64) -> Option<f64> {
    let edge = |edges: &[f64]| edges.iter().copied().reduce(outermost).unwrap_or(0.0);
    let both: Vec<f64> = early.iter().chain(late).copied().collect();
    let spread =
        both.iter().copied().fold(f64::MIN, f64::max) - both.iter().copied().fold(f64::MAX, f64::min);
    let uncertainty = spread / (early.len().min(late.len()) + 1) as f64;
    let rise = edge(late) - edge(early);
    (uncertainty < allowed && rise.abs() < allowed).then_some(rise)
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
        let detectable = bounds(&series(teeth), 4.0).expect("they are bounded");
        assert_eq!(bounds(&series(|x| teeth(x) + 16.0 * x), 4.0), None, "they climb");
        assert_eq!(bounds(&series(|x| 20.0 * teeth(x)), 4.0), None, "too large to say so");
        // A leak of the size that would have been seen is, and it is at most twice the limit.
        assert!((0.0..=8.0).contains(&detectable), "{detectable}");
        assert_eq!(bounds(&series(|x| teeth(x) + (detectable + 0.1) * x), 4.0), None);
    }

    #[test]
    fn what_has_no_teeth_is_not_judged() {
        assert_eq!(bounds(&series(|x| x), 4.0), None);
        assert_eq!(bounds(&series(|_| 5.0), 4.0), None);
        assert_eq!(bounds(&[], 4.0), None);
    }
}

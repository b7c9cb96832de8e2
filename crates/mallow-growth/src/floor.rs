//! Memory that comes and goes at odd times, but returns to the same level again and again: a just-in-time compiler's, over the heap of a
//! program that does not grow. A slope says nothing about it. Its floor does, for a leak lifts every level, the lowest too.
//!
//! The floor has to be known, or noise would make one: in each part of the window it is met three times, at levels so much alike that
//! only something that stands can have them. The last part is short and ends at the floor, so that a step just before the end is seen.

use crate::series::Point;

/// How often the floor has to be reached in each part.
const MET: usize = 3;

/// Observations in a third of the window that are needed.
const THIRD_MIN: usize = 6;

/// How far apart the lowest levels of a part may be, as a part of what growth at the limit would add over the window.
const ALIKE: f64 = 0.05;

/// The floor may rise at this part of the limit.
const RISE_MAX: f64 = 0.5;

/// If the floor is flat: returns the smallest leak that would have raised it by more than is allowed.
pub(crate) fn stands(window: &[Point], per_request_min: f64) -> Option<f64> {
    let (first, last) = (window.first()?, window.last()?);
    let third = window.len() / 3;
    if third < THIRD_MIN {
        return None;
    }
    let alike = ALIKE * per_request_min * (last.x - first.x);
    let end = window.len() - window.len().div_ceil(10).max(MET);
    let parts = [&window[..third], &window[third..2 * third], &window[end..]];
    let [early, middle, late] = parts.map(|part| floor(part, alike));
    let (early, middle, late) = (early?, middle?, late?);
    // A higher level at the very end may be a permanent step.
    if last.y - late.y > alike {
        return None;
    }
    let slopes = [(early, middle), (middle, late), (early, late)]
        .map(|(one, other)| (other.y - one.y) / (other.x - one.x));
    let may = RISE_MAX * per_request_min;
    slopes.iter().all(|slope| slope.abs() < may).then_some(per_request_min)
}

/// Returns the lowest level of a part, if it is reached often enough.
fn floor(part: &[Point], alike: f64) -> Option<Point> {
    let mut points = part.to_vec();
    points.sort_by(|one, other| one.y.total_cmp(&other.y));
    let lowest = *points.first()?;
    (points.get(MET - 1)?.y - lowest.y <= alike).then_some(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty observations of a heap of 8 MB, on which a compiler leaves up to 16 MB for some of them.
    fn window(leak: f64, phase: u64) -> Vec<Point> {
        let arenas = |i: u64| [0.0, 16e6, 0.0, 6e6, 0.0, 0.0, 1e6, 16e6, 0.0][((i + phase) / 3 % 9) as usize];
        let at = |i: u64| {
            let x = 2_000.0 * (40 + i) as f64;
            Point { x, y: 8e6 + leak * x + arenas(i) + 700.0 * (i * 7 % 3) as f64 }
        };
        (0..40).map(at).collect()
    }

    #[test]
    fn a_floor_that_is_met_again_and_again_stands() {
        let known = (0..27).filter(|phase| stands(&window(0.0, *phase), 4.0) == Some(4.0)).count();
        assert_eq!(known, 9, "of 27: the others end above their floor, or have just come back to it");
    }

    #[test]
    fn a_leak_raises_the_floor() {
        for phase in 0..27 {
            for leak in [4.0, 8.0, 122.0, -8.0] {
                assert_eq!(stands(&window(leak, phase), 4.0), None, "{leak} {phase}");
            }
        }
    }

    #[test]
    fn a_step_is_seen_wherever_it_lies() {
        let known = (0..27).find(|phase| stands(&window(0.0, *phase), 4.0).is_some()).expect("some do");
        for step in 0..40 {
            let mut stepped = window(0.0, known);
            stepped.iter_mut().skip(step).for_each(|at| at.y += 1e6);
            assert_eq!(stands(&stepped, 4.0).is_some(), step == 0, "{step}");
        }
    }

    #[test]
    fn random_noise_has_no_floor() {
        let mixed = |seed: u64| {
            let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            ((seed ^ (seed >> 27)) >> 40) as f64 / (1_u64 << 24) as f64
        };
        for run in 0..2_000_u64 {
            let at = |i: u64| Point { x: 2_000.0 * (40 + i) as f64, y: 2e6 * mixed(1_000 * run + i) };
            assert_eq!(stands(&(0..40).map(at).collect::<Vec<_>>(), 4.0), None, "{run}");
        }
    }

    #[test]
    fn few_observations_have_no_floor() {
        assert_eq!(stands(&window(0.0, 0)[..17], 4.0), None);
        assert_eq!(stands(&[], 4.0), None);
    }
}

//! Parts of a run's time.

/// A part of a run: from `from_us` on, up to but without `to_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub from_us: u64,
    /// The first moment that is too late; `u64::MAX` when nothing is.
    pub to_us: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window::ALL
    }
}

impl Window {
    /// The whole run.
    pub const ALL: Window = Window { from_us: 0, to_us: u64::MAX };

    /// Returns whether something that happened then is in it.
    #[inline]
    pub fn contains(&self, time_us: u64) -> bool {
        self.from_us <= time_us && time_us < self.to_us
    }
}

/// A stretch of time in slices of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    start_us: u64,
    length_us: u64,
    count: usize,
}

impl Slices {
    /// The time from `start_us` to `end_us` in at least one slice. Times outside belong to the first or the last one.
    pub fn new(start_us: u64, end_us: u64, count: usize) -> Slices {
        Slices { start_us, length_us: end_us.saturating_sub(start_us).max(1), count: count.max(1) }
    }

    /// Returns how many slices there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The whole stretch's first moment.
    pub fn start_us(&self) -> u64 {
        self.start_us
    }

    /// The whole stretch in microseconds, at least 1.
    pub fn length_us(&self) -> u64 {
        self.length_us
    }

    /// The slice that a moment is in.
    pub fn of(&self, time_us: u64) -> usize {
        let passed = u128::from(time_us.saturating_sub(self.start_us));
        let slice = passed * self.count as u128 / u128::from(self.length_us);
        slice.min(self.count as u128 - 1) as usize
    }

    /// Returns the first moment of a slice; for an index after the last slice, the end.
    pub fn begin_us(&self, slice: usize) -> u64 {
        let passed = (slice as u128 * u128::from(self.length_us)).div_ceil(self.count as u128);
        self.start_us.saturating_add(passed as u64)
    }
}

/// Advances through slices with time. Never backwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    slices: Slices,
    at: usize,
    /// The first moment of the next slice.
    next_us: u64,
}

impl Cursor {
    pub(super) fn new(slices: Slices) -> Cursor {
        let mut cursor = Cursor { slices, at: 0, next_us: 0 };
        cursor.step(0);
        cursor
    }

    /// The slice of an event.
    #[inline]
    pub(super) fn at(&mut self, time_us: u64) -> usize {
        if time_us >= self.next_us {
            self.step(self.slices.of(time_us));
        }
        self.at
    }

    #[cold]
    fn step(&mut self, at: usize) {
        self.at = at;
        let is_last = at + 1 >= self.slices.count;
        self.next_us = if is_last { u64::MAX } else { self.slices.begin_us(at + 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_in_the_slice_that_begins_before_it() {
        for (start, end, count) in [(0, 100, 7), (5, 6, 3), (1_000, 1_000, 4), (3, 2, 1), (7, 1_000_007, 70)]
        {
            let slices = Slices::new(start, end, count);
            let mut cursor = Cursor::new(slices);
            for time_us in 0..1_200 {
                let slice = slices.of(time_us);
                assert!(slice < count);
                assert!(slice == 0 || slices.begin_us(slice) <= time_us, "{slices:?} {time_us}");
                assert!(slice + 1 == count || time_us < slices.begin_us(slice + 1), "{slices:?} {time_us}");
                assert_eq!(cursor.at(time_us), slice, "{slices:?} {time_us}");
            }
        }
        let whole = Slices::new(0, u64::MAX, 100);
        assert_eq!((whole.of(u64::MAX), whole.begin_us(100)), (99, u64::MAX));
    }

    #[test]
    fn windows_side_by_side_share_no_moment() {
        let (before, after) = (Window { from_us: 2, to_us: 5 }, Window { from_us: 5, to_us: 9 });
        let inside = |window: Window| (0..12).filter(|&time| window.contains(time)).collect::<Vec<u64>>();
        assert_eq!((inside(before), inside(after)), (vec![2, 3, 4], vec![5, 6, 7, 8]));
    }
}

//! Room near an object, for code that is reached from there with a jump of 32 bits.

use crate::stack_range::{Mapping, each_mapping};
use crate::sys;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The maximal distance: the range of a relative jump, less the maximal size of an object and its neighbours.
const REACH: usize = (2 << 30) - (256 << 20);
/// The lowest address that most kernels map for a user process.
const LOWEST: usize = 64 << 10;

/// Room reserved beside the libraries that are loaded at the start. One that is loaded later may fill the last gap
/// between them and the memory that is shared with mallow, which is larger than the range of a jump.
const RESERVED_BYTES: usize = 1 << 20;
static RESERVED_START: AtomicUsize = AtomicUsize::new(0);
static RESERVED_USED: AtomicUsize = AtomicUsize::new(RESERVED_BYTES);

/// Keeps addresses free, before that memory is mapped.
pub(crate) fn reserve() {
    let start = sys::map_reserved(RESERVED_BYTES) as usize;
    if start != 0 {
        RESERVED_START.store(start, Ordering::Relaxed);
        RESERVED_USED.store(0, Ordering::Relaxed);
    }
}

/// So many bytes, whole pages, of what was kept free, for the caller to map something over; none when they are used up or too far from
/// `object`.
pub(crate) fn take_reserved(object: usize, bytes: usize) -> Option<usize> {
    let used = RESERVED_USED.load(Ordering::Relaxed);
    let at = RESERVED_START.load(Ordering::Relaxed) + used;
    if used + bytes > RESERVED_BYTES || at.abs_diff(object) >= REACH {
        return None;
    }
    RESERVED_USED.store(used + bytes, Ordering::Relaxed);
    Some(at)
}

/// Returns the free address nearest to `object` with room for so many bytes, whole pages; `None` if there is none
/// near enough. `below_only`: an executable's heap grows after it.
pub(crate) fn nearest(object: usize, bytes: usize, below_only: bool) -> Option<usize> {
    let fd = sys::open_read(c"/proc/self/maps");
    if fd < 0 {
        return None;
    }
    let mut search = Search { object, bytes, below_only, gap_start: LOWEST, found: None };
    each_mapping(fd as i32, |mapping| search.add(mapping));
    sys::close(fd as i32);
    search.found
}

struct Search {
    object: usize,
    bytes: usize,
    below_only: bool,
    /// Behind the last mapping.
    gap_start: usize,
    found: Option<usize>,
}

impl Search {
    /// Looks at the gap below a mapping; true when those that follow are farther away than what was found.
    fn add(&mut self, mapping: Mapping) -> bool {
        let (start, end) = (self.gap_start, mapping.start);
        self.gap_start = mapping.end.max(start);
        // The main thread's stack grows down.
        if mapping.is_main_stack || end.saturating_sub(start) < self.bytes {
            return self.is_over();
        }
        let is_below = end <= self.object;
        let candidate = if is_below { end - self.bytes } else { start };
        let distance = candidate.abs_diff(self.object);
        let is_nearer = self.found.is_none_or(|found| distance < found.abs_diff(self.object));
        if distance < REACH && is_nearer && (is_below || !self.below_only) {
            self.found = Some(candidate);
        }
        self.is_over()
    }

    fn is_over(&self) -> bool {
        let reached = self.gap_start.saturating_sub(self.object);
        reached >= REACH || (self.below_only && reached > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn found(mappings: &[(usize, usize)], object: usize, below_only: bool) -> Option<usize> {
        let mut search = Search { object, bytes: 2 * PAGE, below_only, gap_start: LOWEST, found: None };
        for (start, end) in mappings {
            let mapping = Mapping { start: start * PAGE, end: end * PAGE, ..Mapping::default() };
            if search.add(mapping) {
                break;
            }
        }
        search.found
    }

    #[test]
    fn the_nearest_gap_that_is_large_enough_is_found_below_and_above() {
        let mappings = [(100, 200), (205, 300), (301, 400), (410, 500)];
        assert_eq!(found(&mappings, 205 * PAGE, false), Some(203 * PAGE));
        assert_eq!(found(&mappings, 301 * PAGE, false), Some(203 * PAGE));
        assert_eq!(found(&mappings, 399 * PAGE, false), Some(400 * PAGE));
        assert_eq!(found(&mappings, 399 * PAGE, true), Some(203 * PAGE));
        // Nothing is mapped below an executable that is not position independent.
        assert_eq!(found(&[(1024, 1100)], 1024 * PAGE, true), Some(1022 * PAGE));
    }

    #[test]
    fn reserved_space_is_used_once_and_only_for_near_objects() {
        assert_eq!(take_reserved(0, PAGE), None, "nothing is reserved yet");
        reserve();
        let start = RESERVED_START.load(Ordering::Relaxed);
        assert_eq!(take_reserved(start - REACH - PAGE, PAGE), None);
        assert_eq!(take_reserved(start + REACH / 2, PAGE), Some(start));
        assert_eq!(take_reserved(start, RESERVED_BYTES - PAGE), Some(start + PAGE));
        assert_eq!(take_reserved(start, PAGE), None);
    }

    #[test]
    fn a_gap_that_is_too_far_is_not_used() {
        let far = REACH / PAGE;
        assert_eq!(found(&[(20, 30 + far), (60 + far, 70 + far)], 20 * PAGE, true), Some(18 * PAGE));
        assert_eq!(found(&[(16, 30 + far), (60 + far, 70 + far)], 16 * PAGE, false), None);
    }
}

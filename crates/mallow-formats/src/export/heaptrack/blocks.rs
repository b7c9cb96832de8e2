//! Computes blocks that add up to a site's sums.
//!
//! A block was live at the peak and at the end, at one of them, or at neither. The sums say how many blocks and bytes
//! were live at each moment, not how many at both. That number is chosen as large as the sums allow.

use mallow_profile::{Availability, SiteTotals};

/// A number of blocks with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
}

/// A site's blocks by the moments at which they were live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    /// At the peak and at the end.
    pub(super) both: Sum,
    /// At the peak only.
    pub(super) peak: Sum,
    /// At the end only.
    pub(super) end: Sum,
    /// At neither.
    pub(super) neither: Sum,
    /// The sums contradict each other, so some were increased here.
    pub(super) is_forced: bool,
}

impl Sum {
    /// Returns at least one block if there are bytes.
    fn with_a_block(blocks: u64, bytes: u64) -> Sum {
        Sum { blocks: blocks.max(u64::from(bytes > 0)), bytes }
    }

    fn checked_sub(self, other: Sum) -> Option<Sum> {
        let blocks = self.blocks.checked_sub(other.blocks)?;
        let bytes = self.bytes.checked_sub(other.bytes)?;
        (blocks > 0 || bytes == 0).then_some(Sum { blocks, bytes })
    }

    fn saturating_add(self, other: Sum) -> Sum {
        Sum {
            blocks: self.blocks.saturating_add(other.blocks),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl Blocks {
    /// Returns the blocks of a site's metrics. What is not known counts as 0.
    pub(super) fn of(totals: &SiteTotals, known: &Availability) -> Blocks {
        let if_known = |known, sum| if known { sum } else { Sum::default() };
        let peak = if_known(known.peak, Sum::with_a_block(totals.peak_blocks, totals.peak_bytes));
        let end = if_known(known.leaked, Sum::with_a_block(totals.leaked_blocks, totals.leaked_bytes));
        let live = peak.saturating_add(end);
        if !known.allocations && !known.bytes {
            // The minimum: those live at one of the moments.
            let blocks = split(live, peak, end).unwrap_or_default();
            return Blocks { neither: Sum::default(), ..blocks };
        }
        let all = Sum::with_a_block(totals.allocations, totals.bytes);
        split(all, peak, end).unwrap_or_else(|| {
            let bytes = all.bytes.max(live.bytes);
            let blocks = live.blocks.saturating_add(u64::from(bytes > live.bytes)).max(all.blocks);
            let neither = Sum { blocks: blocks - live.blocks, bytes: bytes - live.bytes };
            Blocks { both: Sum::default(), peak, end, neither, is_forced: true }
        })
    }

    /// Returns all of them.
    pub(super) fn allocations(&self) -> u64 {
        let live = self.both.saturating_add(self.peak).saturating_add(self.end);
        live.saturating_add(self.neither).blocks
    }
}

/// Finds blocks for both moments; `None` if the sums contradict each other.
fn split(all: Sum, peak: Sum, end: Sum) -> Option<Blocks> {
    let most = peak.blocks.min(end.blocks);
    let least = peak.blocks.saturating_add(end.blocks).saturating_sub(all.blocks);
    // Whether a number is possible depends only on which groups are empty, so these represent all numbers in between.
    [most, most.saturating_sub(1), least.saturating_add(1), least]
        .into_iter()
        .filter(|&blocks| blocks >= least && blocks <= most)
        .find_map(|blocks| with_both(blocks, all, peak, end))
}

/// As [`split`], with a given number of blocks live at both moments: with the maximum or the minimum of bytes.
fn with_both(blocks: u64, all: Sum, peak: Sum, end: Sum) -> Option<Blocks> {
    let most = if blocks == 0 { 0 } else { peak.bytes.min(end.bytes) };
    let least = peak.bytes.saturating_add(end.bytes).saturating_sub(all.bytes);
    [most, least].into_iter().find_map(|bytes| {
        let both = Sum { blocks, bytes };
        let (peak, end_alone) = (peak.checked_sub(both)?, end.checked_sub(both)?);
        let neither = all.checked_sub(both)?.checked_sub(peak)?.checked_sub(end_alone)?;
        (blocks > 0 || bytes == 0).then_some(Blocks { both, peak, end: end_alone, neither, is_forced: false })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(blocks: u64, bytes: u64) -> Sum {
        Sum { blocks, bytes }
    }

    fn totals(all: Sum, peak: Sum, end: Sum) -> SiteTotals {
        SiteTotals {
            allocations: all.blocks,
            bytes: all.bytes,
            peak_blocks: peak.blocks,
            peak_bytes: peak.bytes,
            leaked_blocks: end.blocks,
            leaked_bytes: end.bytes,
            ..SiteTotals::default()
        }
    }

    #[test]
    fn most_of_what_leaks_was_there_at_the_peak() {
        let blocks = Blocks::of(&totals(sum(10, 1000), sum(5, 600), sum(3, 300)), &Availability::ALL);
        assert_eq!((blocks.both, blocks.peak, blocks.end), (sum(3, 300), sum(2, 300), sum(0, 0)));
        assert_eq!((blocks.neither, blocks.is_forced), (sum(5, 400), false));
        // One large block at the peak, one small block at the end: they cannot be the same.
        let blocks = Blocks::of(&totals(sum(2, 1010), sum(1, 1000), sum(1, 10)), &Availability::ALL);
        assert_eq!((blocks.both, blocks.peak, blocks.end), (sum(0, 0), sum(1, 1000), sum(1, 10)));
    }

    #[test]
    fn sums_that_contradict_each_other_are_raised() {
        let blocks = Blocks::of(&totals(sum(1, 10), sum(3, 30), sum(0, 5)), &Availability::ALL);
        assert_eq!((blocks.peak, blocks.end, blocks.is_forced), (sum(3, 30), sum(1, 5), true));
        assert_eq!(blocks.allocations(), 4);
        let damaged = sum(u64::MAX, u64::MAX);
        assert!(Blocks::of(&totals(sum(0, 7), damaged, damaged), &Availability::ALL).allocations() > 0);
    }

    #[test]
    fn without_allocations_there_are_those_that_are_seen() {
        let known = Availability { allocations: false, bytes: false, ..Availability::ALL };
        let blocks = Blocks::of(&totals(sum(0, 0), sum(5, 600), sum(3, 300)), &known);
        assert_eq!((blocks.allocations(), blocks.is_forced), (5, false));
    }

    proptest! {
        /// Whatever blocks a site had, blocks with the same sums are found.
        #[test]
        fn real_sums_are_met(sizes in prop::collection::vec((0u64..50, any::<bool>(), any::<bool>()), 0..12)) {
            let of = |keep: &dyn Fn(bool, bool) -> bool| {
                sizes.iter().filter(|(_, peak, end)| keep(*peak, *end)).fold(sum(0, 0), |all, (size, ..)| {
                    sum(all.blocks + 1, all.bytes + size)
                })
            };
            let (all, peak, end) = (of(&|_, _| true), of(&|peak, _| peak), of(&|_, end| end));
            let blocks = Blocks::of(&totals(all, peak, end), &Availability::ALL);
            prop_assert!(!blocks.is_forced);
            prop_assert_eq!(blocks.both.saturating_add(blocks.peak), peak);
            prop_assert_eq!(blocks.both.saturating_add(blocks.end), end);
            prop_assert_eq!(peak.saturating_add(blocks.end).saturating_add(blocks.neither), all);
            for group in [blocks.both, blocks.peak, blocks.end, blocks.neither] {
                prop_assert!(group.blocks > 0 || group.bytes == 0);
            }
        }
    }
}

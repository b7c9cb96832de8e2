//! How often each byte of a site's blocks was accessed, as DHAT counts it.
//!
//! Only blocks of one size have such counts: those of a site whose blocks have several sizes are given up, as DHAT and its viewer do. They are kept
//! as runs of equal counts, since a file spells them so and a run may stand for a thousand bytes.

use mallow_stacks::{ProcessIndex, StackId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The largest block whose bytes are counted one by one: DHAT's own limit for blocks that a program asks for.
const BLOCK_BYTES_MAX: u64 = 25 << 10;

/// How often each byte of a block was accessed, added over all blocks of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteAccesses {
    /// The number of bytes, and the count that each of them has.
    runs: Vec<(u32, u32)>,
}

/// The counts of all sites that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteAccesses {
    /// None for a site whose blocks have several sizes.
    sites: BTreeMap<(ProcessIndex, Option<StackId>), Option<ByteAccesses>>,
}

impl ByteAccesses {
    /// A count from which on DHAT counts no more.
    pub const COUNT_MAX: u32 = 0xffff;

    /// Returns the counts of runs, each a number of bytes and their count; none if they come to more bytes than a block may have.
    pub fn of_runs(runs: impl IntoIterator<Item = (u64, u32)>) -> Option<ByteAccesses> {
        let mut accesses = ByteAccesses::default();
        let mut bytes_left = BLOCK_BYTES_MAX;
        for (bytes, count) in runs {
            bytes_left = bytes_left.checked_sub(bytes)?;
            accesses.push(bytes as u32, count);
        }
        Some(accesses)
    }

    /// Returns the runs: a number of bytes and the count of each.
    pub fn runs(&self) -> &[(u32, u32)] {
        &self.runs
    }

    /// Returns the count of each byte, in order.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|(bytes, count)| std::iter::repeat_n(*count, *bytes as usize))
    }

    /// Returns the sums of two sites; none if their blocks differ in size.
    pub fn and(&self, other: &ByteAccesses) -> Option<ByteAccesses> {
        let bytes = |accesses: &ByteAccesses| accesses.runs.iter().map(|run| u64::from(run.0)).sum::<u64>();
        if bytes(self) != bytes(other) {
            return None;
        }
        let mut sum = ByteAccesses::default();
        for (one, other) in self.counts().zip(other.counts()) {
            sum.push(1, one.saturating_add(other).min(ByteAccesses::COUNT_MAX));
        }
        Some(sum)
    }

    fn push(&mut self, bytes: u32, count: u32) {
        let count = count.min(ByteAccesses::COUNT_MAX);
        match self.runs.last_mut() {
            Some(last) if last.1 == count => last.0 += bytes,
            _ if bytes > 0 => self.runs.push((bytes, count)),
            _ => {}
        }
    }
}

impl SiteAccesses {
    /// Adds the counts of a part of a site's blocks; none where they have several sizes.
    pub fn add(&mut self, process: ProcessIndex, stack: Option<StackId>, accesses: Option<ByteAccesses>) {
        match self.sites.entry((process, stack)) {
            Entry::Vacant(entry) => {
                entry.insert(accesses);
            }
            Entry::Occupied(mut entry) => {
                let sum = match (entry.get(), &accesses) {
                    (Some(one), Some(other)) => one.and(other),
                    _ => None,
                };
                entry.insert(sum);
            }
        }
    }

    /// Returns the counts of a site.
    pub fn of(&self, process: ProcessIndex, stack: Option<StackId>) -> Option<&ByteAccesses> {
        self.sites.get(&(process, stack))?.as_ref()
    }

    /// Gives processes new numbers, and drops those without one.
    pub(crate) fn renumber(&mut self, numbers: &[Option<ProcessIndex>]) {
        let sites = std::mem::take(&mut self.sites).into_iter();
        let kept = sites.filter_map(|((process, stack), accesses)| {
            Some(((numbers.get(process.0 as usize).copied().flatten()?, stack), accesses))
        });
        self.sites = kept.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[(u64, u32)]) -> Option<ByteAccesses> {
        ByteAccesses::of_runs(runs.iter().copied())
    }

    #[test]
    fn counts_of_blocks_of_one_size_add_up_byte_by_byte() {
        let (one, other) = (of(&[(2, 1), (2, 0)]).unwrap(), of(&[(1, 5), (3, 65_535)]).unwrap());
        assert_eq!(one.counts().collect::<Vec<_>>(), [1, 1, 0, 0]);
        assert_eq!(one.and(&other).unwrap().runs(), [(1, 6), (3, 65_535)]);
        assert_eq!(one.and(&of(&[(5, 1)]).unwrap()), None);
    }

    #[test]
    fn a_site_of_several_sizes_has_no_counts_whatever_comes_after() {
        let mut sites = SiteAccesses::default();
        for (part, expected) in [(of(&[(4, 1)]), of(&[(4, 1)])), (of(&[(8, 1)]), None), (of(&[(4, 1)]), None)]
        {
            sites.add(ProcessIndex(0), None, part);
            assert_eq!(sites.of(ProcessIndex(0), None), expected.as_ref());
        }
    }

    #[test]
    fn a_run_that_no_block_can_have_takes_no_memory() {
        assert_eq!(of(&[(1 << 60, 1), (1 << 60, 1)]), None);
        assert_eq!(of(&[(25_600, 1)]).unwrap().runs(), [(25_600, 1)]);
        assert_eq!(of(&[(25_600, 1), (1, 2)]), None);
    }

    #[test]
    fn processes_that_are_left_out_take_their_counts_with_them() {
        let mut sites = SiteAccesses::default();
        (0..2).for_each(|process| sites.add(ProcessIndex(process), None, of(&[(u64::from(process) + 1, 7)])));
        sites.renumber(&[None, Some(ProcessIndex(0))]);
        assert_eq!(sites.of(ProcessIndex(0), None).unwrap().runs(), [(2, 7)]);
        assert_eq!(sites.of(ProcessIndex(1), None), None);
    }
}

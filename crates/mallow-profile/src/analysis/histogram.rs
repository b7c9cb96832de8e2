//! How large blocks are and how long they live, in buckets that double.

use super::block::{Block, Death};
use mallow_base::add_fields;

/// Buckets: one for 0, then one for each power of two up to 2^64.
const BUCKETS: usize = 66;

/// The bucket of a size in bytes or of a time in microseconds: 0 alone, 1 alone, 2, 3–4, 5–8, …, each up to a power of two.
///
/// Sizes that are powers of two are the commonest, and 64 belongs with 33 rather than with 127: allocators round up.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    match value {
        0 => 0,
        _ => 65 - (value - 1).leading_zeros() as usize,
    }
}

/// The least and the greatest value of a bucket.
pub fn bucket_range(bucket: usize) -> (u64, u64) {
    match bucket {
        0 => (0, 0),
        1 => (1, 1),
        2..65 => ((1 << (bucket - 2)) + 1, 1 << (bucket - 1)),
        _ => ((1 << 63) + 1, u64::MAX),
    }
}

/// The contents of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Blocks.
    pub blocks: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

/// Sizes of all blocks that were allocated in the window, and lifetimes of those of them that were freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// By [`bucket_of`] the size.
    pub sizes: Vec<Bucket>,
    /// By [`bucket_of`] the lifetime in microseconds.
    pub lifetimes: Vec<Bucket>,
    /// Blocks that were never freed.
    pub never_freed: Bucket,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let empty = vec![Bucket::default(); BUCKETS];
        Histogram { sizes: empty.clone(), lifetimes: empty, never_freed: Bucket::default() }
    }
}

impl Bucket {
    fn add(&mut self, other: &Bucket) {
        add_fields!(self, other; blocks, bytes);
    }

    #[inline]
    fn count(&mut self, block: &Block) {
        self.blocks += 1;
        self.bytes = self.bytes.wrapping_add(block.size);
    }
}

impl Histogram {
    /// Adds another process's blocks.
    pub fn add(&mut self, other: &Histogram) {
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(own, other)| own.add(other));
        self.lifetimes.iter_mut().zip(&other.lifetimes).for_each(|(own, other)| own.add(other));
        self.never_freed.add(&other.never_freed);
    }

    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        self.sizes[bucket_of(block.size)].count(block);
    }

    #[inline]
    pub(super) fn died(&mut self, block: &Block, death: &Death) {
        self.lifetimes[bucket_of(death.lifetime_us(block))].count(block);
    }

    pub(super) fn lives(&mut self, block: &Block) {
        self.never_freed.count(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_at_powers_of_two() {
        let ranges: Vec<(u64, u64)> = (0..6).map(bucket_range).collect();
        assert_eq!(ranges, [(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16)]);
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, 64, 65].map(bucket_of), [0, 1, 2, 3, 3, 4, 4, 5, 7, 8]);
        for bucket in 0..BUCKETS {
            let (least, greatest) = bucket_range(bucket);
            assert_eq!((bucket_of(least), bucket_of(greatest)), (bucket, bucket));
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}

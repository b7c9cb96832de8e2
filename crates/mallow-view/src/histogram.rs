//! Sizes and lifetimes as rows of a histogram.

use mallow_profile::analysis::{Bucket, Findings, Histogram, bucket_range};

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// The least value that falls into it: bytes or microseconds.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
    /// Blocks and their bytes.
    pub bucket: Bucket,
}

/// Both histograms, from the first bucket with a block to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histograms {
    /// By requested bytes.
    pub sizes: Vec<HistogramRow>,
    /// By microseconds from allocation to free.
    pub lifetimes: Vec<HistogramRow>,
    /// Whether lifetimes are told; else there are none of them.
    pub has_lifetimes: bool,
    /// Blocks that were never freed, and so have no lifetime.
    pub never_freed: Bucket,
}

impl Histograms {
    /// Over all processes.
    pub fn of(findings: &[Findings], has_lifetimes: bool) -> Histograms {
        let mut all = Histogram::default();
        findings.iter().filter_map(|findings| findings.histogram.as_ref()).for_each(|own| all.add(own));
        let never_freed = all.never_freed;
        let lifetimes = if has_lifetimes { rows(&all.lifetimes) } else { Vec::new() };
        Histograms { sizes: rows(&all.sizes), lifetimes, has_lifetimes, never_freed }
    }
}

/// The blocks of all rows together.
pub fn sum(rows: &[HistogramRow]) -> Bucket {
    let mut sum = Bucket::default();
    for row in rows {
        sum.blocks = sum.blocks.saturating_add(row.bucket.blocks);
        sum.bytes = sum.bytes.saturating_add(row.bucket.bytes);
    }
    sum
}

fn rows(buckets: &[Bucket]) -> Vec<HistogramRow> {
    let row = |(at, bucket): (usize, &Bucket)| {
        let (least, greatest) = bucket_range(at);
        HistogramRow { least, greatest, bucket: *bucket }
    };
    let mut rows: Vec<HistogramRow> =
        buckets.iter().enumerate().map(row).skip_while(|row| row.bucket.blocks == 0).collect();
    while rows.last().is_some_and(|row| row.bucket.blocks == 0) {
        rows.pop();
    }
    rows
}

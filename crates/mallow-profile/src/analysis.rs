//! Questions that only single events answer, all of them in one pass.
//!
//! A [`Plan`] says what is wanted; a [`Pass`] takes one process's events, in the order in which they were recorded, and
//! gives [`Findings`]. Memory is bounded by the live blocks (32 bytes each, 64 with chains), by the sites, and by how many sites
//! change in how many slices of time; no event is kept.
//!
//! A moment is a time in microseconds since the recording's start. A window is half open: an event at `from_us` is in it, one
//! at `to_us` is not, so windows side by side count every event once. Times that step back by some microseconds, as they
//! may between threads, count as they are stamped in windows and as the latest time so far in slices.

mod block;
mod blocks;
mod chains;
mod histogram;
mod part;
mod pass;
mod series;
mod short_lived;
mod slices;
mod threads;
mod timeline;
mod trend;
mod window;

pub use chains::{ChainSite, ChainTotals, Growth};
pub use histogram::{Bucket, Histogram, bucket_of, bucket_range};
pub use part::Part;
pub use pass::{BlockChoice, Pass};
pub use series::{Level, Series};
pub use short_lived::ShortLivedSite;
pub use slices::{Slices, Window};
pub use threads::ThreadMetrics;
pub use timeline::{Slice, Timeline, TimelineSite};
pub use trend::{Counts, SHARE_AT_END_PERCENT, Trend, TrendSite, Verdict};
pub use window::{WindowMetrics, WindowSite};

use crate::{ReallocAttribution, SiteTotals};

/// The analyses that a pass computes. All but the timeline and the trends cover the window only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// To which stack reallocations are attributed.
    pub attribution: ReallocAttribution,
    /// Which part of the run counts.
    pub window: Window,
    /// What each site allocated in the window, and its live blocks at its end.
    pub window_sites: bool,
    /// All metrics of all sites in the window, with the end of the process, until which its blocks lived.
    pub part_until_us: Option<u64>,
    /// Memory over time, in these slices of the window.
    pub timeline: Option<Slices>,
    /// Sizes and lifetimes.
    pub histogram: bool,
    /// The metrics of each thread.
    pub threads: bool,
    /// Blocks that were resized.
    pub chains: bool,
    /// Blocks that their own thread freed before it made this many further allocations.
    pub temporary_within: Option<u64>,
    /// Blocks that lived shorter than this, in microseconds.
    pub shorter_than_us: Option<u64>,
    /// The live set of each site over time, in these slices of the process's lifetime, whatever the window.
    pub trends: Option<Slices>,
}

/// The results of a pass over one process: those that the [`Plan`] requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// See [`Plan::window_sites`].
    pub window_sites: Vec<WindowSite>,
    /// See [`Plan::part_until_us`].
    pub part: Option<Part>,
    /// See [`Plan::timeline`].
    pub timeline: Option<Timeline>,
    /// See [`Plan::histogram`].
    pub histogram: Option<Histogram>,
    /// See [`Plan::threads`]; by [`crate::ThreadIndex`].
    pub threads: Vec<ThreadMetrics>,
    /// See [`Plan::chains`].
    pub chains: ChainTotals,
    /// The sites where those chains began.
    pub chain_sites: Vec<ChainSite>,
    /// See [`Plan::temporary_within`].
    pub temporary: Vec<ShortLivedSite>,
    /// See [`Plan::shorter_than_us`].
    pub short_lived: Vec<ShortLivedSite>,
    /// See [`Plan::trends`].
    pub trends: Vec<TrendSite>,
}

impl Findings {
    /// Marks that the process ended before the window did: its live blocks ended with it.
    pub fn end_before_window(&mut self) {
        for site in &mut self.window_sites {
            let WindowMetrics { live_blocks, live_bytes, kept_blocks, kept_bytes, .. } = &mut site.metrics;
            (*live_blocks, *live_bytes, *kept_blocks, *kept_bytes) = (0, 0, 0, 0);
        }
        self.window_sites.retain(|site| site.metrics != WindowMetrics::default());
        for thread in &mut self.threads {
            (thread.live_blocks, thread.live_bytes) = (0, 0);
        }
        if let Some(part) = &mut self.part {
            (part.totals.leaked_blocks, part.totals.leaked_bytes) = (0, 0);
            for (_, totals) in &mut part.sites {
                (totals.leaked_blocks, totals.leaked_bytes) = (0, 0);
            }
            part.sites.retain(|(_, totals)| *totals != SiteTotals::default());
        }
    }
}

//! The metrics of a part of a run: of a window, and of those blocks that are wanted.
//!
//! What comes out has the same fields as the sums of a whole run and means the same, so it can take their place everywhere: allocations and
//! temporary blocks are those made in the window, whenever they are freed; *leaked* is what is live at its end; the peak is the highest sum of
//! live bytes of all blocks within it, wanted or not, so that parts of one window add up to it. Of the whole window and all blocks they
//! are the very sums that an [`crate::Aggregator`] makes.

use super::Window;
use super::block::{Block, Death, entry};
use crate::{SiteTotals, StackId, Totals};

/// The sums of a part of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The process's metrics.
    pub totals: Totals,
    /// When live bytes were highest.
    pub peak_us: u64,
    /// One entry for each stack that has any metric, in the order of first calls.
    pub sites: Vec<(Option<StackId>, SiteTotals)>,
}

/// A part, while events pass.
#[derive(Debug)]
pub(super) struct PartAggregator {
    window: Window,
    sites: Vec<SitePart>,
    totals: Totals,
    /// Of all blocks, included or not.
    live_bytes: u64,
    live_blocks: u64,
    peak_bytes: u64,
    peak_us: u64,
    /// Goes up with each new peak: a site that changes for the first time since keeps a copy of what it held.
    peak_serial: u64,
    is_begun: bool,
}

/// A site's metrics. Live ones are those of the events before the window's end.
#[derive(Clone, Debug, Default)]
struct SitePart {
    totals: SiteTotals,
    peak_serial: u64,
}

impl PartAggregator {
    pub(super) fn new(window: Window) -> PartAggregator {
        PartAggregator {
            window,
            sites: Vec::new(),
            totals: Totals::default(),
            live_bytes: 0,
            live_blocks: 0,
            peak_bytes: 0,
            peak_us: 0,
            peak_serial: 0,
            is_begun: false,
        }
    }

    /// A block is allocated, by `realloc` or not.
    #[inline]
    pub(super) fn born(&mut self, block: &Block, is_wanted: bool, by_realloc: bool) {
        if block.born_us >= self.window.to_us {
            return;
        }
        self.begin_at(block.born_us);
        let is_inside = self.window.contains(block.born_us);
        self.live_bytes = self.live_bytes.wrapping_add(block.size);
        self.live_blocks += 1;
        if is_wanted {
            let serial = self.peak_serial;
            let site = entry(&mut self.sites, block.site());
            site.keep_peak(serial);
            site.add(block, is_inside);
            if is_inside {
                site.totals.reallocations += u64::from(by_realloc);
                self.totals.allocations += 1;
                self.totals.bytes = self.totals.bytes.wrapping_add(block.size);
                self.totals.reallocations += u64::from(by_realloc);
            }
        }
        if is_inside && self.live_bytes >= self.peak_bytes {
            self.new_peak(block.born_us);
        }
    }

    /// A block is freed.
    #[inline]
    pub(super) fn died(&mut self, block: &Block, is_wanted: bool, death: &Death) {
        if is_wanted && self.window.contains(block.born_us) {
            let is_temporary = death.by_own_thread(block) && death.allocations_since == 0;
            let site = entry(&mut self.sites, block.site());
            site.totals.temporary += u64::from(is_temporary);
            site.totals.lifetime_us_sum = lived(site.totals.lifetime_us_sum, block.born_us, death.time_us);
            self.totals.temporary += u64::from(is_temporary);
        }
        if death.time_us >= self.window.to_us || block.born_us >= self.window.to_us {
            return;
        }
        self.begin_at(death.time_us);
        self.live_bytes = self.live_bytes.wrapping_sub(block.size);
        self.live_blocks -= 1;
        if is_wanted {
            let serial = self.peak_serial;
            let site = entry(&mut self.sites, block.site());
            site.keep_peak(serial);
            site.totals.leaked_bytes = site.totals.leaked_bytes.wrapping_sub(block.size);
            site.totals.leaked_blocks -= 1;
            self.totals.frees += u64::from(self.window.contains(death.time_us));
        }
    }

    /// An allocating call failed.
    pub(super) fn failed(&mut self, site: u32, time_us: u64) {
        if self.window.contains(time_us) {
            self.totals.failed += 1;
            entry(&mut self.sites, site as usize).totals.failed += 1;
        }
    }

    /// What is live when the window begins is its first peak, and that of each site.
    #[inline]
    fn begin_at(&mut self, time_us: u64) {
        if !self.is_begun && time_us >= self.window.from_us {
            self.begin();
        }
    }

    #[cold]
    fn begin(&mut self) {
        self.is_begun = true;
        if self.live_blocks == 0 {
            return;
        }
        self.new_peak(self.window.from_us);
        for site in &mut self.sites {
            site.totals.live_bytes_max = site.totals.leaked_bytes;
            site.totals.live_blocks_at_max = site.totals.leaked_blocks;
        }
    }

    fn new_peak(&mut self, time_us: u64) {
        self.peak_bytes = self.live_bytes;
        self.peak_us = time_us;
        self.peak_serial += 1;
    }

    /// Blocks that are left lived until the process's end.
    pub(super) fn finish<'b>(
        mut self,
        left: impl Iterator<Item = &'b Block>,
        ended_us: u64,
        stack_of: impl Fn(usize) -> Option<StackId>,
    ) -> Part {
        self.begin_at(self.window.from_us);
        for block in left.filter(|block| self.window.contains(block.born_us)) {
            let sum = &mut entry(&mut self.sites, block.site()).totals.lifetime_us_sum;
            *sum = lived(*sum, block.born_us, ended_us);
        }
        let (serial, mut totals) = (self.peak_serial, self.totals);
        let mut sites = Vec::new();
        for (at, mut site) in self.sites.into_iter().enumerate() {
            site.keep_peak(serial);
            totals.peak_bytes = totals.peak_bytes.saturating_add(site.totals.peak_bytes);
            totals.peak_blocks += site.totals.peak_blocks;
            totals.leaked_bytes = totals.leaked_bytes.saturating_add(site.totals.leaked_bytes);
            totals.leaked_blocks += site.totals.leaked_blocks;
            // Clocks of different cores may differ by a tick: a sum below zero means no time at all.
            site.totals.lifetime_us_sum = (site.totals.lifetime_us_sum as i64).max(0) as u64;
            if site.totals != SiteTotals::default() {
                sites.push((stack_of(at), site.totals));
            }
        }
        Part { totals, peak_us: self.peak_us, sites }
    }
}

/// A sum of lifetimes with one more, wrapping.
fn lived(sum: u64, born_us: u64, died_us: u64) -> u64 {
    sum.wrapping_add(died_us).wrapping_sub(born_us)
}

impl SitePart {
    #[inline]
    fn add(&mut self, block: &Block, is_inside: bool) {
        let totals = &mut self.totals;
        totals.leaked_bytes = totals.leaked_bytes.wrapping_add(block.size);
        totals.leaked_blocks += 1;
        if !is_inside {
            return;
        }
        if totals.allocations == 0 {
            totals.first_us = block.born_us;
        }
        totals.last_us = block.born_us;
        totals.allocations += 1;
        totals.bytes = totals.bytes.wrapping_add(block.size);
        if totals.leaked_bytes > totals.live_bytes_max
            || totals.allocations == 1 && totals.live_bytes_max == 0
        {
            totals.live_bytes_max = totals.leaked_bytes;
            totals.live_blocks_at_max = totals.leaked_blocks;
        }
    }

    /// Makes the current live set the newest peak.
    #[inline]
    fn keep_peak(&mut self, serial: u64) {
        if self.peak_serial != serial {
            self.peak_serial = serial;
            self.totals.peak_bytes = self.totals.leaked_bytes;
            self.totals.peak_blocks = self.totals.leaked_blocks;
        }
    }
}

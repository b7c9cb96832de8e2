//! The running metrics of each stack that allocates, and their state at the peak.
//!
//! A new peak would have to copy every site's live metrics. Instead it raises a serial, and a site that is
//! about to change for the first time since keeps a copy of its own: constant time for each event.

use super::grow::double;
use super::{LiveSite, MemoryAdvice, SiteSummary};
use crate::{RequestTotals, SiteTotals, StackId};

const NO_SITE: u32 = u32::MAX;

/// One stack's metrics. The fields that every event changes are in the first cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct SiteMetrics {
    live_bytes: u64,
    live_blocks: u32,
    peak_blocks: u32,
    /// The serial of the newest peak that `peak_bytes` and `peak_blocks` take into account.
    peak_serial: u64,
    peak_bytes: u64,
    live_bytes_max: u64,
    allocations: u64,
    bytes: u64,
    /// Times of frees less times of allocations, wrapping.
    lifetime_us: u64,
    // The second cache line.
    last_us: u64,
    first_us: u64,
    temporary: u64,
    pub(super) reallocations: u64,
    pub(super) failed: u64,
    stack: u32,
    /// Its place among those with requests and 1 more; 0 if it made plain ones alone.
    request: u32,
    /// Live blocks when `live_bytes_max` was reached.
    live_blocks_at_max: u32,
}

const _: () = assert!(size_of::<SiteMetrics>() == 128);

impl SiteMetrics {
    #[inline]
    pub(super) fn add(&mut self, size: u64, time_us: u64, peak_serial: u64) {
        self.keep_peak(peak_serial);
        self.live_blocks += 1;
        self.live_bytes = self.live_bytes.wrapping_add(size);
        self.count(size, time_us, self.live_bytes, self.live_blocks);
        self.lifetime_us = self.lifetime_us.wrapping_sub(time_us);
    }

    /// Counts an allocation; with it so many bytes and blocks are live.
    #[inline(always)]
    fn count(&mut self, size: u64, time_us: u64, live_bytes: u64, live_blocks: u32) {
        if self.allocations == 0 {
            self.first_us = time_us;
        }
        self.last_us = time_us;
        self.allocations += 1;
        self.bytes = self.bytes.wrapping_add(size);
        if live_bytes > self.live_bytes_max || self.allocations == 1 {
            self.live_bytes_max = live_bytes;
            self.live_blocks_at_max = live_blocks;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, size: u64, time_us: u64, peak_serial: u64, temporary: bool) {
        self.keep_peak(peak_serial);
        self.live_blocks -= 1;
        self.live_bytes = self.live_bytes.wrapping_sub(size);
        self.lifetime_us = self.lifetime_us.wrapping_add(time_us);
        if temporary {
            self.temporary += 1;
        }
    }

    /// A block that is added at `time_us` and removed at `freed_us`, with nothing between.
    #[inline]
    pub(super) fn pass(&mut self, size: u64, time_us: u64, freed_us: u64, peak_serial: u64) {
        self.keep_peak(peak_serial);
        self.count(size, time_us, self.live_bytes.wrapping_add(size), self.live_blocks + 1);
        self.lifetime_us = self.lifetime_us.wrapping_add(freed_us.wrapping_sub(time_us));
        self.temporary += 1;
    }

    /// The peak with this serial was reached while one block more was live than is now.
    #[inline]
    pub(super) fn passed_peak(&mut self, size: u64, peak_serial: u64) {
        self.peak_serial = peak_serial;
        self.peak_bytes = self.live_bytes.wrapping_add(size);
        self.peak_blocks = self.live_blocks + 1;
    }

    #[inline]
    fn keep_peak(&mut self, peak_serial: u64) {
        if self.peak_serial != peak_serial {
            self.peak_serial = peak_serial;
            self.peak_bytes = self.live_bytes;
            self.peak_blocks = self.live_blocks;
        }
    }

    fn live(&self) -> LiveSite {
        LiveSite {
            stack: StackId(self.stack),
            bytes: self.live_bytes,
            blocks: self.live_blocks,
            allocations: self.allocations,
            allocated_bytes: self.bytes,
        }
    }

    fn finish(&self, peak_serial: u64, end_us: u64) -> SiteSummary {
        let is_kept = self.peak_serial == peak_serial;
        let (peak_bytes, peak_blocks) =
            if is_kept { (self.peak_bytes, self.peak_blocks) } else { (self.live_bytes, self.live_blocks) };
        let lived = self.lifetime_us.wrapping_add(u64::from(self.live_blocks).wrapping_mul(end_us));
        SiteSummary {
            stack: StackId(self.stack),
            totals: SiteTotals {
                allocations: self.allocations,
                bytes: self.bytes,
                reallocations: self.reallocations,
                temporary: self.temporary,
                failed: self.failed,
                peak_bytes,
                peak_blocks: u64::from(peak_blocks),
                leaked_bytes: self.live_bytes,
                leaked_blocks: u64::from(self.live_blocks),
                live_bytes_max: self.live_bytes_max,
                live_blocks_at_max: u64::from(self.live_blocks_at_max),
                // Clocks of different cores may differ by a tick: a sum below zero means "no time at all".
                lifetime_us_sum: (lived as i64).max(0) as u64,
                first_us: self.first_us,
                last_us: self.last_us,
                ..SiteTotals::default()
            },
        }
    }
}

/// All sites of a process.
#[derive(Debug, Default)]
pub(super) struct Sites {
    metrics: Vec<SiteMetrics>,
    /// By stack id plus 1, wrapping, so that "no stack" has the first place.
    by_stack: Vec<u32>,
    /// Told of new room before it is touched.
    pub(super) advise: Option<MemoryAdvice>,
}

/// Longer lists keep the room that they do not use. To give it back copies the list, as its elements have an alignment that the allocator cannot shrink in place;
/// and most of that room was never touched, so it is address space only.
const COPIED_MAX: usize = 1024;

impl Sites {
    /// Returns its own memory in bytes, and as much for the sums that are made of it.
    pub(super) fn held_bytes(&self) -> u64 {
        (self.metrics.len() * 2 * size_of::<SiteMetrics>() + self.by_stack.len() * size_of::<u32>()) as u64
    }

    #[inline]
    pub(super) fn index_of(&mut self, stack: StackId) -> u32 {
        match self.by_stack.get(stack.0.wrapping_add(1) as usize) {
            Some(&index) if index != NO_SITE => index,
            _ => self.make(stack),
        }
    }

    /// The site of an index that [`Sites::index_of`] gave.
    #[inline]
    pub(super) fn at(&mut self, index: u32) -> &mut SiteMetrics {
        &mut self.metrics[index as usize]
    }

    /// Returns the place of a site's requests, which is `next` from now on if it had none.
    #[inline]
    pub(super) fn request_of(&mut self, index: u32, next: usize) -> usize {
        let request = &mut self.metrics[index as usize].request;
        if *request == 0 {
            *request = next as u32 + 1;
        }
        *request as usize - 1
    }

    #[cold]
    fn make(&mut self, stack: StackId) -> u32 {
        let place = stack.0.wrapping_add(1) as usize;
        if place >= self.by_stack.len() {
            self.by_stack.resize(place + 1, NO_SITE);
        }
        let index = self.metrics.len() as u32;
        self.by_stack[place] = index;
        if self.metrics.len() == self.metrics.capacity() {
            const SITES_MIN: usize = 16;
            double(&mut self.metrics, SITES_MIN, self.advise);
        }
        self.metrics.push(SiteMetrics { stack: stack.0, ..SiteMetrics::default() });
        index
    }

    /// Returns the sites that have live blocks, in the order of first calls.
    pub(super) fn live(&self) -> impl Iterator<Item = LiveSite> {
        self.metrics.iter().filter(|site| site.live_blocks > 0).map(SiteMetrics::live)
    }

    /// No more events will come. Returns also what is not needed any more.
    pub(super) fn end(mut self, peak_serial: u64, end_us: u64) -> (EndedSites, Vec<u32>) {
        // They are kept until the recording ends, those of thousands of processes.
        if self.metrics.len() <= COPIED_MAX {
            self.metrics.shrink_to_fit();
        }
        (EndedSites { metrics: self.metrics, peak_serial, end_us }, self.by_stack)
    }
}

/// The sites of a process that has ended.
#[derive(Debug, Default)]
pub(super) struct EndedSites {
    metrics: Vec<SiteMetrics>,
    peak_serial: u64,
    end_us: u64,
}

impl EndedSites {
    /// The metrics of the one at a place in the order of first calls.
    #[inline]
    pub(super) fn at(&self, place: usize) -> SiteSummary {
        self.metrics[place].finish(self.peak_serial, self.end_us)
    }

    /// Returns the metrics of each, in the order of first calls.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = SiteSummary> {
        self.metrics.iter().map(|site| site.finish(self.peak_serial, self.end_us))
    }

    /// Returns the requests of each site that has some, in the order of first calls.
    pub(super) fn requests(
        &self,
        requests: &[RequestTotals],
    ) -> impl Iterator<Item = (StackId, RequestTotals)> {
        let of = |site: &SiteMetrics| {
            Some((StackId(site.stack), *requests.get((site.request as usize).checked_sub(1)?)?))
        };
        self.metrics.iter().filter_map(of)
    }
}

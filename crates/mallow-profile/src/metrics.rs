//! What is counted: of a process, of a site, and which of it a source can tell.

use mallow_base::add_fields;

/// The version of the counting rules (the guide's page on counting states them). Traces and baselines carry it.
pub const COUNTING_VERSION: u32 = 2;
/// The version of a trace in which what programs map themselves is counted too.
pub const COUNTING_VERSION_MAPPINGS: u32 = 3;

/// The metrics of a process or of a whole recording. The counting rules define each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks freed, those that `realloc` replaced included.
    pub frees: u64,
    /// Successful `realloc` calls on a live block.
    pub reallocations: u64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: u64,
    /// Failed calls.
    pub failed: u64,
    /// The highest sum of live requested bytes.
    pub peak_bytes: u64,
    /// The live blocks at that moment.
    pub peak_blocks: u64,
    /// Bytes live at the end.
    pub leaked_bytes: u64,
    /// Blocks live at the end.
    pub leaked_blocks: u64,
}

/// The metrics of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteTotals {
    /// Successful allocating calls.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Those of the allocations that `realloc` made.
    pub reallocations: u64,
    /// Blocks freed by their own thread before it allocated again.
    pub temporary: u64,
    /// Failed calls.
    pub failed: u64,
    /// The site's live bytes at the process's peak.
    pub peak_bytes: u64,
    /// The site's live blocks at the process's peak.
    pub peak_blocks: u64,
    /// The site's bytes live at the end.
    pub leaked_bytes: u64,
    /// The site's blocks live at the end.
    pub leaked_blocks: u64,
    /// The site's own maximum of live bytes, whenever that was.
    pub live_bytes_max: u64,
    /// The site's live blocks when its live bytes were highest; of equal maxima at the first.
    pub live_blocks_at_max: u64,
    /// The sum of lifetimes in microseconds over all blocks; blocks live at the end count up to it.
    pub lifetime_us_sum: u64,
    /// The first and the last allocation, in microseconds since the recording's start.
    pub first_us: u64,
    /// See `first_us`.
    pub last_us: u64,
    /// Bytes that were read from its blocks, each as often as it was read.
    pub read_bytes: u64,
    /// Bytes that were written into its blocks.
    pub written_bytes: u64,
}

/// Which metrics a profile's source contains, each by itself. A metric that is not available is omitted in reports,
/// comparisons, limits, charts and exports, and never shown as 0: its field is 0 and means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The number of allocations.
    pub allocations: bool,
    /// The number of allocated bytes.
    pub bytes: bool,
    /// How many of the calls were `realloc`, and how many failed.
    pub calls: bool,
    /// The number of temporary blocks.
    pub temporary: bool,
    /// Bytes live at the peak, by site.
    pub peak: bool,
    /// Blocks live at the peak.
    pub peak_blocks: bool,
    /// Bytes live at the end, by site.
    pub leaked: bool,
    /// Blocks live at the end.
    pub leaked_blocks: bool,
    /// Each site's own maximum of live bytes.
    pub own_maximum: bool,
    /// The blocks live at that moment.
    pub own_maximum_blocks: bool,
    /// Lifetimes of blocks.
    pub lifetimes: bool,
    /// When sites allocated first and last.
    pub times: bool,
    /// How often blocks were read and written.
    pub accesses: bool,
}

impl Availability {
    /// Nothing; importers switch on what their format holds.
    pub const NOTHING: Availability = Availability {
        allocations: false,
        bytes: false,
        calls: false,
        temporary: false,
        peak: false,
        peak_blocks: false,
        leaked: false,
        leaked_blocks: false,
        own_maximum: false,
        own_maximum_blocks: false,
        lifetimes: false,
        times: false,
        accesses: false,
    };

    /// Everything that our own recordings have: they do not see what a program does with its blocks.
    pub const ALL: Availability = Availability {
        allocations: true,
        bytes: true,
        calls: true,
        temporary: true,
        peak: true,
        peak_blocks: true,
        leaked: true,
        leaked_blocks: true,
        own_maximum: true,
        own_maximum_blocks: true,
        lifetimes: true,
        times: true,
        accesses: false,
    };

    /// Returns the metrics that both sources have.
    #[must_use]
    pub fn and(mut self, mut other: Availability) -> Availability {
        for (one, other) in self.fields().into_iter().zip(other.fields()) {
            *one &= *other;
        }
        self
    }

    /// Returns every field, in an order that files rely on: new ones come last.
    pub fn fields(&mut self) -> [&mut bool; 13] {
        [
            &mut self.allocations,
            &mut self.calls,
            &mut self.temporary,
            &mut self.peak,
            &mut self.leaked,
            &mut self.own_maximum,
            &mut self.lifetimes,
            &mut self.times,
            &mut self.bytes,
            &mut self.peak_blocks,
            &mut self.leaked_blocks,
            &mut self.own_maximum_blocks,
            &mut self.accesses,
        ]
    }
}

impl Default for Availability {
    fn default() -> Availability {
        Availability::ALL
    }
}

impl Totals {
    /// Adds another process's metrics. Peaks of different processes are summed although they may lie at
    /// different moments, so the sum is an upper bound. A sum that does not fit stays at the largest number: only
    /// a damaged file has such metrics.
    pub fn add(&mut self, other: &Totals) {
        add_fields!(
            self, other; allocations, bytes, frees, reallocations, temporary, failed, peak_bytes, peak_blocks,
            leaked_bytes, leaked_blocks
        );
    }
}

/// When the first allocation of two sites together was, each with how many there are and when the first was.
pub(crate) fn first_us(one: (u64, u64), other: (u64, u64)) -> u64 {
    match (one.0, other.0) {
        (0, _) => other.1,
        (_, 0) => one.1,
        _ => one.1.min(other.1),
    }
}

impl SiteTotals {
    /// Adds another site's metrics. The site's own maximum becomes an upper bound.
    pub fn add(&mut self, other: &SiteTotals) {
        self.first_us = first_us((self.allocations, self.first_us), (other.allocations, other.first_us));
        self.last_us = self.last_us.max(other.last_us);
        add_fields!(
            self, other; allocations, bytes, reallocations, temporary, failed, peak_bytes, peak_blocks,
            leaked_bytes, leaked_blocks, live_bytes_max, live_blocks_at_max, lifetime_us_sum, read_bytes,
            written_bytes
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_damaged_file_add_up_without_overflow() {
        let mut totals = Totals { bytes: u64::MAX - 1, ..Totals::default() };
        totals.add(&Totals { bytes: 5, allocations: 2, ..Totals::default() });
        assert_eq!((totals.bytes, totals.allocations), (u64::MAX, 2));
        let mut site = SiteTotals { lifetime_us_sum: u64::MAX, ..SiteTotals::default() };
        site.add(&SiteTotals { lifetime_us_sum: 1, ..SiteTotals::default() });
        assert_eq!(site.lifetime_us_sum, u64::MAX);
    }
}

//! The footer's figures as the profile names them.

use mallow_profile::{Folded, FoldedSite, FoldedThread, SiteTotals, StackId, Totals};
use mallow_wire::trace as wire;

/// The figures of a [`wire::FoldedProcess`].
pub(super) fn folded_of(process: &wire::FoldedProcess) -> Folded {
    let thread =
        |thread: &wire::FoldedThread| FoldedThread { allocations: thread.allocations, bytes: thread.bytes };
    Folded {
        totals: totals_of(&process.totals),
        peak_us: process.peak_us,
        frees_unmatched: process.frees_unmatched,
        sites: process.sites.iter().map(site_of).collect(),
        threads: process.threads.iter().map(thread).collect(),
    }
}

fn totals_of(totals: &wire::FoldedTotals) -> Totals {
    Totals {
        allocations: totals.allocations,
        bytes: totals.bytes,
        frees: totals.frees,
        reallocations: totals.reallocations,
        temporary: totals.temporary,
        failed: totals.failed,
        peak_bytes: totals.peak_bytes,
        peak_blocks: totals.peak_blocks,
        leaked_bytes: totals.leaked_bytes,
        leaked_blocks: totals.leaked_blocks,
    }
}

fn site_of(site: &wire::FoldedSite) -> FoldedSite {
    FoldedSite {
        stack: StackId(site.stack),
        totals: SiteTotals {
            allocations: site.allocations,
            bytes: site.bytes,
            reallocations: site.reallocations,
            temporary: site.temporary,
            failed: site.failed,
            peak_bytes: site.peak_bytes,
            peak_blocks: site.peak_blocks,
            leaked_bytes: site.leaked_bytes,
            leaked_blocks: site.leaked_blocks,
            live_bytes_max: site.live_bytes_max,
            live_blocks_at_max: site.live_blocks_at_max,
            lifetime_us_sum: site.lifetime_us_sum,
            first_us: site.first_us,
            last_us: site.last_us,
        },
    }
}

//! Sums of channels as a recorder leaves them.

use super::*;
use crate::shared_memory::SharedMemory;
use std::sync::atomic::AtomicU64;

#[test]
fn unpublished_balances_are_part_of_the_sum() {
    let memory = SharedMemory::new(3);
    let mapping = memory.map();
    let set = |counter: &AtomicU64, value: i64| counter.store(value as u64, Ordering::Relaxed);
    let live = &mapping.header().live;
    set(&live.bytes, 1_000);
    set(&live.peak_bytes, 5_000);
    set(&live.peak_blocks, 50);
    set(&mapping.channel(0).counters.live_bytes, 400);
    set(&mapping.channel(0).counters.allocations, 20);
    set(&mapping.channel(0).counters.frees, 6);
    set(&mapping.channel(0).counters.frees_unmatched, 3);
    for (channel, bytes, frees, slack) in [(1, -200, 2, 256), (2, 30, 0, 300)] {
        let counters = &mapping.channel(channel).counters;
        set(&counters.unpublished_bytes, bytes);
        set(&counters.allocations, 1);
        set(&counters.frees, frees);
        set(&counters.slack_bytes, slack);
    }
    let (totals_now, error_bytes) = totals(&mapping);
    assert_eq!((totals_now.leaked_bytes, totals_now.leaked_blocks, error_bytes), (1_230, 14, 556));
    assert_eq!((totals_now.allocations, totals_now.frees), (22, 11));
    assert_eq!((totals_now.peak_bytes, totals_now.peak_blocks), (5_000, 50));
    // More cannot have lived at the end than at the peak.
    set(&live.bytes, 6_000);
    let (totals_now, _) = totals(&mapping);
    assert_eq!((totals_now.peak_bytes, totals_now.peak_blocks), (6_230, 14));
}

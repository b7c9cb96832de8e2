//! Which metric holds the memory.
//!
//! Live heap is exact, but it says nothing about a program that does not allocate by malloc: a Go program, or one with an allocator
//! of its own that nobody sees. What such a program holds is seen as resident memory and nowhere else, so that metric has to be
//! judged, with its own limit and its own noise.
//!
//! Who looked at the processes may know it ([`ForeignHeap`]), and is believed: by the names in an executable, or by memory that no recorded
//! block explains. That takes megabytes. The metrics here add those that hold less, and never take back what is known.

use crate::series::median;
use crate::window::window;
use crate::{Evidence, ForeignHeap, Observation};

/// A heap below this part of the program's own memory is a sliver of it ...
const SLIVER: f64 = 0.1;

/// ... when so much is elsewhere. Every program has some of that: data of its libraries, stacks.
const ELSEWHERE_BYTES_MIN: f64 = 2.0 * 1_048_576.0;

/// The part of its memory by which a heap can grow before it is collected.
const HEADROOM: f64 = 0.5;

/// Returns whether the program's memory is outside every observed heap.
pub(crate) fn is_elsewhere(evidence: &Evidence) -> bool {
    let late = &evidence.observations[window(&evidence.observations)];
    let is_much = median(late.iter().filter_map(elsewhere)) >= ELSEWHERE_BYTES_MIN;
    // No page of a heap was ever touched: that it is flat means nothing, however small the program is.
    let is_all = median(late.iter().filter_map(held)) == 0.0;
    evidence.foreign_heap != ForeignHeap::Unknown || (is_sliver(evidence) && (is_much || is_all))
}

/// Returns whether the observed heaps are a small part of the program's own memory, however small that is.
pub(crate) fn is_sliver(evidence: &Evidence) -> bool {
    let late = &evidence.observations[window(&evidence.observations)];
    late.iter().any(|seen| share(seen).is_some()) && median(late.iter().filter_map(share)) < SLIVER
}

/// Resident memory without files and shared memory.
pub(crate) fn own_bytes(seen: &Observation) -> f64 {
    let resident = seen.trimmed_bytes.unwrap_or(seen.resident_bytes);
    resident.saturating_sub(seen.mapped_bytes.unwrap_or(0)) as f64
}

/// A heap that collects itself when it has doubled may take in half of what is resident before anybody sees it grow: so much of a leak
/// stays hidden. Nothing of one that was made to collect, or that is none.
pub(crate) fn headroom(evidence: &Evidence) -> f64 {
    let late = &evidence.observations[window(&evidence.observations)];
    match evidence.foreign_heap {
        ForeignHeap::Uncollected => HEADROOM * median(late.iter().map(own_bytes)),
        ForeignHeap::Collected | ForeignHeap::Allocator | ForeignHeap::Unknown => 0.0,
    }
}

/// Returns the size of the observed heaps; `None` without a recorder. Free memory of the allocator belongs to malloc
/// too.
fn held(seen: &Observation) -> Option<f64> {
    let live = seen.live_bytes?.max(seen.areas_bytes.or(seen.allocator_bytes).unwrap_or(0));
    Some(live as f64 + seen.managed_bytes.unwrap_or(0) as f64)
}

fn share(seen: &Observation) -> Option<f64> {
    Some(held(seen)? / own_bytes(seen).max(1.0))
}

fn elsewhere(seen: &Observation) -> Option<f64> {
    Some(own_bytes(seen) - held(seen)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn evidence(fill: impl Fn(&mut Observation)) -> Evidence {
        let observation = |i: u64| {
            let mut seen = Observation {
                requests: 1_000 * i,
                live_bytes: Some(MIB / 512),
                resident_bytes: 14 * MIB,
                mapped_bytes: Some(7 * MIB),
                areas_bytes: Some(MIB / 25),
                ..Observation::default()
            };
            fill(&mut seen);
            seen
        };
        Evidence { observations: (1..=20).map(observation).collect(), ..Evidence::default() }
    }

    #[test]
    fn a_heap_of_two_kilobytes_in_seven_megabytes_is_a_sliver() {
        assert!(is_elsewhere(&evidence(|_| ())));
    }

    #[test]
    fn what_malloc_holds_or_a_runtime_told_is_not_elsewhere() {
        assert!(!is_elsewhere(&evidence(|seen| seen.live_bytes = Some(MIB))), "live");
        assert!(!is_elsewhere(&evidence(|seen| seen.areas_bytes = Some(6 * MIB))), "free, but malloc's");
        assert!(!is_elsewhere(&evidence(|seen| seen.managed_bytes = Some(3 * MIB))), "a runtime's");
        assert!(!is_elsewhere(&evidence(|seen| seen.mapped_bytes = Some(13 * MIB))), "files");
        assert!(!is_elsewhere(&evidence(|seen| seen.live_bytes = None)), "nobody looked");
        assert!(!is_elsewhere(&Evidence::default()));
    }

    #[test]
    fn a_small_program_is_judged_by_what_it_uses() {
        let small = |live: u64, areas: u64| {
            evidence(|seen| {
                seen.resident_bytes = 8 * MIB;
                (seen.live_bytes, seen.areas_bytes) = (Some(live), Some(areas));
            })
        };
        assert!(is_elsewhere(&small(0, 0)), "never a heap");
        assert!(!is_elsewhere(&small(0, 4096)) && is_sliver(&small(0, 4096)), "next to none");
        assert!(!is_sliver(&small(MIB / 2, 0)));
    }

    #[test]
    fn a_runtime_that_is_known_needs_no_metrics() {
        let known =
            Evidence { foreign_heap: ForeignHeap::Collected, ..evidence(|seen| seen.live_bytes = None) };
        assert!(is_elsewhere(&known));
    }
}

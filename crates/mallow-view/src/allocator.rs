//! The state of an allocator in plain words: each metric with one sentence of what it means, and the sizes that waste most.

use mallow_base::{Bytes, Percent};
use mallow_profile::{Allocator, AllocatorMetrics, AllocatorState, Arena, Bin};

/// A metric of an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorRow {
    /// The allocator's own word for it, where it has one.
    pub word: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// What it means, without a capital and a full stop.
    pub meaning: &'static str,
}

/// Returns the metrics that the allocator reports, in the order in which they contain each other.
pub fn allocator_rows(state: &AllocatorState) -> Vec<AllocatorRow> {
    let table: &[MetricSource] = match state.allocator {
        Allocator::Jemalloc => JEMALLOC,
        Allocator::Glibc => GLIBC,
    };
    let row =
        |&(word, of, meaning): &MetricSource| Some(AllocatorRow { word, bytes: of(&state.totals)?, meaning });
    table.iter().filter_map(row).collect()
}

/// A word, where its metric is, and its meaning.
type MetricSource = (&'static str, fn(&AllocatorMetrics) -> Option<u64>, &'static str);

const JEMALLOC: &[MetricSource] = &[
    (
        "allocated",
        |f| f.allocated,
        "in blocks that the program holds, rounded up to size classes; a leak shows here, over time",
    ),
    (
        "thread caches",
        |f| f.thread_caches,
        "of that in freed blocks that threads keep for themselves: not a leak",
    ),
    (
        "active",
        |f| f.active,
        "in pages with a block on them; what is above allocated lies free between blocks",
    ),
    (
        "dirty",
        |f| f.dirty,
        "in empty pages that are still in memory and given back after a while: not a leak",
    ),
    ("muzzy", |f| f.muzzy, "in empty pages that the kernel takes when it needs them: not a leak"),
    ("metadata", |f| f.metadata, "for the allocator's own books"),
    (
        "resident",
        |f| f.resident,
        "in memory, for all of the above; the allocator's part of the process's RSS",
    ),
    ("mapped", |f| f.mapped, "address space in use, whether memory is behind it or not"),
    ("retained", |f| f.retained, "address space kept for reuse, not memory and not a leak"),
];

const GLIBC: &[MetricSource] = &[
    (
        "in use",
        |f| f.allocated,
        "in blocks that the program holds and chunks in threads' caches; a leak shows here, over time",
    ),
    (
        "own mappings",
        |f| f.own_mappings,
        "of that in large blocks, each of which is given back to the kernel when it is freed",
    ),
    (
        "free",
        |f| f.free,
        "in free chunks that are kept for later: not a leak; malloc_trim(0) gives whole pages of it back",
    ),
    ("system", |f| f.mapped, "taken from the kernel, for all of the above; at most this much is in memory"),
    ("system max", |f| f.mapped_max, "the most that the arenas ever took"),
    (
        "reserved",
        |f| f.retained.filter(|&bytes| bytes > 0),
        "address space for arenas to grow, not memory and not a leak",
    ),
];

/// Returns conclusions from several metrics, in sentences.
pub fn allocator_notes(state: &AllocatorState) -> Vec<String> {
    let totals = &state.totals;
    let mut notes = Vec::new();
    let share = |part, whole| Percent { part, whole };
    if let (Allocator::Jemalloc, Some(allocated), Some(active)) =
        (state.allocator, totals.allocated, totals.active)
    {
        let between = active.saturating_sub(allocated);
        notes.push(format!(
            "{} ({} of active) lies free between blocks: fragmentation inside pages.",
            Bytes(between),
            share(between, active)
        ));
    }
    if let (Allocator::Glibc, Some(free), Some(system)) = (state.allocator, totals.free, totals.mapped) {
        notes.push(format!("{} ({} of system) is free and kept.", Bytes(free), share(free, system)));
    }
    notes.push(String::from(
        "One state cannot show a leak. Take another one later: allocated memory that only grows is one, other metrics that grow are not.",
    ));
    notes
}

/// The sizes with free places, most waste first.
pub fn allocator_bins(state: &AllocatorState) -> Vec<Bin> {
    let mut bins: Vec<Bin> = state.bins.iter().filter(|bin| bin.waste_bytes > 0).copied().collect();
    bins.sort_by_key(|bin| (std::cmp::Reverse(bin.waste_bytes), bin.size_max));
    bins
}

/// The arenas, largest first: by what they hold, or what they took.
pub fn allocator_arenas(state: &AllocatorState) -> Vec<&Arena> {
    let size = |metrics: &AllocatorMetrics| metrics.resident.or(metrics.mapped).unwrap_or(0);
    let mut arenas: Vec<&Arena> = state.arenas.iter().collect();
    arenas.sort_by_key(|arena| std::cmp::Reverse(size(&arena.metrics)));
    arenas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(allocator: Allocator, totals: AllocatorMetrics) -> AllocatorState {
        AllocatorState {
            allocator,
            version: String::new(),
            totals,
            arenas: Vec::new(),
            bins: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn metrics_that_are_not_reported_have_no_row() {
        let totals =
            AllocatorMetrics { allocated: Some(5), retained: Some(0), ..AllocatorMetrics::default() };
        let words = |allocator| -> Vec<(&str, u64)> {
            allocator_rows(&state(allocator, totals)).iter().map(|row| (row.word, row.bytes)).collect()
        };
        assert_eq!(words(Allocator::Jemalloc), [("allocated", 5), ("retained", 0)]);
        assert_eq!(words(Allocator::Glibc), [("in use", 5)]);
    }

    #[test]
    fn retained_is_never_called_a_leak() {
        let totals = AllocatorMetrics { retained: Some(2_291_953_664), ..AllocatorMetrics::default() };
        let rows = allocator_rows(&state(Allocator::Jemalloc, totals));
        assert_eq!(rows[0].meaning, "address space kept for reuse, not memory and not a leak");
    }

    #[test]
    fn the_sizes_that_waste_most_come_first() {
        let mut state = state(Allocator::Jemalloc, AllocatorMetrics::default());
        let bin = |size, waste_bytes| Bin { size_min: size, size_max: size, waste_bytes, ..Bin::default() };
        state.bins = vec![bin(8, 16), bin(16, 0), bin(32, 64), bin(48, 64)];
        let sizes: Vec<u64> = allocator_bins(&state).iter().map(|bin| bin.size_max).collect();
        assert_eq!(sizes, [32, 48, 8]);
    }

    #[test]
    fn notes_tell_fragmentation_and_what_one_state_cannot_tell() {
        let totals =
            AllocatorMetrics { allocated: Some(768), active: Some(1024), ..AllocatorMetrics::default() };
        let notes = allocator_notes(&state(Allocator::Jemalloc, totals));
        assert_eq!(notes[0], "256 B (25.0% of active) lies free between blocks: fragmentation inside pages.");
        assert_eq!(notes.len(), 2);
        let totals = AllocatorMetrics { free: Some(10), mapped: Some(100), ..AllocatorMetrics::default() };
        assert_eq!(
            allocator_notes(&state(Allocator::Glibc, totals))[0],
            "10 B (10.0% of system) is free and kept."
        );
    }
}

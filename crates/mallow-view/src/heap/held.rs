//! What grew between two snapshots, by who holds it, and why an example is alive.

use super::object::{ObjectReport, object_report};
use mallow_heapsnap::{Dominated, HeldGrowth, Paths, held_growth};

/// A class that grew, and one of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// By how much, and who holds it.
    pub growth: HeldGrowth,
    /// The page of an object that is new.
    pub example: ObjectReport,
}

/// Returns what grew, the most bytes first.
pub fn held_rows(before: Dominated<'_>, after: Dominated<'_>) -> Vec<HeldRow> {
    let growth = held_growth(before, after);
    let paths = Paths::new(&after.snapshot.graph);
    let row = |growth: HeldGrowth| HeldRow {
        example: object_report(after.snapshot, after.tree, &paths, growth.example),
        growth,
    };
    growth.into_iter().map(row).collect()
}

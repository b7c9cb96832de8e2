//! The classes of a heap with their own bytes alone.

use super::report::{GroupRow, Order, ordered};
use crate::report::Origin;
use mallow_heapsnap::{Histogram, Sum};

/// The classes of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramReport {
    /// The file.
    pub file: String,
    /// The file's format.
    pub format: Origin,
    /// All objects; nothing of what is retained.
    pub all: Sum,
    /// By class.
    pub classes: Vec<GroupRow>,
    /// Warnings about the file.
    pub warnings: Vec<String>,
    /// Remarks on the metrics.
    pub notes: Vec<String>,
}

/// The rows of a histogram, all of them: classes without objects are none.
pub fn histogram_report(file: &str, format: Origin, histogram: &Histogram, order: Order) -> HistogramReport {
    let row =
        |(kind, name, sum): (&str, &str, Sum)| GroupRow { name: name.to_owned(), kind: kind.to_owned(), sum };
    let classes: Vec<GroupRow> = histogram.classes().filter(|(_, _, sum)| sum.objects > 0).map(row).collect();
    let mut all = Sum::default();
    for row in &classes {
        all.objects += row.sum.objects;
        all.bytes = all.bytes.saturating_add(row.sum.bytes);
    }
    HistogramReport {
        file: file.to_owned(),
        format,
        all,
        classes: ordered(classes, order),
        warnings: histogram.warnings.clone(),
        notes: histogram.notes.clone(),
    }
}

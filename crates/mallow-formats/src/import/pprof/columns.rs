//! Which of a sample's values is which figure.

use super::messages::Messages;
use crate::pprof_proto::{ValueType, value};
use mallow_profile::{Known, SiteTotals};

/// A figure that a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Allocations,
    Bytes,
    LiveBlocks,
    LiveBytes,
    PeakBlocks,
    PeakBytes,
    Temporary,
}

/// The figures by the place of their values.
#[derive(Debug, Default)]
pub(super) struct Columns {
    figures: Vec<Option<Figure>>,
    /// What else the file holds, as `kind/unit`.
    pub(super) others: Vec<String>,
}

impl Columns {
    pub(super) fn of(messages: &Messages) -> Columns {
        let mut columns = Columns::default();
        for sample_type in &messages.sample_types {
            let figure = figure_of(messages, sample_type).filter(|&figure| !columns.has(figure));
            if figure.is_none() {
                let ValueType { kind, unit } = *sample_type;
                columns.others.push(format!("{}/{}", messages.text(kind), messages.text(unit)));
            }
            columns.figures.push(figure);
        }
        columns
    }

    fn has(&self, figure: Figure) -> bool {
        self.figures.contains(&Some(figure))
    }

    /// What the file can tell.
    pub(super) fn known(&self) -> Known {
        Known {
            allocations: self.has(Figure::Allocations),
            bytes: self.has(Figure::Bytes),
            leaked: self.has(Figure::LiveBytes),
            leaked_blocks: self.has(Figure::LiveBlocks),
            peak: self.has(Figure::PeakBytes),
            peak_blocks: self.has(Figure::PeakBlocks),
            temporary: self.has(Figure::Temporary),
            ..Known::NOTHING
        }
    }

    /// A sample's figures. Differences between profiles have negative ones, which no profile can hold.
    pub(super) fn totals(&self, values: &[i64]) -> SiteTotals {
        let mut totals = SiteTotals::default();
        for (figure, &value) in self.figures.iter().zip(values) {
            let value = u64::try_from(value).unwrap_or(0);
            match figure {
                Some(Figure::Allocations) => totals.allocations = value,
                Some(Figure::Bytes) => totals.bytes = value,
                Some(Figure::LiveBlocks) => totals.leaked_blocks = value,
                Some(Figure::LiveBytes) => totals.leaked_bytes = value,
                Some(Figure::PeakBlocks) => totals.peak_blocks = value,
                Some(Figure::PeakBytes) => totals.peak_bytes = value,
                Some(Figure::Temporary) => totals.temporary = value,
                None => {}
            }
        }
        totals
    }
}

fn figure_of(messages: &Messages, sample_type: &ValueType) -> Option<Figure> {
    let unit = messages.text(sample_type.unit);
    let (figure, its_unit) = match messages.text(sample_type.kind) {
        value::ALLOC_OBJECTS => (Figure::Allocations, "count"),
        value::ALLOC_SPACE => (Figure::Bytes, "bytes"),
        // Without a word before it, tcmalloc, V8 and others mean what is live.
        value::INUSE_OBJECTS | "objects" => (Figure::LiveBlocks, "count"),
        value::INUSE_SPACE | "space" => (Figure::LiveBytes, "bytes"),
        value::PEAK_OBJECTS => (Figure::PeakBlocks, "count"),
        value::PEAK_SPACE => (Figure::PeakBytes, "bytes"),
        value::TEMPORARY_OBJECTS => (Figure::Temporary, "count"),
        _ => return None,
    };
    (unit == its_unit || unit.is_empty()).then_some(figure)
}

//! Which of a sample's values is which metric.

use super::messages::Messages;
use crate::pprof_proto::{ValueType, value};
use mallow_profile::{Availability, SiteTotals};

/// A metric that a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Allocations,
    Bytes,
    LiveBlocks,
    LiveBytes,
    PeakBlocks,
    PeakBytes,
    Temporary,
}

/// The metrics by the index of their values.
#[derive(Debug, Default)]
pub(super) struct Columns {
    metrics: Vec<Option<Metric>>,
    /// Other values in the file, as `kind/unit`.
    pub(super) others: Vec<String>,
}

impl Columns {
    pub(super) fn of(messages: &Messages) -> Columns {
        let mut columns = Columns::default();
        for sample_type in &messages.sample_types {
            let metric = metric_of(messages, sample_type).filter(|&metric| !columns.has(metric));
            if metric.is_none() {
                let ValueType { kind, unit } = *sample_type;
                columns.others.push(format!("{}/{}", messages.text(kind), messages.text(unit)));
            }
            columns.metrics.push(metric);
        }
        columns
    }

    fn has(&self, metric: Metric) -> bool {
        self.metrics.contains(&Some(metric))
    }

    /// Returns which metrics the file has.
    pub(super) fn known(&self) -> Availability {
        Availability {
            allocations: self.has(Metric::Allocations),
            bytes: self.has(Metric::Bytes),
            leaked: self.has(Metric::LiveBytes),
            leaked_blocks: self.has(Metric::LiveBlocks),
            peak: self.has(Metric::PeakBytes),
            peak_blocks: self.has(Metric::PeakBlocks),
            temporary: self.has(Metric::Temporary),
            ..Availability::NOTHING
        }
    }

    /// Returns a sample's metrics. Differences between profiles have negative ones, which a profile cannot represent.
    pub(super) fn totals(&self, values: &[i64]) -> SiteTotals {
        let mut totals = SiteTotals::default();
        for (metric, &value) in self.metrics.iter().zip(values) {
            let value = u64::try_from(value).unwrap_or(0);
            match metric {
                Some(Metric::Allocations) => totals.allocations = value,
                Some(Metric::Bytes) => totals.bytes = value,
                Some(Metric::LiveBlocks) => totals.leaked_blocks = value,
                Some(Metric::LiveBytes) => totals.leaked_bytes = value,
                Some(Metric::PeakBlocks) => totals.peak_blocks = value,
                Some(Metric::PeakBytes) => totals.peak_bytes = value,
                Some(Metric::Temporary) => totals.temporary = value,
                None => {}
            }
        }
        totals
    }
}

fn metric_of(messages: &Messages, sample_type: &ValueType) -> Option<Metric> {
    let unit = messages.text(sample_type.unit);
    let (metric, its_unit) = match messages.text(sample_type.kind) {
        value::ALLOC_OBJECTS => (Metric::Allocations, "count"),
        value::ALLOC_SPACE => (Metric::Bytes, "bytes"),
        // Without a prefix, tcmalloc, V8 and others mean what is live.
        value::INUSE_OBJECTS | "objects" => (Metric::LiveBlocks, "count"),
        value::INUSE_SPACE | "space" => (Metric::LiveBytes, "bytes"),
        value::PEAK_OBJECTS => (Metric::PeakBlocks, "count"),
        value::PEAK_SPACE => (Metric::PeakBytes, "bytes"),
        value::TEMPORARY_OBJECTS => (Metric::Temporary, "count"),
        _ => return None,
    };
    (unit == its_unit || unit.is_empty()).then_some(metric)
}

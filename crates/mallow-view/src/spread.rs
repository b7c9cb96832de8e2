//! A metric over several runs of the same command.

use mallow_profile::Totals;

/// The least, the middle and the greatest of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The least.
    pub min: u64,
    /// The middle; of an even number of values the mean of the two in the middle, rounded down.
    pub median: u64,
    /// The greatest.
    pub max: u64,
}

/// The unit of a metric, which decides its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Calls or blocks.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds. Not a count: two runs never take the same time.
    Micros,
}

/// One metric of all runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub metric: Metric,
    /// Its values.
    pub spread: Spread,
    /// By how much each value may differ from the true one.
    pub error: u64,
}

impl MetricRow {
    /// Returns whether its values may all be equal.
    pub fn is_equal(&self) -> bool {
        self.spread.max - self.spread.min <= 2 * self.error
    }
}

/// The metrics of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Of all its processes.
    pub totals: Totals,
    /// Wall time in microseconds.
    pub wall_us: u64,
    /// By how many bytes the peak may differ from the true one; then the blocks are those of a moment near it, too.
    pub peak_error_bytes: u64,
}

impl Spread {
    /// The spread of some values; none when there are none.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        let (first, last) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => values[middle - 1] + (values[middle] - values[middle - 1]) / 2,
        };
        Some(Self { min: *first, median, max: *last })
    }

    /// Returns whether all values were the same.
    pub fn is_equal(&self) -> bool {
        self.min == self.max
    }
}

/// A metric's name, its unit, and its value.
type Column = (&'static str, Metric, fn(&Run) -> u64);

const COLUMNS: [Column; 11] = [
    ("allocations", Metric::Count, |run| run.totals.allocations),
    ("bytes", Metric::Bytes, |run| run.totals.bytes),
    ("frees", Metric::Count, |run| run.totals.frees),
    ("reallocations", Metric::Count, |run| run.totals.reallocations),
    ("temporary", Metric::Count, |run| run.totals.temporary),
    ("failed", Metric::Count, |run| run.totals.failed),
    ("peak bytes", Metric::Bytes, |run| run.totals.peak_bytes),
    ("peak blocks", Metric::Count, |run| run.totals.peak_blocks),
    ("leaked bytes", Metric::Bytes, |run| run.totals.leaked_bytes),
    ("leaked blocks", Metric::Count, |run| run.totals.leaked_blocks),
    ("wall time", Metric::Micros, |run| run.wall_us),
];

/// Every metric of some runs, in the order in which they are shown; empty when there are no runs.
pub fn metric_rows(runs: &[Run]) -> Vec<MetricRow> {
    let peak_error = runs.iter().map(|run| run.peak_error_bytes).max().unwrap_or_default();
    let row = |&(name, metric, value): &Column| {
        let error = match name {
            "peak bytes" => peak_error,
            // If blocks are counted without sizes.
            "peak blocks" if peak_error > 0 => u64::MAX / 2,
            _ => 0,
        };
        Some(MetricRow { name, metric, spread: Spread::of(runs.iter().map(value))?, error })
    };
    COLUMNS.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_numbers_of_values() {
        assert_eq!(Spread::of([3, 1, 2]), Some(Spread { min: 1, median: 2, max: 3 }));
        assert_eq!(Spread::of([1, 4]), Some(Spread { min: 1, median: 2, max: 4 }));
        assert_eq!(Spread::of([u64::MAX, u64::MAX]).map(|s| s.median), Some(u64::MAX));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn rows_come_with_every_metric() {
        let run = |allocations, wall_us| Run {
            totals: Totals { allocations, ..Totals::default() },
            wall_us,
            ..Run::default()
        };
        let rows = metric_rows(&[run(5, 10), run(7, 30), run(5, 20)]);
        assert_eq!(rows.len(), 11);
        assert_eq!(rows[0].spread, Spread { min: 5, median: 5, max: 7 });
        assert!(!rows[0].spread.is_equal() && rows[1].spread.is_equal());
        assert_eq!(rows[10].spread, Spread { min: 10, median: 20, max: 30 });
        assert_eq!(metric_rows(&[]), []);
    }

    #[test]
    fn peaks_are_equal_as_far_as_they_are_known() {
        let run = |peak_bytes, peak_error_bytes| Run {
            totals: Totals { peak_bytes, peak_blocks: peak_bytes / 7, ..Totals::default() },
            peak_error_bytes,
            ..Run::default()
        };
        let equal = |runs: &[Run]| metric_rows(runs).iter().all(MetricRow::is_equal);
        assert!(!equal(&[run(1_000, 0), run(1_001, 0)]));
        assert!(equal(&[run(1_000, 50), run(1_100, 50)]));
        assert!(!equal(&[run(1_000, 50), run(1_101, 50)]));
    }
}

//! Program points, as DHAT calls them: everything that is known of one site, and what sites can be sorted by.
//!
//! Averages and rates are made here and nowhere else. What a profile's source could not tell is none, never 0.

use crate::{Key, Measure};
use mallow_profile::{Availability, Recording, SiteTotals, TimeUnit};

/// Sort keys of heap sites: the measures, and values derived from other metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortKey {
    /// A measure.
    Measure(Measure),
    /// Those of the allocations that `realloc` made.
    Reallocations,
    /// Blocks live at the process's peak.
    PeakBlocks,
    /// Blocks live at the end.
    LeakedBlocks,
    /// The site's own maximum of live bytes, whenever that was.
    Max,
    /// The site's live blocks at that moment.
    MaxBlocks,
    /// The average size of a block.
    Size,
    /// The average lifetime of a block.
    Lifetime,
    /// Allocations in a second of the recording.
    Rate,
    /// Bytes read from its blocks.
    Reads,
    /// Bytes written into its blocks.
    Writes,
    /// Bytes of sites whose blocks were never read, or never written.
    Unused,
}

impl From<Measure> for SortKey {
    fn from(measure: Measure) -> Self {
        SortKey::Measure(measure)
    }
}

impl SortKey {
    /// All of them, in the order in which they are offered.
    pub const ALL: [SortKey; 16] = [
        SortKey::Measure(Measure::Allocations),
        SortKey::Measure(Measure::Bytes),
        SortKey::Measure(Measure::Peak),
        SortKey::Measure(Measure::Leaked),
        SortKey::Measure(Measure::Temporary),
        SortKey::Reallocations,
        SortKey::PeakBlocks,
        SortKey::LeakedBlocks,
        SortKey::Max,
        SortKey::MaxBlocks,
        SortKey::Size,
        SortKey::Lifetime,
        SortKey::Rate,
        SortKey::Reads,
        SortKey::Writes,
        SortKey::Unused,
    ];

    /// The word for it, which is also the word after `--metric`.
    pub fn word(self) -> &'static str {
        match self {
            SortKey::Measure(measure) => measure.word(),
            SortKey::Reallocations => "reallocations",
            SortKey::PeakBlocks => "peak-blocks",
            SortKey::LeakedBlocks => "leaked-blocks",
            SortKey::Max => "max",
            SortKey::MaxBlocks => "max-blocks",
            SortKey::Size => "size",
            SortKey::Lifetime => "lifetime",
            SortKey::Rate => "rate",
            SortKey::Reads => "reads",
            SortKey::Writes => "writes",
            SortKey::Unused => "unused",
        }
    }

    /// Returns the measure that is a site's weight under this key. Averages and maxima do not add up over sites, so a
    /// share or a threshold needs one that does.
    pub fn weight(self) -> Measure {
        match self {
            SortKey::Measure(measure) => measure,
            SortKey::Reallocations | SortKey::Lifetime | SortKey::Rate => Measure::Allocations,
            SortKey::PeakBlocks => Measure::Peak,
            SortKey::LeakedBlocks => Measure::Leaked,
            SortKey::Max
            | SortKey::MaxBlocks
            | SortKey::Size
            | SortKey::Reads
            | SortKey::Writes
            | SortKey::Unused => Measure::Bytes,
        }
    }

    /// Returns whether the metric of two sites together is the sum of theirs.
    pub fn adds_up(self) -> bool {
        !matches!(
            self,
            SortKey::Max | SortKey::MaxBlocks | SortKey::Size | SortKey::Lifetime | SortKey::Unused
        )
    }

    /// Returns the metric of a site in its unit: calls, blocks or bytes; averages rounded down, [`SortKey::Lifetime`]
    /// in the recording's time unit. For [`SortKey::Rate`] it is the number of allocations, which has the same order.
    pub fn of_site(self, totals: &SiteTotals) -> u64 {
        match self {
            SortKey::Measure(measure) => measure.of_site(totals),
            SortKey::Reallocations => totals.reallocations,
            SortKey::PeakBlocks => totals.peak_blocks,
            SortKey::LeakedBlocks => totals.leaked_blocks,
            SortKey::Max => totals.live_bytes_max,
            SortKey::MaxBlocks => totals.live_blocks_at_max,
            SortKey::Size => totals.bytes.checked_div(totals.allocations).unwrap_or(0),
            SortKey::Lifetime => totals.lifetime_us_sum.checked_div(totals.allocations).unwrap_or(0),
            SortKey::Rate => totals.allocations,
            SortKey::Reads => totals.read_bytes,
            SortKey::Writes => totals.written_bytes,
            SortKey::Unused if totals.read_bytes == 0 || totals.written_bytes == 0 => totals.bytes,
            SortKey::Unused => 0,
        }
    }

    /// Returns whether a site has a value for this key.
    pub fn concerns(self, totals: &SiteTotals) -> bool {
        Key::concerns(self, totals)
    }

    /// Returns whether a profile's source has this metric.
    pub fn is_known(self, known: &Availability) -> bool {
        match self {
            SortKey::Measure(measure) => measure.is_known(known),
            SortKey::Reallocations => known.calls,
            SortKey::PeakBlocks => known.peak_blocks,
            SortKey::LeakedBlocks => known.leaked_blocks,
            SortKey::Max => known.own_maximum,
            SortKey::MaxBlocks => known.own_maximum_blocks,
            SortKey::Size => known.allocations && known.bytes,
            SortKey::Lifetime => known.lifetimes && known.allocations,
            SortKey::Rate => known.allocations,
            SortKey::Reads | SortKey::Writes => known.accesses,
            SortKey::Unused => known.accesses && known.bytes,
        }
    }
}

impl Key for SortKey {
    type Weights = SiteTotals;

    /// Exact to a millionth where it is an average.
    fn rank(self, totals: &SiteTotals) -> u128 {
        let average = |sum: u64| {
            let scaled = u128::from(sum) * 1_000_000;
            scaled.checked_div(u128::from(totals.allocations)).unwrap_or(0)
        };
        match self {
            SortKey::Size => average(totals.bytes),
            SortKey::Lifetime => average(totals.lifetime_us_sum),
            other => u128::from(other.of_site(totals)),
        }
    }

    fn concerns(self, totals: &SiteTotals) -> bool {
        match self {
            SortKey::Measure(measure) => measure.concerns(totals),
            SortKey::Size | SortKey::Lifetime => totals.allocations > 0,
            other => other.of_site(totals) > 0,
        }
    }

    fn weigh(self, totals: &SiteTotals) -> u64 {
        self.weight().of_site(totals)
    }
}

/// Values derived from a site's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Average bytes of a block.
    pub size: Option<f64>,
    /// Average lifetime of a block in the recording's time unit.
    pub lifetime: Option<f64>,
    /// The part of the recording that a block lived on average, 0 to 1.
    pub lifetime_share: Option<f64>,
    /// Allocations in [`rate_units`] of time.
    pub allocations_rate: Option<f64>,
    /// Bytes in [`rate_units`] of time.
    pub bytes_rate: Option<f64>,
}

/// Returns how many time units a rate refers to: a second, a million instructions, or a mebibyte allocated.
pub fn rate_units(unit: TimeUnit) -> u64 {
    match unit {
        TimeUnit::Microseconds | TimeUnit::Instructions => 1_000_000,
        TimeUnit::Bytes => 1 << 20,
    }
}

impl Point {
    /// Derives them from the metrics of a site, or of several together.
    pub fn of(totals: &SiteTotals, recording: &Recording, known: &Availability) -> Point {
        let ratio =
            |part: u64, whole: u64, told: bool| (told && whole > 0).then(|| part as f64 / whole as f64);
        let lifetime = ratio(totals.lifetime_us_sum, totals.allocations, SortKey::Lifetime.is_known(known));
        let duration = recording.duration_us;
        let rate = |value: u64, told: bool| {
            ratio(value, duration, told).map(|rate| rate * rate_units(recording.time_unit) as f64)
        };
        Point {
            size: ratio(totals.bytes, totals.allocations, SortKey::Size.is_known(known)),
            lifetime,
            lifetime_share: lifetime.filter(|_| duration > 0).map(|time| time / duration as f64),
            allocations_rate: rate(totals.allocations, known.allocations),
            bytes_rate: rate(totals.bytes, known.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals() -> SiteTotals {
        SiteTotals {
            allocations: 3,
            bytes: 26,
            reallocations: 1,
            temporary: 2,
            peak_bytes: 5,
            peak_blocks: 6,
            leaked_bytes: 7,
            leaked_blocks: 8,
            live_bytes_max: 9,
            live_blocks_at_max: 10,
            lifetime_us_sum: 40,
            read_bytes: 11,
            ..SiteTotals::default()
        }
    }

    #[test]
    fn each_key_has_its_metric() {
        let metrics: Vec<(&str, u64)> =
            SortKey::ALL.iter().map(|key| (key.word(), key.of_site(&totals()))).collect();
        let expected = [
            ("allocations", 3),
            ("bytes", 26),
            ("peak", 5),
            ("leaked", 7),
            ("temporary", 2),
            ("reallocations", 1),
            ("peak-blocks", 6),
            ("leaked-blocks", 8),
            ("max", 9),
            ("max-blocks", 10),
            ("size", 8),
            ("lifetime", 13),
            ("rate", 3),
            ("reads", 11),
            ("writes", 0),
            ("unused", 26),
        ];
        assert_eq!(metrics, expected);
        assert_eq!(SortKey::Size.rank(&totals()), 8_666_666);
        assert_eq!(SortKey::Lifetime.rank(&totals()), 13_333_333);
    }

    #[test]
    fn a_site_that_only_failed_has_no_averages() {
        let failed = SiteTotals { failed: 1, ..SiteTotals::default() };
        for key in SortKey::ALL {
            assert!(!key.concerns(&failed), "{}", key.word());
            assert_eq!((key.of_site(&failed), key.rank(&failed)), (0, 0));
        }
        let point =
            Point::of(&failed, &Recording { duration_us: 10, ..Recording::default() }, &Availability::ALL);
        let rates = (point.allocations_rate, point.bytes_rate);
        assert_eq!((point.size, point.lifetime, point.lifetime_share), (None, None, None));
        assert_eq!(rates, (Some(0.0), Some(0.0)));
    }

    #[test]
    fn averages_rates_and_shares() {
        let recording = Recording { duration_us: 2_000_000, ..Recording::default() };
        let totals =
            SiteTotals { allocations: 4, bytes: 100, lifetime_us_sum: 2_000_000, ..SiteTotals::default() };
        let point = Point::of(&totals, &recording, &Availability::ALL);
        let expected = Point {
            size: Some(25.0),
            lifetime: Some(500_000.0),
            lifetime_share: Some(0.25),
            allocations_rate: Some(2.0),
            bytes_rate: Some(50.0),
        };
        assert_eq!(point, expected);
        let bytes = Recording { time_unit: TimeUnit::Bytes, ..recording };
        assert_eq!(Point::of(&totals, &bytes, &Availability::ALL).allocations_rate, Some(2.097_152));
    }

    #[test]
    fn unavailable_metrics_are_none() {
        let recording = Recording { duration_us: 5, ..Recording::default() };
        assert_eq!(Point::of(&totals(), &recording, &Availability::NOTHING), Point::default());
        assert!(SortKey::ALL.iter().all(|key| !key.is_known(&Availability::NOTHING)));
        let everything = Availability { accesses: true, ..Availability::ALL };
        assert!(SortKey::ALL.iter().all(|key| key.is_known(&everything)));
        let instant = Point::of(&totals(), &Recording::default(), &Availability::ALL);
        assert_eq!((instant.allocations_rate, instant.lifetime_share), (None, None));
    }
}

//! What a test may cost, as its manifest says it.

use crate::measurement::Metric;

/// The limit of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Fixed bounds, both inclusive; independent of the baseline.
    Absolute {
        /// Less is an improvement to lock in. None: nothing is too little.
        min: Option<u64>,
        /// More is a regression. None: nothing is too much.
        max: Option<u64>,
    },
    /// So much to either side of the baseline's value.
    Relative(Tolerance),
    /// It is not judged.
    None,
}

/// How far a value may differ from its reference, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// In the metric's own unit.
    pub abs: Option<u64>,
    /// In millionths of the reference: 0.1 % is 1000.
    pub rel_ppm: Option<u64>,
    /// How both are combined.
    pub combine: Combine,
}

/// When a value fails that has an absolute and a relative tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// Only when it exceeds both: the wider tolerance counts.
    #[default]
    And,
    /// When it exceeds either: the narrower tolerance counts.
    Or,
}

impl Tolerance {
    /// Returns how far a value may differ from its reference. A share of 0 is 0: then only the absolute part counts,
    /// even if either would fail the test.
    pub fn of(&self, reference: u64) -> u64 {
        let share = |ppm: u64| {
            let share = u128::from(reference) * u128::from(ppm) / 1_000_000;
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        match (self.abs, self.rel_ppm.map(share)) {
            (Some(abs), Some(_)) if reference == 0 => abs,
            (Some(abs), Some(rel)) => match self.combine {
                Combine::And => abs.max(rel),
                Combine::Or => abs.min(rel),
            },
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => 0,
        }
    }
}

/// The limits of one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Metrics that have none of their own are judged by the defaults. Each metric at most once.
    pub by_metric: Vec<(Metric, Limit)>,
    /// Globs of function or module names: sites with such a frame are not judged.
    pub ignore_sites: Vec<String>,
}

impl Limits {
    /// Returns whether a metric of a whole process, which the kernel reports, is limited, so that it has to be
    /// measured.
    pub fn are_of_processes(&self) -> bool {
        self.limited().any(|metric| matches!(metric, Metric::PeakRss | Metric::Wall))
    }

    /// The metrics that have a limit.
    pub(crate) fn limited(&self) -> impl Iterator<Item = Metric> + '_ {
        let has_one = |(_, limit): &&(Metric, Limit)| *limit != Limit::None;
        self.by_metric.iter().filter(has_one).map(|(metric, _)| *metric)
    }

    /// The limit of a metric, if it has one of its own.
    pub fn of(&self, metric: Metric) -> Option<Limit> {
        self.by_metric.iter().find(|(of, _)| *of == metric).map(|(_, limit)| *limit)
    }
}

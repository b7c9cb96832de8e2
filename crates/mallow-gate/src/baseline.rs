//! What a test cost when somebody said that this is fine: a JSON file in the repository for each test and environment.
//!
//! A file is written by hand-made rules rather than by a general pretty printer: keys sorted, one line for each
//! site and each frame, so that a change of one site is a change of one line in a review.

mod kept;
mod lines;
mod of_measurement;
mod read;
mod write;

use crate::measurement::{Environment, Metric, Site};
use crate::result::Spread;
pub use kept::{as_kept, kept_stack};
use std::collections::BTreeMap;

/// The schema of the files that this build writes and reads.
pub const SCHEMA: &str = "mallow.baseline/1";

/// So many sites are kept.
pub const SITES_MAX: usize = 200;

/// The stored measurement of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The test's name.
    pub name: String,
    /// The region's name as the program has it; empty for a whole process.
    pub region: String,
    /// Where it was measured; it is valid for that environment only.
    pub environment: Environment,
    /// More about the place, for people; not compared.
    pub machine: Machine,
    /// Operations in one run.
    pub ops: Option<u64>,
    /// How many runs it was made of.
    pub runs: u32,
    /// The runs of each metric that was measured.
    pub spreads: BTreeMap<Metric, Spread>,
    /// The sites of the judged run, at most [`SITES_MAX`] with [`kept_stack`]s, by stack from the outermost frame.
    pub sites: Vec<Site>,
    /// The sites for which there was no room.
    pub left_out: LeftOut,
}

/// The machine on which a baseline was made, in plain words. Counts seldom depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Such as `6.1`; empty when not known, as the others.
    pub kernel: String,
    /// Such as `Debian 12`.
    pub distribution: String,
    /// Such as `AMD EPYC 7B13`.
    pub cpu: String,
}

/// The sum of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub sites: u64,
    /// Their allocations.
    pub allocations: u64,
}

/// Which baseline exists for a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// For this environment.
    Exact(Box<Baseline>),
    /// Only for others, in the order of their names.
    OtherEnvironment(Vec<Baseline>),
    /// Nothing.
    None,
}

/// Why a baseline cannot be read or written: a sentence with the file and the place in it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BaselineError(pub String);

impl Baseline {
    /// The runs' values of a metric; none where it was not known.
    pub fn spread(&self, metric: Metric) -> Option<&Spread> {
        self.spreads.get(&metric)
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;

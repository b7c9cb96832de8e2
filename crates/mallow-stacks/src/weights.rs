//! What stacks are weighed by: a set of metrics, and a profile as trees, diffs and flame graphs see it.
//!
//! Everything that reads these traits is compiled anew for each set of metrics, so none of them may be made an object.

use crate::{ProcessIndex, Site, Stacks};
use mallow_base::{Bytes, Count, Micros, grouped};
use std::fmt::Debug;

/// The metrics of a stack, or of several stacks together.
pub trait Weights: Copy + Default + Debug + 'static {
    /// One of the metrics.
    type Metric: Metric<Weights = Self>;

    /// Adds another stack's metrics. A sum that does not fit stays at the largest number.
    fn add(&mut self, other: &Self);

    /// Orders stacks that are equal in the requested metric: larger ones first.
    fn tie(&self) -> [u64; 2];
}

/// One metric of a set. Over stacks it adds up.
pub trait Metric: Copy + Eq + Debug + 'static {
    /// The set.
    type Weights: Weights<Metric = Self>;

    /// All of them, in the order in which they are shown.
    const ALL: &'static [Self];

    /// The same, the most informative first: two stacks that agree in the first available ones are likely to be the
    /// same.
    const TELLING: &'static [Self] = Self::ALL;

    /// Limits as people might write them, for the sentence that refuses another text: `allocations>+1% or leaked>0`.
    const LIMITS: &'static str;

    /// The word for it, as it is typed.
    fn word(self) -> &'static str;

    /// Returns what it counts, in the middle of a sentence.
    fn subject(self) -> &'static str;

    /// Returns its unit.
    fn unit(self) -> Unit;

    /// The metric of a stack.
    fn of_site(self, weights: &Self::Weights) -> u64;

    /// Returns whether a stack has a value in a table of this metric.
    fn concerns(self, weights: &Self::Weights) -> bool {
        self.of_site(weights) > 0
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Calls, blocks, samples: whatever is counted one by one.
    Count,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// A value with its unit, for people; counts in full as long as they fit ten columns.
    pub fn written(self, value: u64) -> String {
        match (self, value) {
            (Unit::Bytes, _) => Bytes(value).to_string(),
            (Unit::Nanoseconds, _) => Micros(value / 1000).to_string(),
            (Unit::Count, 0..100_000_000) => grouped(value),
            (Unit::Count, _) => Count(value).to_string(),
        }
    }
}

/// A profile of any kind.
pub trait StackProfile {
    /// The weights of its stacks.
    type Weights: Weights;

    /// Its stacks.
    fn stacks(&self) -> &Stacks;

    /// Their weights: one entry for each process and stack that has any.
    fn sites(&self) -> &[Site<Self::Weights>];

    /// Returns how many processes it has.
    fn processes(&self) -> usize;

    /// Returns the command and its arguments; empty if unknown.
    fn command(&self) -> &[String];

    /// Returns the path of a process's program; `None` if unknown.
    fn program(&self, process: ProcessIndex) -> Option<&str>;

    /// Returns whether its source has a metric. Unavailable metrics are omitted, and never shown as 0.
    fn knows(&self, metric: <Self::Weights as Weights>::Metric) -> bool;

    /// Returns the weight beyond that of the sites, whose sum is the argument: some tools write only the largest
    /// sites.
    fn beyond(&self, sites: &Self::Weights) -> Self::Weights;
}

/// One of the metrics that a profile's stacks are weighed by.
pub type MetricOf<P> = <<P as StackProfile>::Weights as Weights>::Metric;

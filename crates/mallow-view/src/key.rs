//! What rows of sites are sorted by: a metric, or what follows from several.

use mallow_stacks::{Metric, Weights};

/// A sort key of rows.
pub trait Key: Copy {
    /// The metrics that it reads.
    type Weights: Weights;

    /// The metric to sort by, highest first.
    fn rank(self, weights: &Self::Weights) -> u128;

    /// Returns whether a site has a value for this key.
    fn concerns(self, weights: &Self::Weights) -> bool;

    /// Returns the weight of a site for this key: a metric that adds up over sites.
    fn weigh(self, weights: &Self::Weights) -> u64;
}

impl<M: Metric> Key for M {
    type Weights = M::Weights;

    fn rank(self, weights: &M::Weights) -> u128 {
        u128::from(self.of_site(weights))
    }

    fn concerns(self, weights: &M::Weights) -> bool {
        Metric::concerns(self, weights)
    }

    fn weigh(self, weights: &M::Weights) -> u64 {
        self.of_site(weights)
    }
}

//! A diff of two profiles, with what its text and its JSON say beside it.

use super::{Comparison, DiffOptions, ShareVerdict, Verdict};
use mallow_profile::Profile;
use mallow_stacks::{MetricOf, StackProfile};
use std::num::NonZeroU64;
use std::path::Path;

/// A profile that is compared.
#[derive(Clone, Copy, Debug)]
pub struct DiffInput<'a, P = Profile> {
    /// Its file.
    pub file: &'a Path,
    /// Its contents.
    pub profile: &'a P,
    /// Whether nothing of it is missing.
    pub complete: bool,
    /// Warnings of the reader.
    pub warnings: &'a [String],
}

/// A diff with what a front end needs to know about it.
#[derive(Clone, Copy, Debug)]
pub struct DiffReport<'a, P: StackProfile = Profile> {
    /// Before and after.
    pub sides: [DiffInput<'a, P>; 2],
    /// The options.
    pub options: &'a DiffOptions<MetricOf<P>>,
    /// Operations that both runs made, to divide by.
    pub per: NonZeroU64,
    /// Sites of a section; none for as many as the front end thinks fit.
    pub limit: Option<usize>,
    /// The comparison.
    pub comparison: &'a Comparison<'a, P::Weights>,
    /// The results of limits.
    pub verdicts: &'a [Verdict<MetricOf<P>>],
    /// The results of limits on functions' shares.
    pub shares: &'a [ShareVerdict],
}

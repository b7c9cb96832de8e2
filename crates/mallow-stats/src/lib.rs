//! Statistics of repeated runs: summaries of a series, comparisons of two with a confidence interval, and disturbances.
//!
//! Everything is a pure function of numbers; units are the caller's. This crate must never call two series equal because it
//! has too few observations: without enough pairs there is no interval, and without an interval no verdict.
//!
//! In reading order: [`Summary`] describes one series; [`signed_rank`] is the null distribution of an interval; [`Ratio`] is the
//! ratio of two series; [`Evaluations`] is the plan of interim analyses, and the confidence level of each; [`Verdict`] is the
//! conclusion; [`disturbances`] are reasons not to trust a series. [`Proportion`] is the confidence interval of a share of samples.

mod disturbance;
mod evaluations;
mod proportion;
mod ratio;
pub mod signed_rank;
mod summary;
mod verdict;

pub use disturbance::{Disturbance, autocorrelation, disturbances, robust_deviation};
pub use evaluations::{ERROR, Evaluations, PAIRS_AT_LOOKS};
pub use proportion::Proportion;
pub use ratio::Ratio;
pub use summary::{PERCENTILES, Summary};
pub use verdict::{Verdict, is_precise};

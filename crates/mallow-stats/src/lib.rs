//! Statistics of repeated runs: what is typical of a series, how two compare and how sure that is, and what disturbed them.
//!
//! Everything is a pure function of numbers; units are the caller's. This crate must never call two things the same because it
//! has seen too little of them: without enough pairs there is no interval, and without an interval no verdict.
//!
//! In reading order: [`Summary`] describes one series; [`signed_rank`] is the null distribution behind an interval; [`Ratio`] is how much
//! a series is of another; [`Looks`] says when one may look, and how sure an interval must be then; [`Verdict`] is what follows;
//! [`disturbances`] are the reasons why a series is not to be trusted. [`Proportion`] is how sure a part of samples is.

mod disturbance;
mod looks;
mod proportion;
mod ratio;
pub mod signed_rank;
mod summary;
mod verdict;

pub use disturbance::{Disturbance, autocorrelation, disturbances, robust_deviation};
pub use looks::{ERROR, Looks, PAIRS_AT_LOOKS};
pub use proportion::Proportion;
pub use ratio::Ratio;
pub use summary::{PERCENTILES, Summary};
pub use verdict::{Verdict, is_precise};

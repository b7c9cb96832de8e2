//! The gate at work: allocation tests of a project, built, run, measured, and held against what is in the repository.
//!
//! ```text
//! mallow.toml or a folder of test_*.c ── suite ──> TestSpec ── build ──> command ── run ──> Measurement ─┐
//!                                                                           baselines ──> Baseline ─┴─ mallow-gate ──> TestResult
//! ```
//!
//! [`manifest`] and [`suite`] say which tests there are, [`mod@build`] makes programs of their sources, [`run`] measures
//! them, [`baselines`] is the folder of what they may cost; [`mod@check`] is one whole check, [`update`] makes new baselines of it.
//! Verdicts are `mallow-gate`'s, which runs nothing: whatever looks at a result needs that crate and not this one.
//!
//! The crate prints nothing. How a result looks is the front end's affair.

pub mod baselines;
pub mod build;
pub mod check;
mod did_you_mean;
pub mod environment;
pub mod manifest;
mod regions;
pub mod run;
pub mod selection;
pub mod shims;
pub mod suite;
pub mod update;
pub mod workdir;

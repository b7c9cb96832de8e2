//! The gate: allocation tests of a project, run, measured, compared with what is in the repository, and judged.
//!
//! ```text
//! mallow.toml or a folder of test_*.c ── suite ──> Test ── build ──> command ── run ──> Measurement ─┐
//!                                                                             baselines ──> Baseline ─┴─ judge ──> TestResult
//! ```
//!
//! [`manifest`] and [`suite`] say which tests there are, [`build`] makes programs of their sources, [`run`] measures
//! them, [`baseline`] keeps what they may cost, [`judge`] compares. Judging is a pure function of a measurement, a
//! baseline and limits.
//!
//! The crate prints nothing. How a result looks is the front end's affair.

pub mod baseline;
mod blame;
pub mod build;
pub mod check;
pub mod environment;
pub mod glob;
pub mod guards;
pub mod judge;
pub mod limit;
pub mod manifest;
pub mod measurement;
mod nearest;
pub mod nio;
mod regions;
pub mod report_file;
pub mod result;
pub mod run;
#[cfg(test)]
mod sample;
pub mod selection;
pub mod shims;
pub mod site_diff;
pub mod spread;
pub mod suite;
pub mod update;
pub mod workplace;

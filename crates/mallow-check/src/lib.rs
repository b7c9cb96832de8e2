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

pub mod limit;
pub mod manifest;
pub mod measurement;
mod nearest;
pub mod result;

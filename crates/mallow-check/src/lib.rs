//! Runs the gate: builds and runs a project's allocation tests, measures them, and compares with the baselines in the repository.
//!
//! ```text
//! mallow.toml or a folder of test_*.c ── suite ──> TestSpec ── build ──> command ── run ──> Measurement ─┐
//!                                                                           baselines ──> Baseline ─┴─ mallow-gate ──> TestResult
//! ```
//!
//! [`manifest`] and [`suite`] list the tests, [`mod@build`] compiles their sources, [`run`] measures
//! them, [`baselines`] reads and writes the folder of baselines; [`mod@check`] is one whole check, [`update`] turns its results into
//! new baselines. Verdicts come from `mallow-gate`, which runs nothing: code that only shows a result depends on that crate and not
//! on this one.
//!
//! The crate prints nothing. Front ends print results.

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

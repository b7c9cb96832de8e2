//! What the gate decides: a measurement, what it may cost, and the verdict, all of them values.
//!
//! ```text
//! Measurement ─┐
//! Baseline    ─┼─ judge ──> TestResult ── guards ──> CheckResult
//! Limits      ─┘
//! ```
//!
//! The crate runs nothing and opens nothing: no process, no file, no clock. Whoever has a measurement, of today or of a report,
//! gets the same verdict; `mallow-check` builds, runs and measures, and keeps baselines in their folder.
//!
//! To read in this order: [`measurement`], [`limit`], [`baseline`] (what is compared), [`result`] (what comes of it),
//! [`spread`] (the runs of one metric), [`judge`], [`site_diff`] and [`blame`] (which stacks changed, and where), [`guards`]
//! (what only the whole suite shows). [`nio`] is SwiftNIO's gate.

pub mod baseline;
pub mod blame;
pub mod environment;
pub mod glob;
pub mod guards;
pub mod json_error;
pub mod judge;
pub mod limit;
pub mod measurement;
pub mod nio;
pub mod regions;
pub mod result;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod site_diff;
pub mod spread;

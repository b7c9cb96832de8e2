//! The decisions of the gate: a measurement is compared with its limits and its baseline, and the result is a verdict.
//!
//! ```text
//! Measurement ─┐
//! Baseline    ─┼─ judge ──> TestResult ── guards ──> CheckResult
//! Limits      ─┘
//! ```
//!
//! The crate runs nothing and opens nothing: no process, no file, no clock. A measurement yields the same verdict whether it was
//! taken today or comes from a report. `mallow-check` builds, runs and measures, and keeps the folder of baselines.
//!
//! In reading order: [`measurement`], [`limit`], [`baseline`] (the inputs), [`result`] (the output),
//! [`spread`] (the runs of one metric), [`judge`], [`site_diff`] and [`blame`] (which stacks changed, and where), [`guards`]
//! (checks of the suite as a whole). [`nio`] is SwiftNIO's gate.

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

//! SwiftNIO's allocation tests: their logs, their threshold files and the rules of their gate, so that a project can move
//! over with its limits; and the limits of package-benchmark, by which it holds some of them by now.
//!
//! The rules are those of the framework as of 2026-07: of each test the total is fine in (limit - 1000, limit], what remains between
//! -4 and 4, leaked descriptors at 0; a test without a limit fails.

mod benchmark;
mod gate;
mod log;
mod thresholds;

pub use benchmark::{BENCHMARK_ENDING, BenchmarkLimits};
pub use gate::{Failure, WINDOW, check};
pub use log::{Log, LogTest, read_log};
pub use thresholds::{Thresholds, ThresholdsError, slack};

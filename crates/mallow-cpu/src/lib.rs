//! The model of a CPU profile: samples of stacks, each with its weight.
//!
//! All views of CPU time are made from a [`CpuProfile`], whether mallow sampled it or another tool's file contains it. Its
//! stacks are those of `mallow-stacks`, so tables, trees, diffs and flame graphs need no code of their own.
//!
//! This crate knows no files, no system calls, and not where symbols came from. It must never do I/O.
//!
//! In reading order:
//! - [`CpuTotals`], [`CpuMetric`], [`CpuAvailability`]: the metrics;
//! - [`CpuProfile`] with its processes, threads and samples;
//! - [`Quality`]: how far it can be trusted;
//! - [`Window`]: a part of it; [`fn@together`]: several runs merged into one.

mod metrics;
mod model;
mod redact;
mod together;
mod window;

pub use metrics::{CpuAvailability, CpuMetric, CpuTotals};
pub use model::{CpuProcess, CpuProfile, CpuRecording, CpuSample, CpuThread, Quality, ThreadIndex};
pub use together::together;
pub use window::Window;

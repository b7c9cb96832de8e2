//! The model of where a processor's time went: samples of stacks, each with its weight.
//!
//! A [`CpuProfile`] is what all views of such a profile are made from, whether mallow sampled it or another tool's file holds it. Its
//! stacks are those of `mallow-stacks`, so tables, trees, diffs and flame graphs need nothing of their own.
//!
//! This crate knows no files, no system calls, and not where symbols came from. It must never do I/O.
//!
//! In the order of reading:
//! - [`CpuTotals`], [`CpuMetric`], [`CpuAvailability`]: what is counted;
//! - [`CpuProfile`] with its processes, threads and samples;
//! - [`Quality`]: how far it can be trusted;
//! - [`Window`]: a part of it; [`fn@together`]: several runs as one.

mod metrics;
mod model;
mod together;
mod window;

pub use metrics::{CpuAvailability, CpuMetric, CpuTotals};
pub use model::{CpuProcess, CpuProfile, CpuRecording, CpuSample, CpuThread, Quality, ThreadIndex};
pub use together::together;
pub use window::Window;

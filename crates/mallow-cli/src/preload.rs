//! The libraries that enter the profiled program, and the program that starts timed ones. They travel inside the binary, so that nobody sets a
//! path.

/// `libmallow_preload.so`, as the build script built it.
pub(crate) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmallow_preload.so"));

/// `mallow-spawner`, which starts and times the commands of a benchmark.
pub(crate) const SPAWNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mallow-spawner"));

/// `libmallow_timers.so`, which samples where perf events are refused.
pub(crate) const TIMERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmallow_timers.so"));

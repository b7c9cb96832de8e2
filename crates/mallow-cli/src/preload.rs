//! The libraries that are loaded into the profiled program, and the program that starts timed ones. They are embedded
//! in the binary, so that no path has to be set.

/// `libmallow_preload.so`, as the build script built it.
pub(crate) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmallow_preload.so"));

/// `mallow-spawner`, which starts and times the commands of a benchmark.
pub(crate) const SPAWNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mallow-spawner"));

/// `libmallow_timers.so`, which samples where perf events are refused.
pub(crate) const TIMERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmallow_timers.so"));

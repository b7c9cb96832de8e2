//! The library that enters the profiled program. It travels inside the binary, so that nobody sets a path.

/// `libmallow_preload.so`, as the build script built it.
pub(crate) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmallow_preload.so"));

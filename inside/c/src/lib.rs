//! Heap profiles and counts from inside programs in C and C++: what `include/mallow_inside.h` declares, by `mallow-alloc`.
//!
//! Allocations come by `mallow-family`, whose functions stand in front of libc's in the executable that this library is linked into. A panic stays
//! in here: it is an answer of -1.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod family;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod profile;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod scope;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod stats;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod throwing;

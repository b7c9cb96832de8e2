//! The functions of C's malloc family and C++'s operators, as a program calls them, in front of the real ones.
//!
//! The preloaded library exports them, and the static library for programs that nothing can be preloaded into (`inside/c`). Every function begins
//! with a few instructions that hand its caller's stack pointer and frame pointer on to a function that does the work, so that the
//! caller's stack can be found exactly and no frame of ours stands in it.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[cfg(not(feature = "wrapped"))]
pub mod cxx;
pub mod family;
mod stub;

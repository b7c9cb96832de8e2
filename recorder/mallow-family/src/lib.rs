//! Hooks for C's malloc family and C++'s operators, in front of the real functions.
//!
//! The preloaded library exports them, and so does the static library for programs that nothing can be preloaded into
//! (`inside/c`). Every hook begins with a few instructions that pass its caller's stack pointer and frame pointer to the function
//! that does the work. So the caller's stack can be found exactly, and no frame of ours is on it.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[cfg(not(feature = "wrapped"))]
pub mod cxx;
pub mod family;
#[cfg(not(any(feature = "wrapped", feature = "gated")))]
pub mod libc_names;
mod stub;
mod work;

/// The hook of a function of the C library by its name, and the function behind the hook.
#[cfg(not(any(feature = "wrapped", feature = "gated")))]
pub fn hook_of(name: &[u8]) -> Option<(usize, &'static mallow_recorder::real::Real)> {
    let is_its = |hook: &&stub::NamedHook| hook.0.as_bytes() == name;
    let mut all = [family::HOOKS, family::elsewhere::HOOKS, libc_names::HOOKS].into_iter().flatten();
    all.find(is_its).map(|(_, hook, real)| (*hook as usize, *real))
}

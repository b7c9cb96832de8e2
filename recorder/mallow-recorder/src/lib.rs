//! What runs inside the profiled process: it finds the caller's stack and writes what happened into shared
//! memory.
//!
//! The library that exports the malloc family (`mallow-preload`) calls in here with the caller's registers.
//! The rules of this crate, because its host may be a database that must not stop:
//!
//! - no allocation, no lock that the host can hold, no library call but the loader's object look-up;
//! - a signal handler may enter at any instruction, and its calls are recorded like any other;
//! - the host's stack is read, never written; its file descriptors, signals and errno are left alone;
//! - when something is missing the host goes on and a counter says what was not recorded.
//!
//! Reading order: [`thread`] (who is calling, and may we record?), [`ring`] (the record), [`memo`] (the
//! stack, fast), [`rules`] and [`walk`] (the stack, from scratch), [`nodes`] (stacks as ids), [`process`]
//! (the start, and forks).

#![cfg_attr(not(test), no_std)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod branches;
pub mod cfi;
pub mod elf;
pub mod marks;
pub mod memo;
pub mod modules;
pub mod nodes;
pub mod objects;
pub mod process;
pub mod ring;
pub mod rules;
pub mod sandbox;
mod silence;
pub mod stack_range;
pub mod stamps;
pub mod stat;
pub mod sys;
pub mod thread;
pub mod tls;
#[cfg(feature = "verify")]
pub mod verify;
pub mod walk;

/// The caller of a hooked function, as its first instruction saw it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The stack pointer: it points at the return address.
    pub sp: usize,
    /// The frame pointer register, whatever the caller uses it for.
    pub bp: usize,
}

//! Counts what a process and its children do: cycles, instructions and cache misses where the processor counts them, page faults
//! and context switches where the kernel does.
//!
//! An [`Event`] has `perf`'s name. [`Counters`] are opened on a process that is about to start a command; they begin when the
//! command's program begins, and follow its threads and children. If the kernel refuses one, the [`Refusal`] is a sentence with the
//! cure; a count that was not taken is never 0. This crate must never sample, and never observe a process that it was not given.
//!
//! In reading order: `event`, `refusal`, `counters`.

mod counters;
mod event;
mod refusal;

pub use counters::{Count, Counters, Usable, usable};
pub use event::{DEFAULT_EVENTS, Event};
pub use refusal::Refusal;

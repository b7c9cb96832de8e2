//! Counts what a process and all that it starts do: cycles, instructions, misses where the processor counts them, faults and switches where
//! the kernel does.
//!
//! An [`Event`] has `perf`'s name. [`Counters`] are opened on a process that is about to start a command; they begin when the command's
//! program begins, and follow its threads and children. What the kernel refuses is a [`Refusal`] with a sentence that says what to do; a count
//! that was not taken is never 0. This crate must never sample, and never look at a process that it was not given.
//!
//! In reading order: `event`, `refusal`, `counters`.

mod counters;
mod event;
mod refusal;

pub use counters::{Count, Counters, Usable, usable};
pub use event::{DEFAULT_EVENTS, Event};
pub use refusal::Refusal;

//! What crosses a boundary: the memory that the recorder and the collector share, and the chunks of a trace
//! file.
//!
//! Both sides of each boundary are compiled from this crate, so a layout exists once. It holds no behaviour
//! beyond packing and unpacking: who waits for whom, and what a figure means, is decided elsewhere.
//!
//! - [`shared`] is the memory between a profiled process and the collector: header, node table, module log,
//!   rings.
//! - [`event`] is the record that a hooked call leaves in its thread's ring.
//! - [`executable`] says whether a library can be preloaded into a program.
//! - [`hello`] is the one message that hands the memory over.
//! - [`starts`] are notes in that memory: programs that are started.
//! - [`trace`] (feature `trace`) is the file: chunks, varints, event columns.
//!
//! The recorder builds this crate without the feature: no allocator, no std, no dependency.

#![no_std]

#[cfg(feature = "trace")]
extern crate alloc;

pub mod event;
pub mod executable;
pub mod hello;
pub mod shared;
pub mod starts;
#[cfg(feature = "trace")]
pub mod trace;

/// The version of the counting rules (the guide's page on counting states them). Traces and baselines carry
/// it.
pub const COUNTING_VERSION: u32 = 1;

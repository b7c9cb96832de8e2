//! The JSON documents that scripts read: their shapes are promises, described by `docs/schema/`.
//!
//! Only these types are serialised, never those of the model, so that it can change without breaking a script. The exception is
//! a soak's samples: the lines that `--samples` writes while it runs promise their form already. This crate must never decide
//! anything; the sentences that a document carries are those of `mallow-text`.
//!
//! One module for each document: [`stat`], [`report`] with [`events`], [`cpu`], [`diff`], [`check`], [`mod@bench`], [`soak`], [`gc_log`], [`heap`], [`version`]. Those that a later run compares
//! with can be read again.

pub mod bench;
pub mod check;
pub mod cpu;
pub mod diff;
pub mod events;
pub mod functions;
pub mod gc_log;
pub mod heap;
mod parts;
pub mod report;
#[cfg(test)]
mod schema_tests;
pub mod soak;
pub mod stat;
pub mod version;

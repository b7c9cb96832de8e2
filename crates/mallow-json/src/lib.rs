//! The JSON documents that scripts read. Their shapes are promises, described by `docs/schema/`.
//!
//! Only types of this crate are serialised, never those of the model, so that it can change without breaking a script. The
//! exception are a soak's samples: the lines that `--samples` writes while it runs have the model's form. This crate must never
//! decide anything; sentences in a document come from `mallow-text`.
//!
//! One module for each document: [`stat`], [`report`] with [`events`], [`cpu`], [`diff`], [`check`], [`mod@bench`], [`soak`],
//! [`gc_log`], [`heap`], [`version`]. Documents that a later run is compared with can be parsed again.

pub mod bench;
pub mod check;
pub mod config;
pub mod cpu;
pub mod diff;
pub mod events;
mod frame_table;
pub mod functions;
pub mod gc_log;
pub mod heap;
mod parts;
pub mod report;
#[cfg(test)]
mod schema_tests;
pub mod soak;
mod spelling;
pub mod stat;
pub mod version;

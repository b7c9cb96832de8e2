//! Names of code that a program made while it ran, as its runtime wrote them down.
//!
//! Runtimes write either a perf map, a line for each function, or a jitdump, a record for each. Both say what lay where and not when it
//! was taken away again: of two functions at one address the later one counts.
//!
//! This crate must never believe a file that somebody else could have written, nor ask a runtime for anything.
//!
//! In reading order: `code_names` (functions by address), `jitdump`, `frame` (a name as a frame of its language).

mod code_names;
mod frame;
pub mod jitdump;

pub use code_names::{CodeNames, is_trusted, map_path};
pub use frame::frame_of;

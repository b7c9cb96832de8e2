//! Reads Java frames from outside the JVM's process: which methods are at an address of its code, with their lines, and which frame
//! called them.
//!
//! HotSpot has no list of frames: a thread's frames are those of its native stack. For an address in its code heaps, the tables for
//! the JVM's debugger say how the frame is unwound and which methods it contains. All of it is read by copying the process's memory,
//! and what was found for an address or a method is cached, so that a stack of known code costs no reads.
//!
//! The process is not ours and may contain anything: every count, length and loop is bounded here, and invalid data ends the walk.
//! Nothing of the JVM is stopped, called or asked.
//!
//! Known limit: the code at an address is read some milliseconds after the sample, and code that was discarded and
//! replaced meanwhile is taken for what was there before, or for its replacement.
//!
//! This crate must never read the memory of a process that its caller did not name, nor decide what is shown.
//!
//! In reading order: `memory` (bytes of a process), `layout` (field offsets of this JVM), `blobs` (a piece of code), `scopes` (the
//! methods at an address in it), `methods` (names and lines), `innermost` (where an interrupted function's return address is), `jvm`
//! (a step of a stack walk).

mod blobs;
mod innermost;
mod jvm;
mod layout;
mod memory;
mod methods;
mod scopes;

pub use jvm::{At, Jvm, Unread};
pub use layout::Exports;
pub use memory::{Memory, Process, Unreadable};

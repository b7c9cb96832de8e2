//! Frames of Java, read from outside of the JVM's process: which methods stand at an address of its code, with their lines, and who called.
//!
//! HotSpot has no list of frames: a thread's are those of its native stack, and where one lies in the heaps of code the tables for the JVM's
//! debugger tell how it is left and which methods stand there. All of it is read by copies of the process's memory, and what was found out at an address or of
//! a method is kept, so that a stack of code that was met before costs no reads.
//!
//! The process is somebody else's and may write anything: every count, length and loop is bounded here, and what does not fit ends the walk. Nothing of the
//! JVM is stopped, called or asked. The doubt that remains: what stands at an address is read some milliseconds after the sample, and code that was thrown away and
//! replaced meanwhile is taken for what it was before, or for what came.
//!
//! This crate must never read the memory of a process that its caller did not name, nor decide what is shown.
//!
//! In reading order: `memory` (bytes of a process), `layout` (where this JVM keeps things), `blobs` (a piece of code), `scopes` (the methods at one of its
//! places), `methods` (names and lines), `innermost` (where an interrupted function's return address lies), `jvm` (a step of a walk).

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

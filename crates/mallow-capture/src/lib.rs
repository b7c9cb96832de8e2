//! Snapshots of managed heaps, asked of the processes that hold them.
//!
//! [`capture`] recognises the runtime of a running process ([`process`]) and asks it: Ruby and Python through the hook that [`hooked`] puts
//! into a command, Node by the signal that it was told to listen to, a JVM through its
//! attach interface, [`attach`]. What comes of it goes into a file that only
//! its owner can read, and over no other; with secrets left out where that can be done (`redact`).
//!
//! This crate must never read a snapshot for what lies in it, nor stay in the way of the program: it takes no signal from it, and
//! what is asked of it is asked once.
//!
//! In reading order: [`process`], `target`, `hook`, `fifo`, `node`, [`attach`], `jvm`, `redact`, `capture`.

pub mod attach;
mod capture;
mod error;
mod fifo;
mod hook;
mod jvm;
mod node;
pub mod process;
mod redact;
mod target;

pub use capture::{Captured, Options, capture};
pub use error::CaptureError;
pub use hook::{PYTHON_HEAP, hooked};

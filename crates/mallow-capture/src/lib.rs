//! Captures heap snapshots of managed runtimes from running processes.
//!
//! [`capture`] recognises the runtime of a running process ([`process`]) and requests a snapshot: from Ruby and Python by a hook
//! that [`hooked`] puts into a command, from Node by a signal that it was started to listen to, from a JVM by its
//! attach interface, [`attach`]. The snapshot is written to a new file that only its owner can read, never over an existing
//! one; secrets are removed where that is possible (`redact`).
//!
//! This crate must never analyse a snapshot, nor disturb the program: it takes no signal away from it, and
//! sends each request only once.
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

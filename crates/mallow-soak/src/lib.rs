//! A leak test under load: starts a server (or watches one that runs), gives it work in equal pieces, looks at it
//! whenever it has come to rest, and says whether it leaks.
//!
//! The phases are in [`soak()`]. The load is `mallow-load`'s, the live heap `mallow-collect`'s, what is seen and reported
//! `mallow-evidence`'s, the verdict `mallow-growth`'s: this crate brings them together and owns the server's life. It never
//! ends a process that it did not start, and leaves none behind.

mod deadline;
mod error;
mod growth;
mod holders;
mod journal;
mod observe;
mod options;
mod phases;
mod processes;
mod readiness;
mod runtime;
mod server;
mod shell;
mod snapshots;
mod soak;
mod sockets;
mod tail;
mod work;

pub use error::SoakError;
pub use journal::read_journal;
pub use options::{Collection, Ready, Server, SoakOptions, Work};
pub use soak::soak;

//! A leak test under load: starts a server (or observes one that runs), sends it load in equal pieces, measures it
//! whenever it is idle, and decides whether it leaks.
//!
//! The phases are in [`soak()`]. The load comes from `mallow-load`, the live heap from `mallow-collect`, observations and the report
//! are types of `mallow-evidence`, the verdict comes from `mallow-growth`. This crate combines them and manages the server's
//! lifetime. It never ends a process that it did not start, and leaves none behind.

mod deadline;
mod error;
mod growth;
mod growth_by_age;
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

//! A leak test under load: starts a server (or watches one that runs), gives it work in equal pieces, looks at it
//! whenever it has come to rest, and says whether it leaks.
//!
//! The phases are in [`soak()`]; what is looked at in [`Sample`]; what comes of it in [`SoakReport`]. The load is
//! `mallow-load`'s, the verdict `mallow-growth`'s, the live heap `mallow-collect`'s: this crate brings them together
//! and owns the server's life. It never ends a process that it did not start, and leaves none behind.

mod course;
mod error;
mod evidence;
mod growth;
mod holders;
mod journal;
mod observe;
mod options;
mod processes;
mod progress;
mod readiness;
mod report;
mod runtime;
mod sample;
mod server;
mod soak;
mod sockets;
mod tail;
mod work;

pub use error::SoakError;
pub use journal::{JournalHead, JournalRead, read_journal};
pub use options::{Collection, Ready, Server, SoakOptions, Work};
pub use progress::{Phase, Progress};
pub use report::{Comparison, Growth, MappingGrowth, Plane, SoakReport, Unrecorded};
pub use sample::{
    AllocatorFigures, HeapFigures, LatencyFigures, LoadFigures, Memory, RuntimeFigures, Sample,
};
pub use soak::{from_journal, soak};

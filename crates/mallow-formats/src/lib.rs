//! Profile files in and out, one file per format; our own trace is one of them, and `mallow_trace` reads it.
//!
//! [`open`] is the door: it looks at a file's first bytes, undoes its compression, and hands it to the reader of its format. What
//! comes of it is a [`Document`]. A reader of profiles returns an [`Imported`] one with its warnings, or one [`ImportError`] that names the place: never a panic, never
//! silence, never memory that the file's size does not justify. [`export`] writes what others read.
//!
//! This crate must never decide what a metric means: it fills the profile, and [`mallow_profile::Availability`] says what a format could
//! not tell.

pub mod allocator;
mod any_imported;
mod cpu_labels;
mod document;
mod error;
mod events;
pub mod export;
mod format;
pub mod gc_log;
mod import;
mod lines;
mod perf_script_head;
mod pprof_proto;
mod rust_name;
pub mod smaps;
mod snapshot;
mod source;
pub mod stackdiff;

pub use any_imported::{AnyImported, ImportedCpu};
pub use document::{
    Document, format_of, open, open_any_profile, open_gc_log, open_histogram, open_objects, open_profile,
    open_snapshot,
};
pub use error::{ImportError, Position};
pub use events::EventFile;
pub use format::{Format, Kind};
pub use import::{read_any_as, read_as};
pub use mallow_profile::Imported;
pub use snapshot::read_snapshot_as;

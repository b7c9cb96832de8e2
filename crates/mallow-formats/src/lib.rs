//! Parses and writes profile files, one module per format. Our own trace is one of them; `mallow_trace` parses it.
//!
//! [`open`] is the entry point: it recognises the format by a file's first bytes, decompresses the file, and calls the format's
//! reader. It returns a [`Document`]. A reader of profiles returns an [`Imported`] profile with its warnings, or one [`ImportError`]
//! with the position in the file. It never panics, never fails silently, and never uses memory out of proportion to the file's size.
//! [`export`] writes the formats of other tools.
//!
//! This crate must never decide what a metric means: it fills the profile, and [`mallow_profile::Availability`] says which metrics a
//! format does not contain.

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

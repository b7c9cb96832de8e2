//! Writes profiles in the formats of other tools, one module per format.
//!
//! A format that cannot hold a metric leaves it out, and the writer says so in its warnings; `docs/guide/formats.md` lists it too.

mod cpu;
mod events;
mod firefox;
mod folded;
pub(crate) mod heaptrack;
mod jemalloc_heap;
mod layout;
mod massif;
mod needs;
mod packing;
mod pprof;
mod rooted;
mod speedscope;

pub use cpu::{missing_of_cpu, write_cpu};
pub use events::{ExportedEvents, write_trace, write_with_events};
pub use needs::missing;
pub use packing::{Packing, write_packed};

pub use mallow_profile::Measure;

use mallow_base::words;
use mallow_profile::Profile;
use std::io::{self, Write};

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Our own trace, without events.
    Mallow,
    /// jemalloc's heap profile, with names for jeprof.
    JemallocHeap,
    /// pprof's protobuf, compressed with gzip.
    Pprof,
    /// DHAT's JSON, version 2.
    Dhat,
    /// massif's text.
    Massif,
    /// heaptrack's interpreted text, version 3.
    Heaptrack,
    /// Folded stacks, one line each.
    Folded,
    /// speedscope's JSON.
    Speedscope,
    /// The Firefox Profiler's JSON, with native allocations.
    Firefox,
}

words! {
    ExportFormat {
        Mallow = "mallow",
        JemallocHeap = "jemalloc-heap",
        Pprof = "pprof",
        Dhat = "dhat",
        Massif = "massif",
        Heaptrack = "heaptrack",
        Folded = "folded",
        Speedscope = "speedscope",
        Firefox = "firefox",
    }
}

impl ExportFormat {
    /// Returns whether the format includes compression.
    pub fn is_packed(self) -> bool {
        matches!(self, ExportFormat::Mallow | ExportFormat::Pprof)
    }
}

/// Options. A format ignores those that do not apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The metric of a format that holds only one.
    pub measure: Measure,
}

/// Writes a profile; returns warnings about what the format cannot hold.
///
/// # Errors
/// The errors of `out`, and the reasons of [`missing`].
pub fn write(
    profile: &Profile,
    format: ExportFormat,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    if let Some(reason) = missing(profile, format) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    match format {
        ExportFormat::Dhat => mallow_dhat::write(profile, out),
        ExportFormat::Massif => massif::write(profile, out),
        ExportFormat::Heaptrack => heaptrack::write(profile, out),
        ExportFormat::Mallow => mallow_trace::write_profile(profile, "mallow", out).map(|()| Vec::new()),
        ExportFormat::JemallocHeap => jemalloc_heap::write(profile, options.measure, out),
        ExportFormat::Pprof => pprof::write(profile, options.measure, out),
        ExportFormat::Folded => folded::write(profile, options.measure, out),
        ExportFormat::Speedscope => speedscope::write(profile, options.measure, out),
        ExportFormat::Firefox => firefox::write(profile, out),
    }
}

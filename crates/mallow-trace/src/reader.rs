//! Reads a trace.
//!
//! A whole trace is opened from its footer of sums: every chunk is read once to check it, in one buffer, and no event
//! is decoded. Where the footer is missing because the recording was cut off, the events are added up again, by the same
//! code that ran beside the program, and a warning says what is missing.
//!
//! A damaged chunk is passed over when the one behind it is intact. Metrics that depended on it are added up from
//! the events before it, with a warning that names the place. When nothing precedes the damage, reading fails.

mod analyse;
mod assemble;
mod checked;
mod gather;
mod locate;
mod named;
mod replay;
mod scan;
mod warnings;

use crate::TraceError;
use gather::Parts;
use mallow_profile::{EventSink, Imported, ProcessIndex, ReallocAttribution};
use scan::Scan;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

/// Reads a trace file.
pub fn read_file(path: &Path) -> Result<Imported, TraceError> {
    read_file_with(path, ReallocAttribution::OwnSite)
}

/// Reads a trace that is in memory.
pub fn read_bytes(bytes: &[u8]) -> Result<Imported, TraceError> {
    read_bytes_with(bytes, ReallocAttribution::OwnSite)
}

/// Reads a trace file with a choice of where reallocations are counted. Any other than the recorded one adds up all events
/// again, and fails on a trace without events.
pub fn read_file_with(path: &Path, attribution: ReallocAttribution) -> Result<Imported, TraceError> {
    Trace::open(BufReader::new(File::open(path)?))?.import(attribution)
}

/// As [`read_file_with`], from memory.
pub fn read_bytes_with(bytes: &[u8], attribution: ReallocAttribution) -> Result<Imported, TraceError> {
    Trace::open(Cursor::new(bytes))?.import(attribution)
}

/// A trace whose chunks have been checked.
#[derive(Debug)]
pub struct Trace<R> {
    scan: Scan<R>,
    parts: Parts,
}

impl<R: Read + Seek> Trace<R> {
    /// Reads and checks all chunks; keeps what is not events.
    pub fn open(source: R) -> Result<Trace<R>, TraceError> {
        let mut scan = Scan::open(source)?;
        let parts = Parts::gather(&mut scan)?;
        Ok(Trace { scan, parts })
    }

    /// The same, for [`Trace::analyse`] alone.
    pub fn open_events(source: R) -> Result<Trace<R>, TraceError> {
        let mut trace = Self::open(source)?;
        trace.parts.keep_events();
        Ok(trace)
    }

    /// Makes the profile.
    pub fn import(mut self, attribution: ReallocAttribution) -> Result<Imported, TraceError> {
        let replays = replay::add_up_missing(&mut self.scan, &mut self.parts, attribution)?;
        let mut warnings = self.parts.warnings(&replays);
        let complete = self.parts.is_closed() && warnings.is_empty();
        let profile = assemble::profile(self.parts);
        // Figures are whole without callers.
        warnings.extend(profile.early_ends());
        Ok(Imported { profile, warnings, complete })
    }

    /// Returns whether single events of a process are there, and not only sums.
    pub fn has_events(&self, process: ProcessIndex) -> bool {
        let process = self.parts.processes.values().nth(process.0 as usize);
        process.is_some_and(|process| !process.events.is_empty())
    }

    /// Hands all events of one process to an aggregator or a pass of analyses, and returns their number. Processes and stacks are
    /// numbered as in the profile that [`Trace::import`] makes. Stops where the trace is damaged.
    pub fn analyse(&mut self, process: ProcessIndex, sink: &mut impl EventSink) -> Result<u64, TraceError> {
        analyse::analyse(&mut self.scan, &self.parts, process, sink)
    }
}

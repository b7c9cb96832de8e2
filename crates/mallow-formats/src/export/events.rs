//! Formats that hold single events, written from a file that has them.

use super::packing::packed;
use super::{ExportFormat, Packing, heaptrack};
use crate::{EventFile, ImportError};
use mallow_profile::{EventSink, ProcessIndex, Profile};
use std::io::{self, Write};

/// The events of a profile's file.
pub struct ExportedEvents {
    /// The file.
    pub file: EventFile,
    /// The file's own indices of the profile's processes.
    pub indices: Vec<ProcessIndex>,
}

impl ExportedEvents {
    /// Returns whether a format has a place for the events of this many processes.
    pub fn fit(format: ExportFormat, processes: usize) -> bool {
        match format {
            ExportFormat::Mallow => true,
            ExportFormat::Heaptrack => processes == 1,
            _ => false,
        }
    }

    fn feed(&mut self, process: ProcessIndex, sink: &mut impl EventSink) -> io::Result<()> {
        let index = self.indices[process.0 as usize];
        match self.file.feed(index, sink) {
            Ok(_) => Ok(()),
            Err(ImportError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }
}

/// Writes a profile with its events in a format in which they [fit](ExportedEvents::fit); returns warnings about what the format cannot hold.
///
/// # Errors
/// The errors of `out` and of the file.
pub fn write_with_events(
    profile: &Profile,
    format: ExportFormat,
    mut events: ExportedEvents,
    packing: Packing,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    packed(format, packing, out, |out| match format {
        ExportFormat::Heaptrack => {
            heaptrack::write_events(profile, |log| events.feed(ProcessIndex(0), log), out)
        }
        _ => write_trace(profile, format.word(), events, out).map(|()| Vec::new()),
    })
}

/// Writes a trace of a profile that was read from a file of the named format, with its events.
///
/// # Errors
/// As [`write_with_events`].
pub fn write_trace(
    profile: &Profile,
    format: &str,
    mut events: ExportedEvents,
    out: &mut dyn Write,
) -> io::Result<()> {
    mallow_trace::write_profile_with(profile, format, &mut |process, sink| events.feed(process, sink), out)
}

//! Single events of files that contain them: mallow's own trace, and heaptrack's.

use crate::source::Source;
use crate::{Format, ImportError, import};
use mallow_profile::{EventSink, ProcessIndex};
use mallow_trace::{Trace, TraceError};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A file with events. Processes and stacks have the same numbers as in the profile of the file.
pub struct EventFile(Kind);

enum Kind {
    Trace(Box<Trace<BufReader<File>>>),
    Heaptrack(PathBuf),
}

impl EventFile {
    /// Opens a file of a known format; `None` if the format has no events.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn open(path: &Path, format: Format) -> Result<Option<EventFile>, ImportError> {
        Ok(match format {
            Format::Mallow => {
                let trace = Trace::open_events(BufReader::new(mallow_files::open_input(path)?))?;
                Some(EventFile(Kind::Trace(Box::new(trace))))
            }
            Format::Heaptrack => Some(EventFile(Kind::Heaptrack(path.to_owned()))),
            _ => None,
        })
    }

    /// Returns whether single events of a process are there, as far as that is known without reading them.
    pub fn has_events(&self, process: ProcessIndex) -> bool {
        match &self.0 {
            Kind::Trace(trace) => trace.has_events(process),
            Kind::Heaptrack(_) => true,
        }
    }

    /// Passes the events of one process to `sink`; returns false if there are none, but only sums or synthetic events that add up to them.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn feed(&mut self, process: ProcessIndex, sink: &mut impl EventSink) -> Result<bool, ImportError> {
        match &mut self.0 {
            Kind::Trace(trace) => match trace.analyse(process, sink) {
                Ok(_) => Ok(true),
                Err(TraceError::NoEvents) => Ok(false),
                Err(error) => Err(error.into()),
            },
            // Such a file has one process.
            Kind::Heaptrack(path) => import::heaptrack_events(Source::of_file(path)?, sink),
        }
    }
}

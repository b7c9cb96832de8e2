//! What an export takes of a file's events: all of them, or how much was live over time.

use crate::events::time_of;
use crate::failure::Failure;
use crate::passes::{Stop, all_processes, passes};
use crate::profile_file::{ProfileFile, refused};
use mallow_formats::EventFile;
use mallow_formats::export::{ExportFormat, ExportedEvents};
use mallow_profile::analysis::{Plan, Window};
use mallow_profile::{LiveSample, ProcessIndex};
use std::cmp::Reverse;

/// One less than massif's own largest number of snapshots, for the peak comes in addition.
const SNAPSHOTS: usize = 99;

impl ProfileFile {
    /// Returns the events for an export in a format that has a place for them; none if there are only sums, or of a part of a profile.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn exported_events(&self, format: ExportFormat) -> Result<Option<ExportedEvents>, Failure> {
        let processes: Vec<ProcessIndex> = all_processes(&self.profile).collect();
        let is_whole = self.part.is_none() && self.filtered.is_none();
        if !is_whole || !self.has_events() || !ExportedEvents::fit(format, processes.len()) {
            return Ok(None);
        }
        let indices: Vec<ProcessIndex> = processes.iter().map(|index| self.index_in_file(*index)).collect();
        let file = EventFile::open(&self.path, self.format).map_err(|error| refused(&self.path, &error))?;
        let has_some = |file: &EventFile| indices.iter().any(|index| file.has_events(*index));
        Ok(file.filter(has_some).map(|file| ExportedEvents { file, indices }))
    }

    /// Adds how much was live over time to the process with the highest peak, if there are events that tell it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn add_live_samples(&mut self) -> Result<(), Failure> {
        let highest = all_processes(&self.profile).max_by_key(|index| {
            (self.profile.processes[index.0 as usize].totals.peak_bytes, Reverse(index.0))
        });
        let Some(highest) = highest.filter(|_| self.has_events()) else { return Ok(()) };
        let process = &self.profile.processes[highest.0 as usize];
        let window = self.part.as_ref().and_then(|part| part.window);
        let window = window.map_or(Window::ALL, |part| Window { from_us: part.from_us, to_us: part.to_us });
        let time = time_of(process, window, SNAPSHOTS);
        let plan = Plan { window, timeline: Some(time), ..Plan::default() };
        let timeline = match passes(self, &[highest], |_| plan) {
            Ok(mut found) => found.pop().and_then(|findings| findings.timeline),
            Err(Stop::NoEvents) => None,
            Err(Stop::Failed(failure)) => return Err(failure),
        };
        let Some(timeline) = timeline else { return Ok(()) };
        // A process begins with nothing. What is live where a window begins is not in it.
        let begin = LiveSample { time_us: time.start_us(), ..LiveSample::default() };
        let mut samples: Vec<LiveSample> = (window == Window::ALL).then_some(begin).into_iter().collect();
        samples.extend(timeline.slices.iter().enumerate().map(|(slice, found)| LiveSample {
            // The last moment of the slice.
            time_us: time.begin_us(slice + 1).saturating_sub(1),
            live_bytes: found.live_bytes,
            ..LiveSample::default()
        }));
        self.profile.processes[highest.0 as usize].live_samples = samples;
        Ok(())
    }
}

//! The end of a recording: what is still open is closed, and names and figures go behind the events.

use super::Recording;
use crate::error::CollectError;
use crate::process::Ended;
use crate::profile::{process_of, profile_of};
use crate::regions;
use crate::symbols::{Resolve, symbols_of};
use mallow_profile::{Folded, Process};
use mallow_trace as trace;

impl Recording {
    /// Closes what is still open, and adds symbols and figures.
    pub(super) fn finish(&mut self, resolve: Resolve<'_>) -> Result<(), CollectError> {
        let duration_us = self.clock.now_us();
        self.ahead = None;
        for process in std::mem::take(&mut self.processes) {
            process.leave();
            self.close(process, None)?;
        }
        if self.ended.is_empty() {
            self.unseen.sentences.push(
                "no process took the recorder in, so nothing was recorded: did the program reset LD_PRELOAD or its environment?".into(),
            );
        }
        self.unseen.sentences.extend(self.starts.sentences());
        let unmet = self.note_unmet_child()?;
        for process in &self.ended {
            self.file.put(process.index, &process.folded)?;
        }
        self.file.flush()?;
        if self.wanted.regions.is_none() {
            let named = symbols_of(&self.ended, Ended::all_addresses, resolve);
            self.file.put_whole(&named.symbols)?;
            let about = mallow_profile::Recording { duration_us, ..std::mem::take(&mut self.about) };
            self.profile = Some(profile_of(about, std::mem::take(&mut self.ended), unmet, named));
        } else {
            // Whoever waits for a count is not kept waiting for the names of all that happened around it. The trace's reader
            // looks the others up.
            let symbols = symbols_of(&self.ended, Ended::counted_addresses, resolve).symbols;
            self.watched = regions::watched(std::mem::take(&mut self.ended), &symbols);
        }
        let sentences: Vec<String> = self.blind.iter().chain(&self.unseen.sentences).cloned().collect();
        if !sentences.is_empty() {
            self.file.put_whole(&trace::Unseen { sentences })?;
        }
        self.file.put_whole(&trace::End { duration_us })?;
        self.file.flush()
    }

    /// A command that ended before the recorder could introduce it did nothing that we know of, but it was
    /// there: killed at once, or without one of its libraries.
    fn note_unmet_child(&mut self) -> Result<Option<Process>, CollectError> {
        if self.child_was_met {
            return Ok(None);
        }
        let (index, now_us) = (self.next_index, self.clock.now_us());
        self.next_index += 1;
        let start = trace::ProcessStart {
            pid: self.child_pid,
            parent_pid: std::process::id(),
            command: self.command.clone(),
            started_us: 0,
        };
        self.file.put(index, &start)?;
        let end = trace::ProcessEnd { ended_us: now_us, exit: self.exit, events_lost: 0 };
        self.file.put(index, &end)?;
        self.file.put(index, &Folded::default())?;
        Ok(Some(process_of(start, end)))
    }
}

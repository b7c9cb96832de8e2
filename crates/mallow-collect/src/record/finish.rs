//! The end of a recording: what is still open is closed, and names and figures go behind the events.

use super::Recording;
use crate::chunks;
use crate::error::CollectError;
use crate::process::Ended;
use crate::profile::{process_of, profile_of, recording_of};
use crate::regions;
use crate::symbols::{Resolve, symbols_of};
use mallow_profile::Process;
use mallow_wire::trace::{self, ChunkKind, NO_PROCESS};

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
        let mut payload = Vec::new();
        for process in &self.ended {
            payload.clear();
            chunks::encode_folded(&process.folded, &mut payload);
            self.file.chunk(ChunkKind::FOLDED, process.index, &payload)?;
        }
        self.file.flush()?;
        payload.clear();
        if self.wanted.regions.is_none() {
            let named = symbols_of(&self.ended, Ended::all_addresses, resolve);
            named.symbols.encode(&mut payload);
            self.file.chunk(ChunkKind::SYMBOLS, NO_PROCESS, &payload)?;
            let about = recording_of(std::mem::take(&mut self.about), duration_us);
            self.profile = Some(profile_of(about, std::mem::take(&mut self.ended), unmet, named));
        } else {
            // Whoever waits for a count is not kept waiting for the names of all that happened around it. The trace's reader
            // looks the others up.
            let symbols = symbols_of(&self.ended, Ended::counted_addresses, resolve).symbols;
            self.watched = regions::watched(std::mem::take(&mut self.ended), &symbols);
        }
        let sentences: Vec<String> = self.blind.iter().chain(&self.unseen.sentences).cloned().collect();
        if !sentences.is_empty() {
            payload.clear();
            trace::Unseen { sentences }.encode(&mut payload);
            self.file.chunk(ChunkKind::UNSEEN, NO_PROCESS, &payload)?;
        }
        payload.clear();
        trace::End { duration_us }.encode(&mut payload);
        self.file.chunk(ChunkKind::END, NO_PROCESS, &payload)?;
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
        let mut payload = Vec::new();
        let start = trace::ProcessStart {
            pid: self.child_pid,
            parent_pid: std::process::id(),
            command: self.command.clone(),
            started_us: 0,
        };
        start.encode(&mut payload);
        self.file.chunk(ChunkKind::PROCESS_START, index, &payload)?;
        payload.clear();
        let exit = self.exit.map(chunks::exit);
        let end = trace::ProcessEnd { ended_us: now_us, exit, events_lost: 0 };
        end.encode(&mut payload);
        self.file.chunk(ChunkKind::PROCESS_END, index, &payload)?;
        payload.clear();
        trace::FoldedProcess::default().encode(&mut payload);
        self.file.chunk(ChunkKind::FOLDED, index, &payload)?;
        Ok(Some(process_of(start, end)))
    }
}

//! Its end: what is still to be read and written, and what is kept.

use super::TracedProcess;
use crate::clock::Clock;
use crate::error::CollectError;
use crate::exited::ExitedProcess;
use crate::guesses::Guesses;
use crate::marks::{FROM_FIRST, FROM_MAIN, Scope};
use crate::region_sites::{of_folded, pruned};
use crate::sink::Sink;
use mallow_profile::{Exit, RegionTotals};
use mallow_trace::ProcessEnd;
use mallow_wire::shared::PYTHON_OBJECTS_COUNTED;
use std::sync::atomic::Ordering;

impl TracedProcess {
    /// Reads the log records after unfinished ones that no thread can finish any more.
    fn read_modules_to_the_end(&mut self) {
        self.stacks.read_scripts(&self.mapping);
        self.modules.read_to_the_end(&self.mapping);
    }

    /// Writes everything that is not written yet.
    pub(crate) fn write(&mut self, sink: &mut dyn Sink) -> Result<(), CollectError> {
        self.writer.events(&mut self.pairing, &mut self.stacks, sink)?;
        self.writer.modules(self.modules.list(), sink)?;
        self.writer.threads(self.threads.named(), sink)?;
        self.writer.samples(&mut self.samples, sink)
    }

    /// Returns its exit status, if a process other than its parent can know it.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.peer.exit(self.mapping.header())
    }

    /// Ends it at once; false when it is none of ours.
    pub(crate) fn kill(&self) -> bool {
        self.peer.kill()
    }

    /// Lets go of it when it has ended and became our child.
    pub(crate) fn reap(&self) {
        self.peer.reap();
    }

    /// Tells the recorder that the collector ends: its threads go on unrecorded.
    pub(crate) fn leave(&self) {
        if self.own {
            return;
        }
        self.mapping.header().heartbeat.store(mallow_wire::shared::HEARTBEAT_LEFT, Ordering::SeqCst);
    }

    /// Closes its part of the trace. Returns what is kept of it, and what is not needed any more: the memory that was shared with it, and tables of tens
    /// of MB.
    pub(crate) fn end(
        mut self,
        exit: Option<Exit>,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<(ExitedProcess, Box<dyn Send>), CollectError> {
        let ended_us = clock.now_us().max(self.pairing.last_us());
        let events_lost = self.events_lost();
        self.read_modules_to_the_end();
        self.write(sink)?;
        let mut wide = [None, None];
        let mut unfinished = Vec::new();
        if let Some(regions) = self.pairing.regions() {
            wide = [FROM_MAIN, FROM_FIRST].map(|name| {
                regions.end(name).map(|totals| RegionTotals { sites: pruned(totals.sites), ..totals })
            });
            unfinished = regions.names();
        }
        let made = self.made_code();
        // Another program in the same process may be writing its own.
        if self.header().runtime_asked.load(Ordering::Relaxed) != 0 && exit != Some(Exit::Exec) {
            self.code_lists.remove_map();
        }
        let TracedProcess {
            index,
            start,
            threads,
            marks,
            pairing,
            mut stacks,
            modules,
            mapping,
            executable,
            writer,
            memory,
            ..
        } = self;
        let mut outcome = Ok(());
        let (folded, unpaired) = pairing.finish(ended_us, |events| outcome = writer.taken(events, sink));
        outcome?;
        let end = ProcessEnd { ended_us, exit, events_lost };
        writer.end(&mut stacks, &end, sink)?;
        let is_counted = marks.as_ref().is_some_and(|marks| marks.counts(Scope::Processes));
        let whole = if is_counted { of_folded(&folded) } else { Vec::new() };
        let (stacks, scripts, unnumbered) = stacks.into_table();
        // A program may start thousands of processes: of an ended one only its sums and their stacks are kept.
        let exited = ExitedProcess {
            index,
            start,
            end,
            threads: threads.into_named(),
            marks,
            whole,
            wide,
            unfinished,
            python_objects: mapping.header().python_objects.load(Ordering::Relaxed) == PYTHON_OBJECTS_COUNTED,
            blind: None,
            folded,
            stacks,
            guesses: Guesses { is_go: memory.is_go(), ..mapping.guesses() },
            scripts,
            made,
            modules: modules.into_list(),
            executable,
        };
        Ok((exited, Box::new((mapping, unpaired, unnumbered))))
    }
}

//! What comes from inside of processes beside the kernel's records: frames of scripts, and runtimes that were asked for names.

use crate::Folder;
use crate::adopted::Adopted;
use crate::folder::Unfinished;
use crate::joins::{Joins, ScriptNote};
use crate::memory::SlotContents;
use crate::scripts::keys_of;
use linux_perf_event_reader::{EventRecord, SampleRecord};
use mallow_launch::{Content, Preload};
use mallow_wire::timers::{ASKED, Header, IS_CUT, IS_LATE, SCRIPT};
use std::sync::atomic::{AtomicU64, Ordering};

/// The first part of the library's file name.
const LIBRARY_NAME_START: &str = "libmallow_timers";

/// Returns what is preloaded into the command.
pub(crate) fn preload<'a>(library: Content<'a>, variables: &'a [(&'a str, &'a str)]) -> Preload<'a> {
    Preload { name_start: LIBRARY_NAME_START, library, variables }
}

/// Our side of the preloaded library.
pub(crate) struct Inside {
    pub(crate) adopted: Adopted,
    joins: Joins<Unfinished>,
    /// Processes that write perf maps on our request.
    pub(crate) asked: Vec<u32>,
    sentences: Vec<String>,
    cut: u64,
}

/// Returns the handler's data in a slot.
pub(crate) fn note_of(slot: &SlotContents) -> ScriptNote {
    let note = slot.note;
    ScriptNote {
        time_ns: note.time_ns,
        ip: note.ip,
        sp: note.sp,
        region: note.region,
        frames: (note.flags & IS_LATE == 0).then(|| keys_of(&slot.copy)),
    }
}

impl Inside {
    /// Nothing has come.
    pub(crate) fn new(adopted: Adopted) -> Inside {
        Inside { adopted, joins: Joins::default(), asked: Vec::new(), sentences: Vec::new(), cut: 0 }
    }

    /// Takes what was left.
    pub(crate) fn take(&mut self, folder: &mut Folder) {
        for slot in self.adopted.memory.take() {
            match slot.note.kind {
                SCRIPT => {
                    self.cut += u64::from(slot.note.flags & IS_CUT != 0);
                    let memory = &self.adopted.memory;
                    self.joins.note(slot.note.tid, note_of(&slot), |(sample, note)| {
                        folder.finish_sample(&sample, note.as_ref(), memory);
                    });
                }
                ASKED => self.asked.push(slot.note.pid),
                // No process of ours wrote it.
                _ => {}
            }
        }
    }

    /// Processes a sample; returns false if it is an ordinary one.
    pub(crate) fn sample(&mut self, folder: &mut Folder, sample: &SampleRecord<'_>, time_ns: u64) -> bool {
        let (pid, tid) = (sample.pid.unwrap_or(0) as u32, sample.tid.unwrap_or(0) as u32);
        if !sample.id.is_some_and(|id| self.adopted.has(id)) {
            return self.adopted.is_double(pid, time_ns);
        }
        let Some((moment, unfinished)) = folder.unfinished(sample, time_ns) else { return true };
        if let Some((sample, note)) = self.joins.sample(tid, moment, unfinished) {
            folder.finish_sample(&sample, note.as_ref(), &self.adopted.memory);
        }
        true
    }

    /// Another record, in front of what it means for the folder: who ends has left all that it will.
    pub(crate) fn record(&mut self, folder: &mut Folder, record: &EventRecord<'_>, time_ns: u64) {
        let (pid, tid, is_program) = match record {
            EventRecord::Exit(exit) => (exit.pid, exit.tid, exit.pid == exit.tid),
            EventRecord::Comm(comm) if comm.is_execve => (comm.pid, comm.tid, true),
            _ => return,
        };
        let memory = &self.adopted.memory;
        self.joins.ended(tid as u32, time_ns, |(sample, note)| {
            folder.finish_sample(&sample, note.as_ref(), memory);
        });
        if is_program {
            let mut regions = self.adopted.gone(pid as u32, time_ns);
            if matches!(record, EventRecord::Exit(_)) {
                regions.extend(self.adopted.region_without_events(pid as u32));
            }
            for region in regions {
                // A process of an unsupported runtime was not checked so far.
                folder.scripts.read(region, &self.adopted.memory);
                self.sentences.extend(folder.scripts.forget(region, pid as u32));
                self.adopted.memory.free(region);
            }
        }
    }

    /// Nothing comes any more.
    pub(crate) fn end(&mut self, folder: &mut Folder) {
        let memory = &self.adopted.memory;
        self.joins.end(|(sample, note)| folder.finish_sample(&sample, note.as_ref(), memory));
        let slot = memory.regions().iter().zip(0..).filter(|(it, _)| it.pid.load(Ordering::Relaxed) != 0);
        slot.for_each(|(_, region)| folder.scripts.read(region, memory));
        let pid_of = |region: u32| {
            memory.regions().get(region as usize).map_or(0, |region| region.pid.load(Ordering::Relaxed))
        };
        self.sentences.extend(folder.scripts.sentences(pid_of));
    }

    /// Returns what the profile does not show.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.sentences.clone();
        let count = |of: fn(&Header) -> &AtomicU64| of(self.adopted.memory.header()).load(Ordering::Relaxed);
        if let Some(why) = self.adopted.refused() {
            notes.push(format!(
                "the kernel gives no events with a signal ({why}), which needs Linux 5.13 and the right to trace the process: stacks have no \
                 lines of scripts"
            ));
        }
        let counts = [
            (
                count(|header| &header.scripts_without),
                "processes with a script that were too many at once, and have native stacks",
            ),
            (
                count(|header| &header.processes_filtered),
                "processes behind a filter of system calls, whose scripts have native stacks",
            ),
            (
                self.joins.missing,
                "samples of threads with a script whose lines are not known, as the program had blocked SIGTRAP, or the runtime was changing its frames",
            ),
            (self.cut, "samples of scripts so deep that their outermost calls are missing"),
        ];
        notes.extend(
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}")),
        );
        notes
    }
}

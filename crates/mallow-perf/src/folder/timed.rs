//! What timers of threads leave: whole processes at their start, and samples with the time that they stand for.

use super::{Folder, Mapped};
use crate::joins::ScriptNote;
use crate::memory::Memory;
use crate::spaces::{End, Place, Registers};
use mallow_cpu::CpuTotals;
use mallow_wire::timers::Note;

impl Folder {
    /// A process executes a program, or was forked; whatever was known of its number was another one.
    pub(crate) fn begins(&mut self, note: &Note, name: &str) {
        let mut running = self.image(note.pid, name);
        running.names.insert(note.tid, name.to_owned());
        self.running.insert(note.pid, running);
    }

    /// Sets the current mappings of a process.
    pub(crate) fn maps(&mut self, pid: u32, mapped: &[Mapped]) {
        for Mapped { start, end, offset, path } in mapped {
            self.mapped(pid, *start..*end, *offset, path);
        }
    }

    /// Adds a sample, with the thread's name at that moment. `look_up` returns the mappings, if the stack goes
    /// through unknown code; its argument says whether the stack ends there.
    pub(crate) fn by_timer(
        &mut self,
        note: &Note,
        name: &str,
        stack: &[u8],
        script: Option<(&ScriptNote, &Memory)>,
        look_up: impl FnOnce(bool) -> Vec<Mapped>,
    ) {
        let Note { pid, tid, time_ns, cpu_ns, ip, sp, bp, di, r13, .. } = *note;
        self.last_ns = self.last_ns.max(time_ns);
        let (thread, process) = self.thread(pid, tid);
        if let Some(thread) = self.threads.get_mut(thread.0 as usize).filter(|it| it.name != name) {
            name.clone_into(&mut thread.name);
        }
        if let Some(process) = self.processes.get_mut(process as usize).filter(|_| pid == tid) {
            name.clone_into(&mut process.name);
        }
        self.quality.samples += 1;
        let mut frames = std::mem::take(&mut self.frames);
        let registers = Registers { ip, sp, bp, di: Some(di), r13: Some(r13) };
        let mut end = self.unwound(pid, registers, stack, &mut frames);
        if frames.iter().any(|frame| matches!(frame, Place::Anonymous(_))) {
            let mapped = look_up(end == End::Truncated);
            if !mapped.is_empty() {
                self.maps(pid, &mapped);
                end = self.unwound(pid, registers, stack, &mut frames);
            }
        }
        self.count(pid, end, &frames);
        let stack = match script {
            Some((note, memory)) => self.folded_with(pid, process, &frames, &[], note, memory),
            None => self.folded(process, &frames, &[]),
        };
        self.frames = frames;
        self.add(time_ns, thread, stack, CpuTotals { samples: 1, time_ns: cpu_ns, ..CpuTotals::default() });
    }

    /// Adds CPU time that was not sampled.
    pub(crate) fn not_seen(&mut self, not_seen_ns: u64) {
        self.quality.not_seen_ns = Some(not_seen_ns);
    }
}

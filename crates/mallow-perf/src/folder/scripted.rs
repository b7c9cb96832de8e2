//! Samples of threads that run a script: the script's frames come behind.

use super::Folder;
use crate::joins::{Moment, ScriptNote};
use crate::memory::Memory;
use crate::scripts::Woven;
use crate::spaces::Place;
use crate::stack_table::CodePlace;
use linux_perf_event_reader::SampleRecord;
use linux_perf_event_reader::constants::{PERF_REG_X86_IP, PERF_REG_X86_SP};
use mallow_cpu::{CpuTotals, ThreadIndex};

/// Returns whether a file is a supported interpreter, according to its name.
pub(super) fn is_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_version = |rest: &str| rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit());
    ["libpython3", "libruby"].iter().any(|start| name.starts_with(start))
        || ["python3", "ruby"]
            .iter()
            .filter_map(|program| name.strip_prefix(program))
            .any(|rest| is_version(rest.strip_prefix('.').unwrap_or(rest)))
}

/// A sample but for its script's frames.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pid: u32,
    time_ns: u64,
    thread: ThreadIndex,
    process: u32,
    totals: CpuTotals,
    frames: Vec<Place>,
    kernel: Vec<u64>,
}

impl Folder {
    /// Returns the processes with an interpreter whose frames are not read: their pids and names. Not those that have
    /// just started.
    pub(crate) fn not_looked_into(&self) -> Vec<(u32, &str)> {
        const SAMPLES_MIN: u64 = 20;
        let numbered = self.processes.iter().zip(0..);
        let is_unseen = |index| {
            self.interpreters.get(&index).is_some_and(|samples| samples.is_some_and(|it| it >= SAMPLES_MIN))
        };
        numbered
            .filter(|(_, index)| is_unseen(*index))
            .map(|(process, _)| (process.pid, process.name.as_str()))
            .collect()
    }

    /// The next sample of a thread that runs a script, and the moment of it.
    pub(crate) fn unfinished(
        &mut self,
        sample: &SampleRecord<'_>,
        time_ns: u64,
    ) -> Option<(Moment, Unfinished)> {
        let (thread, process, kernel) = self.unwound_sample(sample, time_ns)?;
        self.interpreters.insert(process, None);
        let register = |register| sample.user_regs.as_ref().and_then(|regs| regs.get(register)).unwrap_or(0);
        let moment = Moment { time_ns, ip: register(PERF_REG_X86_IP), sp: register(PERF_REG_X86_SP) };
        let (pid, totals) = (sample.pid.unwrap_or(0) as u32, self.totals_of(sample.period.unwrap_or(0)));
        let frames = self.frames.clone();
        Some((moment, Unfinished { pid, time_ns, thread, process, totals, frames, kernel }))
    }

    /// Adds it, with what its thread's handler left.
    pub(crate) fn finish_sample(&mut self, sample: &Unfinished, note: Option<&ScriptNote>, memory: &Memory) {
        let Unfinished { pid, time_ns, thread, process, totals, ref frames, ref kernel } = *sample;
        let stack = match note {
            Some(note) => self.folded_with(pid, process, frames, kernel, note, memory),
            None => self.folded(process, frames, kernel),
        };
        self.add(time_ns, thread, stack, totals);
    }

    /// A stack of the program's frames, its script's and the kernel's, all innermost first.
    pub(super) fn folded_with(
        &mut self,
        pid: u32,
        process: u32,
        frames: &[Place],
        kernel: &[u64],
        note: &ScriptNote,
        memory: &Memory,
    ) -> Option<mallow_stacks::StackId> {
        let script = note.frames.as_deref().unwrap_or_default();
        // A thread of the interpreter's that runs no script has a native stack.
        if script.is_empty() {
            return self.folded(process, frames, kernel);
        }
        self.scripts.read(note.region, memory);
        self.follow_made_code(process, frames);
        let space = self.running.get(&pid).map(|running| &running.space);
        let table = &mut self.shared.script_frames;
        let woven = self.scripts.woven(note.region, frames, script, space, table);
        let user = woven.iter().rev().filter_map(|woven| match woven {
            Woven::Native(number) => frames.get(*number).map(|place| self.made.place(*place, process)),
            Woven::Script(number) => Some(CodePlace::Script(*number)),
        });
        let kernel = kernel.iter().rev().map(|address| CodePlace::Kernel(*address));
        self.stacks.stack(user.chain(kernel))
    }
}

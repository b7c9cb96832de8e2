//! Waits: stacks of threads that leave their CPU, and for how long.

use super::Folder;
use crate::asleep::Asleep;
use crate::spaces::Registers;
use crate::waits::Wait;
use linux_perf_event_reader::{ContextSwitchRecord, SampleRecord, TaskWasPreempted};

impl Folder {
    /// A thread is about to leave its CPU; the sample has its stack.
    pub fn waits(&mut self, sample: &SampleRecord<'_>, time_ns: u64) {
        if let Some((thread, stack)) = self.stack_of(sample, time_ns, true) {
            self.waits.stack(sample.tid.unwrap_or(0) as u32, thread, stack, time_ns);
        }
    }

    /// A thread waits while recording begins.
    pub(crate) fn waits_already(&mut self, pid: u32, asleep: &Asleep, time_ns: u64) {
        let (thread, process) = self.thread(pid, asleep.tid);
        let names = self.origin.is_our_kernel.then(|| self.kernel.get());
        let at = |(name, offset): &(String, u64)| Some(names?.address(name)? + offset);
        let kernel: Vec<u64> = asleep.kernel.iter().filter_map(at).collect();
        let registers = Registers { ip: asleep.ip, sp: asleep.sp, bp: 0, di: None, r13: None };
        let mut frames = std::mem::take(&mut self.frames);
        self.quality.samples += 1;
        let end = self.unwound(pid, registers, &asleep.stack, &mut frames);
        self.count(pid, end, &frames);
        let stack = self.folded(process, &frames, &kernel);
        self.frames = frames;
        self.waits.stack(asleep.tid, thread, stack, time_ns);
        self.waits.off(asleep.tid, thread, true, time_ns);
    }

    /// A thread has left its CPU, or runs again.
    pub fn switched(&mut self, record: &ContextSwitchRecord, pid: u32, tid: u32, time_ns: u64) {
        match record {
            ContextSwitchRecord::Out { preempted, .. } => {
                let thread = self.thread(pid, tid).0;
                self.waits.off(tid, thread, *preempted == TaskWasPreempted::No, time_ns);
            }
            ContextSwitchRecord::In { .. } => {
                if let Some(wait) = self.waits.on(tid) {
                    self.waited(wait, time_ns);
                }
            }
        }
    }

    fn waited(&mut self, wait: Wait, until_ns: u64) {
        self.last_ns = self.last_ns.max(until_ns);
        self.add(wait.began_ns, wait.thread, wait.stack, wait.totals(until_ns));
    }

    /// Waits that are not over when the recording ends count until then.
    pub fn end(&mut self, time_ns: u64) {
        for wait in self.waits.rest() {
            self.waited(wait, time_ns);
        }
    }
}

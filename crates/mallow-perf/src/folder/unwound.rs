//! A sample's thread and stack.

use super::Folder;
use super::chain::chain_of;
use crate::spaces::{End, Place, Registers};
use linux_perf_event_reader::constants::{
    PERF_REG_X86_BP, PERF_REG_X86_DI, PERF_REG_X86_IP, PERF_REG_X86_R13, PERF_REG_X86_SP,
};
use linux_perf_event_reader::{CpuMode, SampleRecord};
use mallow_cpu::ThreadIndex;

impl Folder {
    /// The thread and the stack of a sample; none if no process was there.
    pub(super) fn stack_of(
        &mut self,
        sample: &SampleRecord<'_>,
        time_ns: u64,
        is_wait: bool,
    ) -> Option<(ThreadIndex, Option<mallow_stacks::StackId>)> {
        let (thread, process, kernel) = self.unwound_sample(sample, time_ns)?;
        // The scheduler's frames are the same for all waits.
        let inside = kernel.iter().take_while(|address| is_wait && self.scheduler.contains(&(**address - 1)));
        let kernel = &kernel[inside.count()..];
        let frames = std::mem::take(&mut self.frames);
        let stack = self.folded(process, &frames, kernel);
        self.frames = frames;
        Some((thread, stack))
    }

    /// The thread, the process and the kernel's frames of a sample, whose other frames are in `self.frames` then; none if no process was there.
    pub(super) fn unwound_sample(
        &mut self,
        sample: &SampleRecord<'_>,
        time_ns: u64,
    ) -> Option<(ThreadIndex, u32, Vec<u64>)> {
        let (pid, tid) = (sample.pid.unwrap_or(0) as u32, sample.tid.unwrap_or(0) as u32);
        if pid == 0 {
            return None;
        }
        self.first_ns.get_or_insert(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        let (thread, process) = self.thread(pid, tid);
        self.quality.samples += 1;
        if let Some(Some(samples)) = self.interpreters.get_mut(&process) {
            *samples += 1;
        }
        let (kernel, chain) = chain_of(sample);
        self.sees_kernel |= !kernel.is_empty();
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        self.user_frames(pid, sample, &chain, &mut frames);
        self.frames = frames;
        Some((thread, process, kernel))
    }

    /// The program's frames, innermost first.
    pub(super) fn user_frames(
        &mut self,
        pid: u32,
        sample: &SampleRecord<'_>,
        chain: &[u64],
        frames: &mut Vec<Place>,
    ) {
        let registers = sample.user_regs.as_ref().and_then(|regs| {
            let get = |register| regs.get(register);
            Some(Registers {
                ip: get(PERF_REG_X86_IP)?,
                sp: get(PERF_REG_X86_SP)?,
                bp: get(PERF_REG_X86_BP)?,
                di: get(PERF_REG_X86_DI),
                r13: get(PERF_REG_X86_R13),
            })
        });
        let Some(running) = self.running.get_mut(&pid) else { return };
        // An `exec` unmaps the old program before its record.
        let has_stack = sample.user_stack.as_ref().is_none_or(|(_, used)| *used > 0);
        let is_inside =
            has_stack && registers.as_ref().is_some_and(|registers| running.space.has(registers.ip));
        // Until the kernel has the new program begin, the registers are those of the old one, whose memory is gone.
        let is_between = sample.cpu_mode == CpuMode::Kernel && !is_inside;
        running.is_beginning &= is_between;
        if running.is_beginning || (is_between && !has_stack) {
            self.quality.kernel_only += 1;
            return;
        }
        match (registers, &sample.user_stack) {
            (Some(registers), Some((stack, used))) => {
                let used = usize::try_from(*used).unwrap_or(usize::MAX).min(stack.len());
                let bytes = stack.as_slice();
                let end = self.unwound(pid, registers, bytes.get(..used).unwrap_or_default(), frames);
                self.count(pid, end, frames);
            }
            _ if chain.is_empty() => self.quality.kernel_only += 1,
            _ => {
                let end = running.space.chain(chain, &mut self.shared, frames);
                self.count(pid, end, frames);
            }
        }
    }

    pub(super) fn unwound(
        &mut self,
        pid: u32,
        registers: Registers,
        stack: &[u8],
        frames: &mut Vec<Place>,
    ) -> End {
        frames.clear();
        let Some(running) = self.running.get_mut(&pid) else { return End::Truncated };
        let (stack_bytes, shared) = (self.origin.stack_bytes, &mut self.shared);
        if let Some(jvm) = &mut running.jvm {
            jvm.begin(self.last_ns);
        }
        running.space.unwind(registers, stack, stack_bytes, running.jvm.as_mut(), shared, frames)
    }

    pub(super) fn count(&mut self, pid: u32, end: End, frames: &[Place]) {
        self.count_without_lines(pid, frames);
        match end {
            End::Whole => self.quality.whole += 1,
            End::TooDeep => self.quality.too_deep += 1,
            End::Truncated => {}
        }
    }
}

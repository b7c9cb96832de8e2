//! The profile of what was folded.

use super::names::Names;
use super::{Folder, Sampled, Sum};
use mallow_cpu::{CpuAvailability, CpuProfile, CpuRecording, CpuSample, CpuTotals};
use mallow_stacks::ProcessIndex;
use rustc_hash::FxHashMap;

impl Folder {
    /// The profile. Samples are in the order of time.
    pub fn finish(mut self, command: Vec<String>, started_unix_ns: u64, duration_ns: Option<u64>) -> Sampled {
        let first = self.first_ns.unwrap_or(0);
        let names = Names {
            processes: &self.processes,
            dumps: &self.dumps,
            is_our_kernel: self.origin.is_our_kernel,
            is_our_machine: self.origin.is_our_machine,
            script_frames: &self.shared.script_frames,
            made: &self.made,
        };
        let mut kept = FxHashMap::default();
        let mut kernel = self.kernel;
        let stacks = self.stacks.finish(&self.shared.files, |place| names.of(place, &mut kept, &mut kernel));
        let known = CpuAvailability {
            samples: true,
            time: self.origin.is_time,
            events: !self.origin.is_time,
            off_cpu: self.origin.off_cpu,
            blocked: self.origin.off_cpu,
            switches: self.origin.off_cpu,
        };
        // A wait is recorded when it is over, and has the time of its beginning.
        self.samples.sort_by_key(|sample| sample.time_ns);
        let sums: Vec<Sum> =
            self.sums.into_iter().map(|((thread, stack), totals)| Sum { thread, stack, totals }).collect();
        let mut profile = CpuProfile {
            recording: CpuRecording {
                command,
                started_unix_ns,
                duration_ns: duration_ns.unwrap_or_else(|| self.last_ns.saturating_sub(first)),
                event: self.origin.event,
                frequency_hz: self.origin.frequency_hz,
            },
            processes: self.processes,
            threads: self.threads,
            stacks,
            sites: Vec::new(),
            samples: self.samples,
            known,
            quality: Some(self.quality),
        };
        profile.sites =
            if sums.is_empty() { profile.sums(profile.samples.iter()) } else { of_sums(&profile, sums) };
        Sampled { profile: without_idle(profile) }
    }
}

fn of_sums(profile: &CpuProfile, mut sums: Vec<Sum>) -> Vec<mallow_stacks::Site<CpuTotals>> {
    sums.sort_by_key(|sum| (sum.thread, sum.stack));
    let as_samples =
        sums.into_iter().map(|Sum { thread, stack, totals }| CpuSample { time_ns: 0, thread, stack, totals });
    let samples: Vec<CpuSample> = as_samples.collect();
    profile.sums(samples.iter())
}

/// Leaves out processes that have no sample.
fn without_idle(mut profile: CpuProfile) -> CpuProfile {
    let mut numbers = vec![None; profile.processes.len()];
    profile.threads.iter().for_each(|thread| numbers[thread.process.0 as usize] = Some(0));
    numbers.iter_mut().flatten().zip(0..).for_each(|(number, next)| *number = next);
    let mut at = numbers.iter();
    profile.processes.retain(|_| at.next().is_some_and(Option::is_some));
    let renumber = |process: &mut ProcessIndex| {
        process.0 = numbers.get(process.0 as usize).copied().flatten().unwrap_or_default();
    };
    profile.threads.iter_mut().for_each(|thread| renumber(&mut thread.process));
    profile.sites.iter_mut().for_each(|site| renumber(&mut site.process));
    profile
}

//! A part of a profile: a time, a process, a thread.

use crate::{CpuProfile, CpuSample};

/// Which samples are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From here on, in nanoseconds since the recording's start.
    pub from_ns: Option<u64>,
    /// Up to here, not included.
    pub to_ns: Option<u64>,
    /// Of this process.
    pub pid: Option<u32>,
}

impl Window {
    /// Whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        *self == Window::default()
    }

    fn has(&self, profile: &CpuProfile, sample: &CpuSample) -> bool {
        let thread = profile.threads.get(sample.thread.0 as usize);
        let process = thread.and_then(|thread| profile.processes.get(thread.process.0 as usize));
        self.from_ns.is_none_or(|from| sample.time_ns >= from)
            && self.to_ns.is_none_or(|to| sample.time_ns < to)
            && self.pid.is_none_or(|pid| process.is_some_and(|process| process.pid == pid))
    }

    /// Leaves only what is wanted in a profile that has single samples.
    pub fn cut(&self, profile: &mut CpuProfile) {
        if self.is_everything() {
            return;
        }
        let mut samples = std::mem::take(&mut profile.samples);
        samples.retain(|sample| self.has(profile, sample));
        profile.sites = profile.sums(samples.iter());
        profile.samples = samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuProcess, CpuThread, CpuTotals, ThreadIndex};
    use mallow_stacks::ProcessIndex;

    #[test]
    fn a_window_has_the_samples_of_its_time_and_process() {
        let process = |pid| CpuProcess { pid, ..CpuProcess::default() };
        let thread = |process| CpuThread { process: ProcessIndex(process), tid: 1, name: String::new() };
        let sample = |time_ns, thread| CpuSample {
            time_ns,
            thread: ThreadIndex(thread),
            stack: None,
            totals: CpuTotals { samples: 1, time_ns: 10, ..CpuTotals::default() },
        };
        let profile = CpuProfile {
            processes: vec![process(7), process(8)],
            threads: vec![thread(0), thread(1)],
            samples: vec![sample(0, 0), sample(5, 1), sample(9, 0), sample(10, 0)],
            ..CpuProfile::default()
        };
        let left = |window: &Window| {
            let mut profile = profile.clone();
            window.cut(&mut profile);
            let times: Vec<u64> = profile.samples.iter().map(|sample| sample.time_ns).collect();
            (times, profile.totals().samples)
        };
        assert_eq!(left(&Window { from_ns: Some(5), to_ns: Some(10), pid: None }), (vec![5, 9], 2));
        assert_eq!(left(&Window { pid: Some(7), ..Window::default() }), (vec![0, 9, 10], 3));
        assert_eq!(left(&Window { pid: Some(1), ..Window::default() }), (vec![], 0));
    }
}

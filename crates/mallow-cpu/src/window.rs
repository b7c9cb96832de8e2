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
    /// Returns whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        *self == Window::default()
    }

    /// The part of a sample that is wanted: all of it or nothing, but of a wait what lies within.
    fn part(&self, profile: &CpuProfile, sample: &CpuSample) -> Option<CpuSample> {
        let thread = profile.threads.get(sample.thread.0 as usize);
        let process = thread.and_then(|thread| profile.processes.get(thread.process.0 as usize));
        if self.pid.is_some_and(|pid| process.is_none_or(|process| process.pid != pid)) {
            return None;
        }
        let (from, to) = (self.from_ns.unwrap_or(0), self.to_ns.unwrap_or(u64::MAX));
        let whole_ns = sample.totals.off_cpu_ns;
        let start = sample.time_ns.max(from);
        let end = sample.time_ns.saturating_add(whole_ns).min(to);
        if whole_ns == 0 {
            return (from..to).contains(&sample.time_ns).then_some(*sample);
        }
        let part_ns = end.checked_sub(start).filter(|part_ns| *part_ns > 0)?;
        let mut part = CpuSample { time_ns: start, ..*sample };
        let blocked = u128::from(sample.totals.blocked_ns) * u128::from(part_ns) / u128::from(whole_ns);
        (part.totals.off_cpu_ns, part.totals.blocked_ns) = (part_ns, blocked as u64);
        if start > sample.time_ns {
            // The processor was given up before.
            part.totals.switches = 0;
        }
        Some(part)
    }

    /// Leaves only what is wanted in a profile that has single samples.
    pub fn cut(&self, profile: &mut CpuProfile) {
        if self.is_everything() {
            return;
        }
        let samples = std::mem::take(&mut profile.samples);
        let mut samples: Vec<CpuSample> =
            samples.iter().filter_map(|sample| self.part(profile, sample)).collect();
        samples.sort_by_key(|sample| sample.time_ns);
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

    #[test]
    fn of_a_wait_a_window_has_what_lies_within() {
        let wait = |time_ns, off_cpu_ns, blocked_ns| CpuSample {
            time_ns,
            thread: ThreadIndex(0),
            stack: None,
            totals: CpuTotals { off_cpu_ns, blocked_ns, switches: 1, ..CpuTotals::default() },
        };
        let profile = CpuProfile {
            processes: vec![CpuProcess::default()],
            threads: vec![CpuThread { process: ProcessIndex(0), tid: 1, name: String::new() }],
            samples: vec![wait(0, 100, 100), wait(150, 50, 0), wait(300, 10, 10)],
            ..CpuProfile::default()
        };
        let mut cut = profile.clone();
        Window { from_ns: Some(60), to_ns: Some(170), pid: None }.cut(&mut cut);
        let parts: Vec<_> = cut
            .samples
            .iter()
            .map(|part| (part.time_ns, part.totals.off_cpu_ns, part.totals.blocked_ns, part.totals.switches))
            .collect();
        assert_eq!(parts, [(60, 40, 40, 0), (150, 20, 0, 1)]);
        assert_eq!(cut.totals().off_cpu_ns, 60);
        // Two halves are the whole.
        let of = |from_ns, to_ns| {
            let mut half = profile.clone();
            Window { from_ns, to_ns, pid: None }.cut(&mut half);
            (half.totals().off_cpu_ns, half.totals().switches)
        };
        assert_eq!((of(None, Some(60)), of(Some(60), None)), ((60, 1), (100, 2)));
    }
}

//! What a report on a processor's time is about, and which part of it is shown: the same for text and JSON.

use crate::{Direction, Filter, FrameVisibility, FunctionOrder, PartOf};
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals, ThreadIndex};
use mallow_stacks::{Metric, Weights};

/// The layout of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuLayout {
    /// Functions, with what they took themselves and with their callees.
    Functions(FunctionOrder),
    /// Functions of this name, with those that called them and those that they called.
    Peek(String),
    /// The top stacks.
    Stacks,
    /// A tree of calls.
    Tree {
        /// Its direction.
        direction: Direction,
        /// Branches below this part of the whole are folded, in millionths.
        threshold_ppm: u32,
        /// Branches above one another.
        depth: usize,
    },
    /// The time of each thread.
    Threads,
    /// When it was taken.
    Timeline,
}

/// Which part of a profile is shown, and in which layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuOptions {
    /// The layout.
    pub layout: CpuLayout,
    /// By which metric.
    pub by: CpuMetric,
    /// Rows; none for as many as the front end thinks fit.
    pub limit: Option<usize>,
    /// Which frames are shown.
    pub shown: FrameVisibility,
    /// Which stacks are shown.
    pub filter: Filter,
    /// Which part of a recording it is, if it is not all.
    pub part: Option<PartOf<CpuTotals>>,
}

/// The time of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its metrics.
    pub totals: CpuTotals,
}

/// Returns the times of threads, heaviest by a metric first; empty if there are no single samples.
pub fn cpu_threads(profile: &CpuProfile, by: CpuMetric) -> Vec<ThreadRow> {
    let mut rows: Vec<ThreadRow> = (0..profile.threads.len() as u32)
        .map(|thread| ThreadRow { thread: ThreadIndex(thread), totals: CpuTotals::default() })
        .collect();
    for sample in &profile.samples {
        if let Some(row) = rows.get_mut(sample.thread.0 as usize) {
            row.totals.add(&sample.totals);
        }
    }
    rows.retain(|row| row.totals != CpuTotals::default());
    rows.sort_by_key(|row| std::cmp::Reverse((by.of_site(&row.totals), row.totals.tie())));
    rows
}

/// Returns the metrics of this number of equal slices of the recording's time, a wait's in all slices that it lasts
/// for; empty if there are no single samples.
pub fn cpu_slices(profile: &CpuProfile, slices: usize) -> Vec<CpuTotals> {
    if profile.samples.is_empty() || slices == 0 {
        return Vec::new();
    }
    let ends = profile.samples.iter().map(|sample| sample.time_ns.saturating_add(sample.totals.off_cpu_ns));
    let whole = u128::from(profile.recording.duration_ns.max(ends.max().unwrap_or(0).saturating_add(1)));
    let slice_of = |time_ns: u64| ((u128::from(time_ns) * slices as u128 / whole) as usize).min(slices - 1);
    let mut rows = vec![CpuTotals::default(); slices];
    for sample in &profile.samples {
        let mut rest = *sample;
        let end = sample.time_ns.saturating_add(sample.totals.off_cpu_ns);
        let (first, last) = (slice_of(sample.time_ns), slice_of(end));
        for (at, row) in rows.iter_mut().enumerate().take(last).skip(first) {
            let slice_end = ((at as u128 + 1) * whole).div_ceil(slices as u128) as u64;
            let part_ns = slice_end.saturating_sub(rest.time_ns).min(rest.totals.off_cpu_ns);
            let blocked = u128::from(rest.totals.blocked_ns) * u128::from(part_ns);
            let blocked_ns = (blocked / u128::from(rest.totals.off_cpu_ns.max(1))) as u64;
            // An event without a duration is at its beginning.
            row.add(&CpuTotals { off_cpu_ns: part_ns, blocked_ns, ..rest.totals });
            rest.time_ns = slice_end;
            rest.totals = CpuTotals {
                off_cpu_ns: rest.totals.off_cpu_ns - part_ns,
                blocked_ns: rest.totals.blocked_ns - blocked_ns,
                ..CpuTotals::default()
            };
        }
        rows[last].add(&rest.totals);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_cpu::CpuSample;

    #[test]
    fn a_wait_stands_in_all_slices_that_it_lasts_for() {
        let sample = |time_ns, totals| CpuSample { time_ns, thread: ThreadIndex(0), stack: None, totals };
        let wait = CpuTotals { off_cpu_ns: 50, blocked_ns: 50, switches: 1, ..CpuTotals::default() };
        let run = CpuTotals { samples: 1, time_ns: 10, ..CpuTotals::default() };
        let mut profile = CpuProfile {
            samples: vec![sample(5, run), sample(15, wait), sample(66, run)],
            ..CpuProfile::default()
        };
        profile.recording.duration_ns = 100;
        let slices = cpu_slices(&profile, 10);
        let of = |get: fn(&CpuTotals) -> u64| -> Vec<u64> { slices.iter().map(get).collect() };
        assert_eq!(of(|slice| slice.off_cpu_ns), [0, 5, 10, 10, 10, 10, 5, 0, 0, 0]);
        assert_eq!(of(|slice| slice.blocked_ns), of(|slice| slice.off_cpu_ns));
        assert_eq!(of(|slice| slice.switches), [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(of(|slice| slice.time_ns), [10, 0, 0, 0, 0, 0, 10, 0, 0, 0]);
    }
}

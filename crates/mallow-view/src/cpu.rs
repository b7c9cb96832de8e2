//! What a report on a processor's time is about, and which part of it is shown: the same for text and JSON.

use crate::{Direction, Filter, FrameVisibility, FunctionOrder};
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals, ThreadIndex};
use mallow_stacks::Weights;

/// How a profile of a processor's time is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuLayout {
    /// Functions, with what they took themselves and with their callees.
    Functions(FunctionOrder),
    /// The top stacks.
    Stacks,
    /// A tree of calls.
    Tree {
        /// Which way it grows.
        direction: Direction,
        /// Branches below this part of the whole are folded, in millionths.
        threshold_ppm: u32,
        /// Branches above one another.
        depth: usize,
    },
    /// What each thread took.
    Threads,
    /// When it was taken.
    Timeline,
}

/// Which part of a profile is shown, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuOptions {
    /// How.
    pub layout: CpuLayout,
    /// By which metric.
    pub by: CpuMetric,
    /// Rows; none for as many as the front end thinks fit.
    pub limit: Option<usize>,
    /// Which frames are shown.
    pub shown: FrameVisibility,
    /// Which stacks are shown.
    pub filter: Filter,
}

/// What a thread took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its metrics.
    pub totals: CpuTotals,
}

/// What threads took, heaviest first; empty where single samples are not told.
pub fn cpu_threads(profile: &CpuProfile) -> Vec<ThreadRow> {
    let mut rows: Vec<ThreadRow> = (0..profile.threads.len() as u32)
        .map(|thread| ThreadRow { thread: ThreadIndex(thread), totals: CpuTotals::default() })
        .collect();
    for sample in &profile.samples {
        if let Some(row) = rows.get_mut(sample.thread.0 as usize) {
            row.totals.add(&sample.totals);
        }
    }
    rows.retain(|row| row.totals != CpuTotals::default());
    rows.sort_by_key(|row| std::cmp::Reverse(row.totals.tie()));
    rows
}

/// Metrics of so many equal slices of the recording's time; empty where single samples are not told.
pub fn cpu_slices(profile: &CpuProfile, slices: usize) -> Vec<CpuTotals> {
    if profile.samples.is_empty() || slices == 0 {
        return Vec::new();
    }
    let last = profile.samples.last().map_or(0, |sample| sample.time_ns);
    let whole = u128::from(profile.recording.duration_ns.max(last.saturating_add(1)));
    let mut rows = vec![CpuTotals::default(); slices];
    for sample in &profile.samples {
        let at = (u128::from(sample.time_ns) * slices as u128 / whole) as usize;
        rows[at.min(slices - 1)].add(&sample.totals);
    }
    rows
}

//! Threads as rows.

use mallow_profile::analysis::{Findings, ThreadMetrics};
use mallow_profile::{ProcessIndex, Profile};

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow<'a> {
    /// Its process's id.
    pub pid: u32,
    /// The kernel's thread id; 0 where it is not known.
    pub tid: u32,
    /// Its name; empty where it is not known.
    pub name: &'a str,
    /// Its metrics.
    pub metrics: ThreadMetrics,
}

/// Threads, those with most allocations first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads<'a> {
    /// Over all threads.
    pub totals: ThreadMetrics,
    /// The rows.
    pub rows: Vec<ThreadRow<'a>>,
}

impl<'a> Threads<'a> {
    /// The threads of these processes.
    pub fn of(profile: &'a Profile, processes: &[ProcessIndex], findings: &[Findings]) -> Threads<'a> {
        let (mut totals, mut rows) = (ThreadMetrics::default(), Vec::new());
        for (process, findings) in processes.iter().zip(findings) {
            let process = &profile.processes[process.0 as usize];
            for (index, metrics) in findings.threads.iter().enumerate() {
                let known = process.threads.get(index);
                totals.add(metrics);
                rows.push(ThreadRow {
                    pid: process.pid,
                    tid: known.map_or(0, |thread| thread.tid),
                    name: known.map_or("", |thread| thread.name.as_str()),
                    metrics: *metrics,
                });
            }
        }
        rows.retain(|row| row.metrics != ThreadMetrics::default());
        rows.sort_by_key(|row| std::cmp::Reverse((row.metrics.allocations, row.metrics.frees)));
        Threads { totals, rows }
    }
}

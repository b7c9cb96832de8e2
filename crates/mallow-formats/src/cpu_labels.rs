//! What mallow's pprof files contain about samples and processes in addition to the format's own fields: labels with
//! the names that other profilers use, and one comment in JSON for everything else.

use mallow_cpu::{CpuProcess, CpuProfile, CpuThread, Quality};
use mallow_stacks::ProcessIndex;
use serde::{Deserialize, Serialize};

/// The thread's id, a number.
pub(crate) const THREAD_ID: &str = "thread id";
/// The thread's name.
pub(crate) const THREAD_NAME: &str = "thread name";
/// The process id, a number.
pub(crate) const PROCESS_ID: &str = "process_id";
/// When the sample was taken, or the wait ended, in nanoseconds since 1970.
pub(crate) const TIME: &str = "end_timestamp_ns";
/// The index of the thread in the comment's list.
pub(crate) const THREAD_INDEX: &str = "thread_index";
/// The beginning of the comment.
pub(crate) const COMMENT: &str = "mallow.cpu/1 ";

/// The comment.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beside {
    command: Vec<String>,
    event: String,
    frequency_hz: Option<u64>,
    processes: Vec<ProcessBeside>,
    threads: Vec<ThreadBeside>,
    quality: Option<QualityBeside>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ProcessBeside {
    pid: u32,
    name: String,
    program: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct ThreadBeside {
    process: u32,
    tid: u32,
    name: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct QualityBeside {
    samples: u64,
    lost: u64,
    whole: u64,
    kernel_only: u64,
    too_deep: u64,
    kernel_seen: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_seen_ns: Option<u64>,
}

impl Beside {
    /// Returns the comment of a profile.
    pub(crate) fn of(profile: &CpuProfile) -> Beside {
        let process = |process: &CpuProcess| ProcessBeside {
            pid: process.pid,
            name: process.name.clone(),
            program: process.program.clone(),
        };
        let thread = |thread: &CpuThread| ThreadBeside {
            process: thread.process.0,
            tid: thread.tid,
            name: thread.name.clone(),
        };
        Beside {
            command: profile.recording.command.clone(),
            event: profile.recording.event.clone(),
            frequency_hz: profile.recording.frequency_hz,
            processes: profile.processes.iter().map(process).collect(),
            threads: profile.threads.iter().map(thread).collect(),
            quality: profile.quality.map(|quality| {
                let Quality { samples, lost, whole, kernel_only, too_deep, kernel_seen, not_seen_ns } =
                    quality;
                QualityBeside { samples, lost, whole, kernel_only, too_deep, kernel_seen, not_seen_ns }
            }),
        }
    }

    /// Returns what was sampled, by perf's name.
    pub(crate) fn into_event(self) -> String {
        self.event
    }

    /// Adds everything to a profile; nothing if it contradicts itself.
    pub(crate) fn fill(self, profile: &mut CpuProfile) {
        let processes = self.processes.len();
        if self.threads.iter().any(|thread| thread.process as usize >= processes) {
            return;
        }
        profile.recording.command = self.command;
        profile.recording.event = self.event;
        profile.recording.frequency_hz = self.frequency_hz;
        let process = |process: ProcessBeside| CpuProcess {
            pid: process.pid,
            name: process.name,
            program: process.program,
        };
        profile.processes = self.processes.into_iter().map(process).collect();
        let thread = |thread: ThreadBeside| CpuThread {
            process: ProcessIndex(thread.process),
            tid: thread.tid,
            name: thread.name,
        };
        profile.threads = self.threads.into_iter().map(thread).collect();
        profile.quality = self.quality.map(|quality| {
            let QualityBeside { samples, lost, whole, kernel_only, too_deep, kernel_seen, not_seen_ns } =
                quality;
            Quality { samples, lost, whole, kernel_only, too_deep, kernel_seen, not_seen_ns }
        });
    }
}

//! CPU samples for the Firefox Profiler: threads with their samples over time, as in its own profiles.

use super::stacks;
use fxprof_processed_profile as fxprof;
use fxprof_processed_profile::{
    CpuDelta, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use mallow_cpu::{CpuProfile, CpuTotals};
use mallow_stacks::{ProcessIndex, StackId};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::time::Duration;

/// Writes a profile.
pub(in crate::export) fn write(profile: &CpuProfile, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let product = profile.recording.command.join(" ");
    let product = if product.is_empty() { String::from("mallow") } else { product };
    let reference = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_nanos(
        profile.recording.started_unix_ns,
    ));
    let hz = profile.recording.frequency_hz.unwrap_or(1000).max(1);
    let interval = SamplingInterval::from_nanos((1_000_000_000 / hz).max(1));
    let mut made = fxprof::Profile::new(&product, reference, interval);
    made.set_os_name("Linux");
    made.set_symbolicated(true);
    let threads = threads(profile, &mut made);
    let mut handles: FxHashMap<(u32, Option<StackId>), Option<StackHandle>> = FxHashMap::default();
    let mut warnings = vec![String::from("source lines are left out")];
    let mut add = |made: &mut fxprof::Profile, thread: u32, time_ns, stack, totals: &CpuTotals| {
        let Some(handle) = threads.get(thread as usize).copied() else { return };
        let stack = *handles
            .entry((thread, stack))
            .or_insert_with(|| stacks::handle(made, handle, &profile.stacks, stack));
        // A wait becomes as many samples as its duration, as in the profiler's own files, and has no CPU time.
        let waited = totals.off_cpu_ns.saturating_mul(hz) / 1_000_000_000;
        let weight = i32::try_from(totals.samples.max(waited).max(1)).unwrap_or(i32::MAX);
        let time = Timestamp::from_nanos_since_reference(time_ns);
        made.add_sample(handle, time, stack, CpuDelta::from_nanos(totals.time_ns), weight);
    };
    if profile.known.off_cpu {
        warnings
            .push(String::from("time off the processors stands there as samples that took no time on one"));
    }
    for sample in &profile.samples {
        add(&mut made, sample.thread.0, sample.time_ns, sample.stack, &sample.totals);
    }
    if profile.samples.is_empty() {
        warnings.push(String::from("the profile has no times of samples: their order means nothing"));
        for (at, site) in profile.sites.iter().enumerate() {
            let thread =
                profile.threads.iter().position(|thread| thread.process == site.process).unwrap_or(0);
            add(&mut made, thread as u32, at as u64 * (1_000_000_000 / hz), site.stack, &site.totals);
        }
    }
    serde_json::to_writer(&mut *out, &made)?;
    out.write_all(b"\n")?;
    Ok(warnings)
}

fn threads(profile: &CpuProfile, made: &mut fxprof::Profile) -> Vec<ThreadHandle> {
    let start = Timestamp::from_nanos_since_reference(0);
    let end = Timestamp::from_nanos_since_reference(profile.recording.duration_ns);
    let processes: Vec<_> = profile
        .processes
        .iter()
        .map(|process| {
            let handle = made.add_process(&process.name, process.pid, start);
            made.set_process_end_time(handle, end);
            handle
        })
        .collect();
    let thread = |thread: &mallow_cpu::CpuThread| {
        let ProcessIndex(process) = thread.process;
        let pid = profile.processes[process as usize].pid;
        let handle = made.add_thread(processes[process as usize], thread.tid, start, pid == thread.tid);
        made.set_thread_name(handle, &thread.name);
        made.set_thread_end_time(handle, end);
        handle
    };
    profile.threads.iter().map(thread).collect()
}

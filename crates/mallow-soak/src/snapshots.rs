//! Two snapshots of a managed heap that grows, with more work between them.
//!
//! They are taken after the judged iterations, so neither their cost nor the tracing of Ruby and Python, which starts
//! with the first one, is in any metric. Between them the server repeats a quarter of the judged iterations, so what
//! a request leaves behind is there once for each of their requests.

use crate::phases::Phases;
use mallow_evidence::{HeapSnapshots, Phase, Progress, Sample};
use mallow_growth::{Conclusion, Finding, Shape, Trend, Verdict};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The timeout of one snapshot.
const TIME_MAX: Duration = Duration::from_secs(300);

/// The number of iterations between them is at least this, ...
const ITERATIONS_MIN: usize = 3;

/// ... and this part of the judged iterations.
const ITERATIONS_PART: usize = 4;

/// Takes the snapshots, if the managed heap grows and they are wanted.
///
/// # Errors
/// Why there are none, as a sentence.
pub(crate) fn of_grown_heap(
    phases: &mut Phases<'_>,
    conclusion: &Conclusion,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<HeapSnapshots>, String> {
    if conclusion.by_age {
        // A worker may be replaced between two snapshots of it.
        return Ok(None);
    }
    let least = phases.options.rules.heap_per_request_min;
    let Some(folder) = phases.options.snapshots.as_ref().filter(|_| is_worth_it(conclusion, least)) else {
        return Ok(None);
    };
    let Some((pid, runtime, bytes)) = grown(&phases.samples) else { return Ok(None) };
    if phases.deadline.is_cancelled() || phases.server.has_ended() {
        return Ok(None);
    }
    if phases.deadline.is_over() {
        return Err(OUT_OF_TIME.to_owned());
    }
    let bytes_max = phases.options.snapshot_heap_bytes_max;
    if bytes > bytes_max {
        return Err(format!(
            "the heap of process {pid} has {}, and snapshots are taken by themselves up to {}; --heap-snapshots FOLDER takes them all \
             the same",
            mallow_base::Bytes(bytes),
            mallow_base::Bytes(bytes_max)
        ));
    }
    progress(Progress::Phase(Phase::Snapshots));
    let failed = |why: String| format!("no snapshots of the heap of process {pid}: {why}");
    let folder = folder_for(folder, pid).map_err(failed)?;
    let file = |name: &str| folder.join(format!("{name}.{}", extension(&runtime)));
    let (before, after) = (file("before"), file("after"));
    take(phases, pid, &before).map_err(failed)?;
    let requests = work(phases);
    if phases.deadline.is_cancelled() {
        return Err(failed("interrupted".to_owned()));
    }
    if requests == 0 {
        return Err(OUT_OF_TIME.to_owned());
    }
    take(phases, pid, &after).map_err(failed)?;
    Ok(Some(HeapSnapshots { pid, runtime, before, after, requests }))
}

/// Snapshots need work between them.
const OUT_OF_TIME: &str =
    "--max-time leaves no time for two snapshots of the heap, which would name the class that grows";

/// Returns whether the managed heap grows, or may be the part that grows of a server that leaks.
fn is_worth_it(conclusion: &Conclusion, least: f64) -> bool {
    let grows = |found: &Finding| matches!(found, Finding::Managed { .. });
    let may_grow = |trend: &Trend| {
        trend.per_request >= least && !matches!(trend.shape, Shape::Flat | Shape::Falls | Shape::RoseThenFlat)
    };
    conclusion.findings.iter().any(grows)
        || conclusion.verdict == Verdict::Leaking && conclusion.managed.as_ref().is_some_and(may_grow)
}

/// Returns the process whose managed heap grew most over the judged iterations, its runtime, and its present size in bytes.
fn grown(samples: &[Sample]) -> Option<(u32, String, u64)> {
    let judged = || samples.iter().filter(|sample| sample.phase == Phase::Measured);
    let first_of = |pid: u32| {
        judged().flat_map(|sample| &sample.runtimes).find(|of| of.pid == pid).map_or(0, |of| of.managed_bytes)
    };
    let last = &judged().next_back()?.runtimes;
    let most = last.iter().max_by_key(|of| of.managed_bytes.saturating_sub(first_of(of.pid)))?;
    Some((most.pid, most.name.clone(), most.managed_bytes))
}

/// Creates a folder that only the process's user can access: the process itself writes there, and may have dropped its privileges.
fn folder_for(parent: &Path, pid: u32) -> Result<PathBuf, String> {
    let told = |what: &Path, cause: std::io::Error| format!("cannot make {}: {cause}", what.display());
    fs::create_dir_all(parent).map_err(|cause| told(parent, cause))?;
    let parent = std::path::absolute(parent).map_err(|cause| told(parent, cause))?;
    let folder = parent.join(pid.to_string());
    DirBuilder::new().mode(0o700).create(&folder).map_err(|cause| told(&folder, cause))?;
    let process = fs::metadata(format!("/proc/{pid}")).map_err(|_| "it has ended".to_owned())?;
    if geteuid().is_root() && process.uid() != 0 {
        std::os::unix::fs::chown(&folder, Some(process.uid()), Some(process.gid()))
            .map_err(|cause| told(&folder, cause))?;
    }
    Ok(folder)
}

fn extension(runtime: &str) -> &'static str {
    match runtime {
        "node" => "heapsnapshot",
        "jvm" => "hprof",
        _ => "json",
    }
}

fn take(phases: &mut Phases<'_>, pid: u32, file: &Path) -> Result<(), String> {
    // Close the connections first: memory of open connections is not a leak.
    phases.worker.close();
    drop(phases.observer().at_rest(Phase::Snapshots, None));
    phases.runtimes.snapshot(pid, file, TIME_MAX)
}

/// Repeats the work; returns how many requests succeeded.
fn work(phases: &mut Phases<'_>) -> u64 {
    let iterations = (phases.measured() / ITERATIONS_PART).max(ITERATIONS_MIN);
    let mut requests = 0;
    for _ in 0..iterations {
        if phases.deadline.is_over() || phases.server.has_ended() {
            break;
        }
        let deadline = phases.deadline;
        requests += phases.worker.run(phases.amount, false, &|| deadline.is_over()).succeeded;
    }
    requests
}

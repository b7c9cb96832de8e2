//! Processes of a test without the recorder: what the kernel tells of their time and their memory.
//!
//! The recorder takes time and has memory of its own, so these figures are of processes that run without it, as those of `mallow bench`: started by
//! the spawner, which has no size to add. Such a process makes one run of each region and warms nothing up, and its figures are the whole
//! process's, with what it does before and after.

use super::{RunError, Runner, Task};
use mallow_bench::RunEnd;
use mallow_gate::measurement::{Measurement, ProcessMetrics};
use mallow_runner::Alone;
use std::ffi::OsString;

/// Runs as many processes as there are runs that count, and stores the metrics of each beside a run. `asked` are the
/// command's words, and its number of operations.
pub(super) fn measure(
    runner: &Runner<'_>,
    task: &Task<'_>,
    asked: (&[OsString], Option<u64>),
    measured: &mut [Measurement],
) -> Result<(), RunError> {
    let processes = processes(runner, task, asked)?;
    for measurement in measured {
        for (run, process) in measurement.runs.iter_mut().zip(&processes) {
            run.process = *process;
        }
    }
    Ok(())
}

fn processes(
    runner: &Runner<'_>,
    task: &Task<'_>,
    (words, operations): (&[OsString], Option<u64>),
) -> Result<Vec<ProcessMetrics>, RunError> {
    let Task { test, prepared, repeats, .. } = *task;
    let spawner = mallow_launch::unpack("mallow-spawner", "", runner.spawner)
        .map_err(|error| RunError::Untimed(error.into()))?;
    let mut environment: Vec<(OsString, OsString)> = prepared.environment.clone();
    environment.push(("MALLOW_RUNS".into(), "1".into()));
    environment.push(("MALLOW_WARMUP".into(), "0".into()));
    environment.extend(operations.map(|count| ("MALLOW_OPS".into(), count.to_string().into())));
    let alone = Alone {
        words,
        environment: &environment,
        directory: &prepared.directory,
        processors: test.settings.cpus,
        timeout: test.settings.timeout,
    };
    let times = alone.time(spawner, repeats.runs)?;
    if times.interrupted {
        return Err(RunError::Interrupted);
    }
    let last = times.runs.last().filter(|run| run.end != RunEnd::Status(0));
    if let Some(run) = last {
        return Err(RunError::FailedAlone { end: run.end, after: (run.wall_ns, test.settings.timeout) });
    }
    let of = |run: &mallow_bench::Run| ProcessMetrics {
        // The kernel counts pages in batches of some dozen for each CPU: it reports 0 for a process with few pages.
        peak_rss_bytes: Some(run.peak_rss_bytes).filter(|bytes| *bytes > 0),
        wall_ns: Some(run.wall_ns),
    };
    Ok(times.runs.iter().map(of).collect())
}

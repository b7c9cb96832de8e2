//! What one operation more costs: a process with `k` operations, taken from one with `2k`.
//!
//! Starting up, reading a configuration, filling a cache: both processes do it, so it is gone from the difference. A site
//! that the longer process has no more of than the shorter one has no part in an operation.

use super::counted::{ProgramViewCell, empty, note_blind, of_regions, whole_run};
use super::{Repeats, RunError, Runner, Task};
use crate::manifest::Mode;
use mallow_base::Frame;
use mallow_gate::measurement::{Measurement, Metrics, Objects, ProcessMetrics, Run, Site};
use std::collections::HashMap;

/// One run for each pair of processes; `ops` operations in each.
pub(super) fn measure(runner: &mut Runner<'_>, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
    let operations = task.test.ops.ok_or(RunError::NoOperations)?;
    let double = operations.saturating_mul(2);
    let once = Task { repeats: Repeats { runs: 1, warmups: 0 }, ..*task };
    let mut measured: Option<Measurement> = None;
    let seen = ProgramViewCell::new();
    for number in 0..task.repeats.warmups + task.repeats.runs {
        let mut one = |count: u64| -> Result<_, RunError> {
            let started = runner.start(&once, Some(count))?;
            // A program that marks its work is taken at its word, another one is taken whole.
            let run = match of_regions(&once, &started, &seen) {
                Ok(mut regions) if regions.len() == 1 => regions.remove(0).runs.remove(0),
                Ok(_) | Err(RunError::NoRegion) => whole_run(&started.outcome.processes, Mode::Process)?,
                Err(error) => return Err(error),
            };
            Ok((started, run))
        };
        let (_, short) = one(operations)?;
        let (started, long) = one(double)?;
        let measured = measured.get_or_insert_with(|| empty(task, &task.test.name, &started, &seen));
        note_blind(measured, started.outcome.processes.iter());
        if number < task.repeats.warmups {
            measured.warmups += 1;
        } else {
            measured.runs.push(difference(&short, &long));
        }
    }
    let measured = Vec::from_iter(measured);
    let is_flat = |measured: &Measurement| {
        measured.runs.iter().all(|run| run.metrics == Metrics::default() && run.sites.is_empty())
    };
    // What cannot be seen has no slope either.
    match measured.iter().any(|measured| measured.unseen.is_empty() && is_flat(measured)) {
        true => Err(RunError::NoSlope { operations, double }),
        false => Ok(measured),
    }
}

fn difference(short: &Run, long: &Run) -> Run {
    let mut sites: HashMap<&[Frame], (Metrics, Metrics)> = HashMap::new();
    let mut order: Vec<&[Frame]> = Vec::new();
    for site in &long.sites {
        let frames = site.frames.as_slice();
        let sides = sites.entry(frames).or_insert_with(|| {
            order.push(frames);
            Default::default()
        });
        sides.1 = sum(&sides.1, &site.metrics);
    }
    for site in &short.sites {
        if let Some(sides) = sites.get_mut(site.frames.as_slice()) {
            sides.0 = sum(&sides.0, &site.metrics);
        }
    }
    let sites = order.into_iter().filter_map(|frames| {
        let (short, long) = sites[frames];
        let metrics = less(&long, &short);
        (metrics != Metrics::default()).then(|| Site { frames: frames.to_vec(), metrics })
    });
    Run {
        metrics: less(&long.metrics, &short.metrics),
        objects: Objects::default(),
        process: ProcessMetrics::default(),
        sites: sites.collect(),
        settled: short.settled && long.settled,
        waited_us: short.waited_us + long.waited_us,
    }
}

fn sum(a: &Metrics, b: &Metrics) -> Metrics {
    by_part(a, b, u64::saturating_add)
}

fn less(a: &Metrics, b: &Metrics) -> Metrics {
    by_part(a, b, u64::saturating_sub)
}

fn by_part(a: &Metrics, b: &Metrics, join: impl Fn(u64, u64) -> u64) -> Metrics {
    Metrics {
        allocations: join(a.allocations, b.allocations),
        bytes: join(a.bytes, b.bytes),
        peak_bytes: join(a.peak_bytes, b.peak_bytes),
        remaining_blocks: join(a.remaining_blocks, b.remaining_blocks),
        remaining_bytes: join(a.remaining_bytes, b.remaining_bytes),
        descriptors: join(a.descriptors, b.descriptors),
        temporary: match (a.temporary, b.temporary) {
            (None, None) => None,
            (a, b) => Some(join(a.unwrap_or(0), b.unwrap_or(0))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: &str, allocations: u64) -> Site {
        let frames = vec![Frame { function: function.to_owned(), ..Frame::default() }];
        Site { frames, metrics: Metrics { allocations, ..Metrics::default() } }
    }

    fn run(sites: Vec<Site>) -> Run {
        let allocations = sites.iter().map(|site| site.metrics.allocations).sum();
        Run { metrics: Metrics { allocations, ..Metrics::default() }, sites, settled: true, ..Run::default() }
    }

    #[test]
    fn what_both_do_is_gone() {
        let short = run(vec![site("start", 70), site("work", 1000), site("once", 1)]);
        let long = run(vec![site("start", 70), site("work", 2000), site("table", 3)]);
        let slope = difference(&short, &long);
        assert_eq!(slope.metrics.allocations, 1002);
        assert_eq!(slope.sites, [site("work", 1000), site("table", 3)]);
    }
}

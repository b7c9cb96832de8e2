//! What a process that was recorded comes to: a measurement of each of its regions, or a run of the whole.

use super::{RunError, Started, Task, environment, unseen};
use crate::manifest::{Mode, TestSpec};
use mallow_collect::{RegionRun, WatchedProcess};
use mallow_gate::measurement::{
    Environment, Measurement, Metric, Metrics, Objects, ProcessMetrics, Run, Site,
};
use mallow_gate::regions::name_among_others;
use mallow_launch::is_static;
use std::cell::OnceCell;

/// What is known of a test's program. It is determined from its libc and its symbols, so it is done once, when the
/// first process has reported its libraries.
pub(super) type ProgramViewCell = OnceCell<ProgramView>;

#[derive(Debug)]
pub(super) struct ProgramView {
    environment: Environment,
    unseen: Vec<String>,
    notes: Vec<String>,
}

/// The measurements of one process's regions, in the order in which they ended first.
pub(super) fn of_regions(
    task: &Task<'_>,
    started: &Started,
    seen: &ProgramViewCell,
) -> Result<Vec<Measurement>, RunError> {
    let processes = &started.outcome.processes;
    if let Some(name) = processes.iter().flat_map(|process| &process.unfinished).next() {
        return Err(RunError::Unfinished { region: name.clone() });
    }
    let runs: Vec<&RegionRun> = processes.iter().flat_map(|process| &process.runs).collect();
    let mut names: Vec<&str> = Vec::new();
    for run in &runs {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    if names.is_empty() {
        let program = task.prepared.directory.join(&task.prepared.command[0]);
        return Err(if is_static(&program) { RunError::StaticMarks } else { RunError::NoRegion });
    }
    let strays: Vec<&String> = processes.iter().flat_map(|process| &process.strays).collect();
    let measured = names.iter().map(|region| {
        let name = name_of(task.test, region, names.len());
        let mut measurement =
            Measurement { region: (*region).to_owned(), ..empty(task, &name, started, seen) };
        let own: Vec<Run> = runs.iter().filter(|run| run.name == *region).map(|run| run_of(run)).collect();
        // A region that ran no oftener than it should warm up is cold in each process: all its runs are alike.
        let warmups = if own.len() > task.repeats.warmups as usize { task.repeats.warmups } else { 0 };
        measurement.warmups = warmups;
        let of_region = |process: &&WatchedProcess| process.runs.iter().any(|run| run.name == *region);
        note_blind(&mut measurement, processes.iter().filter(of_region));
        measurement.runs = own.into_iter().skip(warmups as usize).collect();
        measurement.notes.extend(
            strays.iter().map(|stray| format!("The region `{stray}` was ended without having begun.")),
        );
        measurement
    });
    Ok(measured.collect())
}

/// A test with one region has that region's name; with several, each is named after a dot.
fn name_of(test: &TestSpec, region: &str, regions: usize) -> String {
    match regions {
        1 => test.name.clone(),
        _ => name_among_others(&test.name, region),
    }
}

/// A measurement without runs.
pub(super) fn empty(task: &Task<'_>, name: &str, started: &Started, seen: &ProgramViewCell) -> Measurement {
    let processes = &started.outcome.processes;
    let look = seen.get_or_init(|| {
        let mut environment = environment::of(task.test, task.prepared, processes);
        let mut unseen = Vec::new();
        let mut notes = Vec::new();
        if let Some(hidden) = unseen::objects(task, processes) {
            environment.runtime.push_str(hidden.class);
            match task.test.settings.objects {
                true => unseen.push(hidden.sentence.to_owned()),
                false => notes.push(format!("As told by `objects = false`: {}", hidden.sentence)),
            }
        }
        ProgramView { environment, unseen, notes }
    });
    let told = started.outcome.warnings.iter().chain(&look.notes);
    Measurement {
        name: name.to_owned(),
        region: String::new(),
        ops: started.operations,
        runs: Vec::new(),
        warmups: 0,
        environment: look.environment.clone(),
        notes: told.cloned().collect(),
        unseen: look.unseen.clone(),
        is_marked: task.test.mode == Mode::Region,
    }
}

/// Puts in front why the metrics of some of the processes are not those of their memory.
pub(super) fn note_blind<'a>(
    measurement: &mut Measurement,
    processes: impl Iterator<Item = &'a WatchedProcess>,
) {
    for sentence in processes.filter_map(|process| process.blind.as_deref()).map(sentence) {
        if !measurement.unseen.contains(&sentence) {
            measurement.unseen.insert(0, sentence);
        }
    }
}

fn run_of(run: &RegionRun) -> Run {
    let sites = run
        .sites
        .iter()
        .map(|site| Site { frames: site.frames.clone(), metrics: metrics(&site.metrics, site.descriptors) });
    Run {
        metrics: metrics(&run.metrics, run.descriptors),
        objects: objects(&run.told),
        process: ProcessMetrics::default(),
        sites: sites.collect(),
        settled: run.settled,
        waited_us: u64::try_from(run.waited.as_micros()).unwrap_or(u64::MAX),
    }
}

/// Returns the values that a runtime reported under the names of metrics.
fn objects(told: &[(String, u64)]) -> Objects {
    let of = |metric: Metric| told.iter().find(|(word, _)| word == metric.word()).map(|(_, value)| *value);
    Objects {
        made: of(Metric::Objects),
        bytes: of(Metric::ObjectBytes),
        remaining: of(Metric::RemainingObjects),
        remaining_bytes: of(Metric::RemainingObjectBytes),
    }
}

fn metrics(metrics: &mallow_profile::RegionMetrics, descriptors: u64) -> Metrics {
    Metrics {
        allocations: metrics.allocations,
        bytes: metrics.bytes,
        peak_bytes: metrics.peak_bytes,
        remaining_blocks: metrics.remaining_blocks,
        remaining_bytes: metrics.remaining_bytes,
        descriptors,
        temporary: Some(metrics.temporary),
    }
}

/// All processes of a command as one run. Peaks are summed although they may lie at different moments.
pub(super) fn whole_run(processes: &[WatchedProcess], mode: Mode) -> Result<Run, RunError> {
    let mut whole = Run { settled: true, ..Run::default() };
    for process in processes {
        let run = match mode {
            Mode::Repeat => {
                process.from_first.as_ref().or(process.from_main.as_ref()).ok_or(RunError::NoMain)?
            }
            _ => &process.whole,
        };
        let run = run_of(run);
        whole.metrics = whole.metrics.plus(&Metrics { descriptors: 0, ..run.metrics });
        whole.sites.extend(run.sites);
    }
    Ok(whole)
}

/// An error usually begins in the middle of a line; a sentence about the test begins one.
pub(crate) fn sentence(error: &str) -> String {
    let mut letters = error.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

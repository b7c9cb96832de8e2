//! Running a test: its program, as often as its mode wants, with the recorder in it.
//!
//! A program that marks regions repeats itself: the first runs of each region in a process warm it up, the next ones count.
//! One that marks a region once is started again until there are enough runs; each of its processes is cold, so all of
//! them count. Programs without marks are counted whole, or from `main`, one run for each process; the mode `slope` takes
//! a process with `k` operations from one with `2k`, so that what both do, starting up, is gone.

mod environment;
mod error;
mod slope;
mod unseen;

pub(crate) use environment::watched_environment;
pub use error::RunError;

use crate::build::Prepared;
use crate::manifest::{Mode, TestSpec};
use mallow_collect::{
    Counted, Output, Patience, RecordOptions, RecordOutcome, RegionRun, Resolve, Scope, Setting,
    WatchedProcess, record,
};
use mallow_gate::measurement::{Environment, Figures, Measurement, Metric, Objects, Run, Site};
use mallow_gate::regions::name_among_others;
use mallow_profile::Exit;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How often a test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Runs that count.
    pub runs: u32,
    /// Runs before them that do not.
    pub warmups: u32,
}

/// A test to measure.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// What it is.
    pub test: &'a TestSpec,
    /// How it is started.
    pub prepared: &'a Prepared,
    /// How often it is run.
    pub repeats: Repeats,
    /// Where its output and its last trace are left.
    pub folder: &'a Path,
}

/// Runs tests.
pub struct Runner<'a> {
    /// The preload library's bytes.
    pub preload: &'static [u8],
    /// Names addresses.
    pub resolve: Resolve<'a>,
}

/// One process's worth.
struct Started {
    outcome: RecordOutcome,
    operations: Option<u64>,
}

impl Runner<'_> {
    /// Measures a test: a measurement for each of its regions.
    ///
    /// # Errors
    /// When the program cannot be run, fails, takes too long, or cannot be watched.
    pub fn measure(&mut self, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
        match task.test.mode {
            Mode::Region => self.measure_regions(task),
            Mode::Process | Mode::Repeat => self.measure_processes(task),
            Mode::Slope => slope::measure(self, task),
        }
    }

    fn measure_regions(&mut self, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
        let mut regions: Vec<Measurement> = Vec::new();
        let seen = Seen::new();
        let repeats = task.repeats;
        for _ in 0..repeats.runs.max(1) {
            let started = self.start(task, None)?;
            let fresh = of_regions(task, &started, &seen)?;
            join(&mut regions, fresh);
            let least = regions.iter().map(|region| region.runs.len()).min().unwrap_or(0);
            if least >= repeats.runs as usize {
                break;
            }
        }
        for region in &mut regions {
            region.runs.truncate(repeats.runs as usize);
            note_unsettled(region);
        }
        Ok(regions)
    }

    fn measure_processes(&mut self, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
        let mut measured: Option<Measurement> = None;
        let seen = Seen::new();
        for number in 0..task.repeats.warmups + task.repeats.runs {
            let started = self.start(task, None)?;
            let run = whole_run(&started.outcome.processes, task.test.mode)?;
            let measured = measured.get_or_insert_with(|| empty(task, &task.test.name, &started, &seen));
            if number < task.repeats.warmups {
                measured.warmups += 1;
            } else {
                measured.runs.push(run);
            }
            note_blind(measured, started.outcome.processes.iter());
        }
        Ok(Vec::from_iter(measured))
    }

    /// Runs the program once. `operations` is what the mode `slope` asks of it.
    fn start(&mut self, task: &Task<'_>, operations: Option<u64>) -> Result<Started, RunError> {
        let Task { test, prepared, repeats, folder } = *task;
        let output_path = folder.join("output.txt");
        let output = File::create(&output_path)
            .map_err(|cause| RunError::Output { path: output_path.clone(), cause })?;
        let mut environment: Vec<(OsString, OsString)> = prepared.environment.clone();
        environment.push(("MALLOW_RUNS".into(), repeats.runs.to_string().into()));
        environment.push(("MALLOW_WARMUP".into(), repeats.warmups.to_string().into()));
        environment.extend(operations.map(|count| ("MALLOW_OPS".into(), count.to_string().into())));
        let options = RecordOptions {
            command: command(prepared, operations),
            output: Output::File { path: folder.join("trace.mallow"), force: true },
            summary_only: true,
            regions: Some(Counted { patience: patience(test), scope: scope(test.mode) }),
            setting: Setting {
                environment,
                directory: Some(prepared.directory.clone()),
                output: Some(output),
                processors: test.settings.cpus,
                timeout: Some(test.settings.timeout),
                own_group: false,
            },
            preload: self.preload,
        };
        let outcome = record(&options, self.resolve, None)?;
        let told = || error::tail(&output_path);
        if outcome.timed_out {
            return Err(RunError::TimedOut { after: test.settings.timeout, output: told() });
        }
        match outcome.exit {
            Exit::Status(0) => {}
            Exit::Signal(2) => return Err(RunError::Interrupted),
            exit => return Err(RunError::Failed { exit, output: told() }),
        }
        if !outcome.faults.is_empty() {
            return Err(RunError::Incomplete { faults: outcome.faults.join("; ") });
        }
        if outcome.processes.is_empty() {
            return Err(RunError::NotWatched { program: prepared.command[0].to_string_lossy().into_owned() });
        }
        let said = outcome.processes.iter().find_map(|process| process.operations);
        Ok(Started { outcome, operations: test.ops.or(said) })
    }
}

/// The program's command; a word `{ops}` is the number of operations.
fn command(prepared: &Prepared, operations: Option<u64>) -> Vec<OsString> {
    let filled = |word: &OsString| match (word.to_str(), operations) {
        (Some(text), Some(count)) => text.replace("{ops}", &count.to_string()).into(),
        _ => word.clone(),
    };
    prepared.command.iter().map(filled).collect()
}

fn scope(mode: Mode) -> Scope {
    match mode {
        Mode::Region => Scope::Regions,
        // A program without marks is taken whole.
        Mode::Process | Mode::Slope => Scope::Processes,
        Mode::Repeat => Scope::FromMain,
    }
}

fn patience(test: &TestSpec) -> Patience {
    let usual = Patience::default();
    match test.settings.quiesce_ms {
        None => usual,
        Some(limit_ms) => {
            let limit = Duration::from_millis(limit_ms.into());
            Patience { still: usual.still.min(limit), limit }
        }
    }
}

/// What is to be seen of a test's program. Whoever looks reads its libc and its symbols, so it is looked at once, when the
/// first process has shown its libraries.
type Seen = OnceCell<Look>;

#[derive(Debug)]
struct Look {
    environment: Environment,
    unseen: Vec<String>,
    notes: Vec<String>,
}

/// The measurements of one process's regions, in the order in which they ended first.
fn of_regions(task: &Task<'_>, started: &Started, seen: &Seen) -> Result<Vec<Measurement>, RunError> {
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
        return Err(RunError::NoRegion);
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

/// A test with one region is that region; with several, each is named behind a dot.
fn name_of(test: &TestSpec, region: &str, regions: usize) -> String {
    match regions {
        1 => test.name.clone(),
        _ => name_among_others(&test.name, region),
    }
}

/// A measurement without runs.
fn empty(task: &Task<'_>, name: &str, started: &Started, seen: &Seen) -> Measurement {
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
        Look { environment, unseen, notes }
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

/// Puts in front why the figures of some of the processes are not those of their memory.
fn note_blind<'a>(measurement: &mut Measurement, processes: impl Iterator<Item = &'a WatchedProcess>) {
    for sentence in processes.filter_map(|process| process.blind.as_deref()).map(crate::check::sentence) {
        if !measurement.unseen.contains(&sentence) {
            measurement.unseen.insert(0, sentence);
        }
    }
}

/// Adds another process's runs to those of the same regions.
fn join(regions: &mut Vec<Measurement>, fresh: Vec<Measurement>) {
    for measurement in fresh {
        match regions.iter_mut().find(|region| region.name == measurement.name) {
            Some(region) => {
                region.runs.extend(measurement.runs);
                region.warmups += measurement.warmups;
            }
            None => regions.push(measurement),
        }
    }
}

fn note_unsettled(region: &mut Measurement) {
    let unsettled = region.runs.iter().filter(|run| !run.settled).count();
    if unsettled > 0 {
        region.notes.push(format!(
            "In {unsettled} of {} runs something was still being freed when waiting for it was given up (quiesce_ms sets how long).",
            region.runs.len()
        ));
    }
}

fn run_of(run: &RegionRun) -> Run {
    let sites = run
        .sites
        .iter()
        .map(|site| Site { frames: site.frames.clone(), figures: figures(&site.figures, site.descriptors) });
    Run {
        figures: figures(&run.figures, run.descriptors),
        objects: objects(&run.told),
        sites: sites.collect(),
        settled: run.settled,
        waited_us: u64::try_from(run.waited.as_micros()).unwrap_or(u64::MAX),
    }
}

/// What a runtime told under the words of metrics.
fn objects(told: &[(String, u64)]) -> Objects {
    let of = |metric: Metric| told.iter().find(|(word, _)| word == metric.word()).map(|(_, value)| *value);
    Objects {
        made: of(Metric::Objects),
        bytes: of(Metric::ObjectBytes),
        remaining: of(Metric::RemainingObjects),
        remaining_bytes: of(Metric::RemainingObjectBytes),
    }
}

fn figures(figures: &mallow_profile::RegionFigures, descriptors: u64) -> Figures {
    Figures {
        allocations: figures.allocations,
        bytes: figures.bytes,
        peak_bytes: figures.peak_bytes,
        remaining_blocks: figures.remaining_blocks,
        remaining_bytes: figures.remaining_bytes,
        descriptors,
    }
}

/// All processes of a command as one run. Peaks are summed although they may lie at different moments.
fn whole_run(processes: &[WatchedProcess], mode: Mode) -> Result<Run, RunError> {
    let mut whole = Run { settled: true, ..Run::default() };
    for process in processes {
        let run = match mode {
            Mode::Repeat => {
                process.from_first.as_ref().or(process.from_main.as_ref()).ok_or(RunError::NoMain)?
            }
            _ => &process.whole,
        };
        let run = run_of(run);
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut whole.figures.allocations, run.figures.allocations);
        add(&mut whole.figures.bytes, run.figures.bytes);
        add(&mut whole.figures.peak_bytes, run.figures.peak_bytes);
        add(&mut whole.figures.remaining_blocks, run.figures.remaining_blocks);
        add(&mut whole.figures.remaining_bytes, run.figures.remaining_bytes);
        whole.sites.extend(run.sites);
    }
    Ok(whole)
}

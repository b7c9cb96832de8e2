//! Running a test: its program, as often as its mode wants, with the recorder in it.
//!
//! A program that marks regions repeats itself: the first runs of each region in a process warm it up, the next ones count.
//! One that marks a region once is started again until there are enough runs; each of its processes is cold, so all of
//! them count. Programs without marks are counted whole, or from `main`, one run for each process; the mode `slope` takes
//! a process with `k` operations from one with `2k`, so that what both do, starting up, is gone.

mod counted;
mod environment;
mod error;
mod slope;
mod timed;
mod unseen;

pub(crate) use counted::sentence;
use counted::{ProgramViewCell, empty, note_blind, of_regions, whole_run};
pub(crate) use environment::watched_environment;
pub use error::RunError;

use crate::build::Prepared;
use crate::manifest::{Mode, TestSpec};
use mallow_collect::{
    CommandLines, Counted, Output, RecordOptions, RecordOutcome, Resolve, Scope, SettleTimeout, record,
};
use mallow_gate::measurement::Measurement;
use mallow_launch::{Content, SpawnOptions};
use mallow_profile::Exit;
use std::ffi::OsString;
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
    /// The test.
    pub test: &'a TestSpec,
    /// How it is started.
    pub prepared: &'a Prepared,
    /// How often it is run.
    pub repeats: Repeats,
    /// Whether its processes are timed without the recorder too.
    pub is_timed: bool,
    /// The folder for its output and its last trace.
    pub folder: &'a Path,
}

/// Runs tests.
pub struct Runner<'a> {
    /// How much is kept of the command lines of tests, in their traces.
    pub command_lines: CommandLines,
    /// The preload library.
    pub preload: Content<'static>,
    /// Called whenever a program has ended, as by `RecordOptions`.
    pub ended: Option<fn()>,
    /// The program that starts and times others.
    pub spawner: Content<'static>,
    /// Names addresses.
    pub resolve: Resolve<'a>,
}

/// One process's worth.
struct Started {
    outcome: RecordOutcome,
    operations: Option<u64>,
}

impl Runner<'_> {
    /// Measures a test: returns a measurement for each of its regions.
    ///
    /// # Errors
    /// If the program cannot be run, fails, takes too long, or cannot be recorded.
    pub fn measure(&mut self, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
        let mut measured = match task.test.mode {
            Mode::Region => self.measure_regions(task),
            Mode::Process | Mode::Repeat => self.measure_processes(task),
            Mode::Slope => slope::measure(self, task),
        }?;
        if task.is_timed {
            // As in the recorded runs: in other modes the program itself reports its operations.
            let operations = task.test.ops.filter(|_| task.test.mode == Mode::Slope);
            timed::measure(self, task, (&command(task.prepared, operations), operations), &mut measured)?;
        }
        Ok(measured)
    }

    fn measure_regions(&mut self, task: &Task<'_>) -> Result<Vec<Measurement>, RunError> {
        let mut regions: Vec<Measurement> = Vec::new();
        let seen = ProgramViewCell::new();
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
        let seen = ProgramViewCell::new();
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

    /// Runs the program once. `operations` is the argument in the mode `slope`.
    fn start(&mut self, task: &Task<'_>, operations: Option<u64>) -> Result<Started, RunError> {
        let Task { test, prepared, repeats, folder, .. } = *task;
        let output_path = folder.join("output.txt");
        let output = mallow_files::overwrite(&output_path)
            .map_err(|cause| RunError::Output { path: output_path.clone(), cause })?;
        let mut environment: Vec<(OsString, OsString)> = prepared.environment.clone();
        environment.push(("MALLOW_RUNS".into(), repeats.runs.to_string().into()));
        environment.push(("MALLOW_WARMUP".into(), repeats.warmups.to_string().into()));
        environment.extend(operations.map(|count| ("MALLOW_OPS".into(), count.to_string().into())));
        let options = RecordOptions {
            command: command(prepared, operations),
            command_lines: self.command_lines,
            output: Output::File { path: folder.join("trace.mallow"), force: true },
            summary_only: true,
            delay: Duration::ZERO,
            regions: Some(Counted { settle_timeout: settle_timeout(test), scope: scope(test.mode) }),
            spawn: SpawnOptions {
                environment,
                directory: Some(prepared.directory.clone()),
                input: None,
                output: Some(output),
                processors: test.settings.cpus,
                timeout: Some(test.settings.timeout),
                own_group: false,
            },
            preload: self.preload,
            started: None,
            ended: self.ended,
        };
        let outcome = record(&options, self.resolve, &Vec::new, None, &mut |_| false)?;
        let told = || error::tail(&output_path);
        if outcome.timed_out {
            let (after, exit) = (test.settings.timeout, outcome.exit);
            return Err(RunError::TimedOut { after, exit, output: told() });
        }
        if outcome.interrupted {
            return Err(RunError::Interrupted);
        }
        match outcome.exit {
            Some(Exit::Status(0)) => {}
            Some(Exit::Signal(2)) => return Err(RunError::Interrupted),
            exit => return Err(RunError::Failed { exit, output: told(), killed: outcome.killed }),
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

fn settle_timeout(test: &TestSpec) -> SettleTimeout {
    let usual = SettleTimeout::default();
    match test.settings.quiesce_ms {
        None => usual,
        Some(limit_ms) => {
            let limit = Duration::from_millis(limit_ms.into());
            SettleTimeout { still: usual.still.min(limit), limit }
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
            "In {unsettled} of {} runs something was still being freed when waiting for it was given up (`quiesce` sets how long).",
            region.runs.len()
        ));
    }
}

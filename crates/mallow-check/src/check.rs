//! A whole check: build, run, compare, judge, one test after the other.
//!
//! Tests run one at a time, so that they do not disturb one another's threads; programs are built side by side. A test
//! that fails is a result like any other, and the check goes on.

use crate::baselines::Baselines;
use crate::build::{self, BuildError, Prepared, Tools};
use crate::manifest::{Mode, Program, TestSpec};
use crate::regions::keep_names;
use crate::run::{Repeats, RunError, Runner, Task, sentence, watched_environment};
use crate::suite::{Suite, SuiteError};
use crate::workdir::Workdir;
use mallow_collect::CollectError;
use mallow_gate::baseline::{Baseline, BaselineError, Found, Machine};
use mallow_gate::limit::{Limit, Limits};
use mallow_gate::measurement::{Environment, Measurement, Metric};
use mallow_gate::nio::{self, BenchmarkLimits, Thresholds};
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use mallow_gate::{guards, judge, regions};
use mallow_launch::LaunchError;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options that override the suite.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The suite as a shell word; `None` if it was not named.
    pub suite_words: Option<String>,
    /// Runs that count.
    pub runs: Option<u32>,
    /// Runs before them.
    pub warmups: Option<u32>,
    /// When a program is killed.
    pub timeout: Option<Duration>,
    /// Compare with baselines of other environments too.
    pub ignore_environment: bool,
    /// Limits of SwiftNIO's framework, by test.
    pub thresholds: Option<Thresholds>,
    /// Limits of package-benchmark.
    pub benchmark_limits: BenchmarkLimits,
    /// The name of the baselines that tests are compared with, if they have one.
    pub baseline_name: Option<String>,
    /// Another build to compare the tests with, instead of the baselines.
    pub against: Option<Against>,
    /// Globs of functions that allocate on behalf of their caller, beside the suite's.
    pub plumbing: Vec<String>,
}

/// Another build of the same tests, which is run just before each of them.
#[derive(Clone, Debug)]
pub enum Against {
    /// The tests of another checkout, by name.
    Tests(Vec<(TestSpec, Prepared)>),
    /// Words that are put before each test's command, such as `env LD_LIBRARY_PATH=../old/lib`.
    Prefix(Vec<OsString>),
}

impl Against {
    /// The tests of another suite. One that cannot be built there is missing.
    ///
    /// # Errors
    /// When what the other suite builds before its tests fails.
    pub fn suite(suite: &Suite, workdir: &Workdir, tools: &Tools) -> Result<Against, CheckError> {
        let prepared = build::prepare(suite, workdir, tools).map_err(CheckError::Build)?;
        let tests = suite.tests.iter().cloned().zip(prepared);
        Ok(Against::Tests(tests.filter_map(|(test, prepared)| Some((test, prepared.ok()?))).collect()))
    }

    /// Returns how to run the other build of a test; `None` if there is none.
    fn of(&self, test: &TestSpec, prepared: &Prepared) -> Option<(TestSpec, Prepared)> {
        match self {
            Against::Tests(tests) => tests.iter().find(|(other, _)| other.name == test.name).cloned(),
            Against::Prefix(words) => {
                let command = words.iter().chain(&prepared.command).cloned().collect();
                Some((test.clone(), Prepared { command, ..prepared.clone() }))
            }
        }
    }
}

/// Progress of a check.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A test begins: its name, and its source or program.
    Begins(&'a str, &'a Path),
    /// The result of a test, or of one of its regions. Guards over the whole suite may still change it.
    Judged(&'a TestResult),
}

/// Why there is no check at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The build step of the other suite failed.
    #[error("{0}")]
    Build(BuildError),
    /// The baselines cannot be read.
    #[error("{0}")]
    Baseline(#[from] BaselineError),
    /// A requested test does not exist.
    #[error("{0}")]
    NotThere(#[from] SuiteError),
    /// Somebody pressed Ctrl-C.
    #[error("the check was interrupted")]
    Interrupted,
    /// Nothing was run.
    #[error("{0}")]
    NoTests(String),
}

/// The inputs of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext<'a> {
    /// The tests.
    pub suite: &'a Suite,
    /// The working folder.
    pub workdir: &'a Workdir,
    /// The tools.
    pub tools: &'a Tools,
    /// The baselines.
    pub baselines: &'a Baselines,
    /// Options that override the suite.
    pub options: &'a Options,
}

/// Checks a suite.
///
/// # Errors
/// If there is nothing to judge; errors of a single test are in its result.
pub fn check(
    context: CheckContext<'_>,
    runner: &mut Runner<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<CheckResult, CheckError> {
    let CheckContext { suite, workdir, tools, baselines, options } = context;
    let prepared = build::prepare(suite, workdir, tools)
        .unwrap_or_else(|error| not_one_built(&error, suite.tests.len()));
    let mut tests = Vec::new();
    for (test, prepared) in suite.tests.iter().zip(prepared) {
        let begun = Instant::now();
        let mut results = match prepared {
            Ok(prepared) => {
                progress(Progress::Begins(&test.name, path_of(test, &prepared)));
                One { test, prepared: &prepared, context }.results(runner)?
            }
            Err(error) => vec![could_not_be_built(&test.name, &error)],
        };
        let share = begun.elapsed() / results.len().max(1) as u32;
        for result in &mut results {
            result.duration_us = u64::try_from(share.as_micros()).unwrap_or(u64::MAX);
            if suite.selection.names(&test.name, &result.name) {
                progress(Progress::Judged(result));
            }
        }
        note_regions(workdir, &test.name, &results);
        tests.append(&mut results);
    }
    suite.keep_selected(&mut tests)?;
    let environment = environment_of(&tests);
    let sentences = look_over(&mut tests, baselines, &environment, suite.selection.is_all())?;
    if let Some(sentence) = guards::no_tests(&tests) {
        return Err(CheckError::NoTests(sentence));
    }
    let words = options.suite_words.as_deref().map(|words| format!(" {words}")).unwrap_or_default();
    let mut sentences = sentences;
    let update = match &options.baseline_name {
        Some(name) => {
            name_in_sentences(&mut tests, &mut sentences, name);
            format!("--update --baseline {name}")
        }
        None => "--update".to_owned(),
    };
    let update_command = format!("mallow check{words} {update}");
    Ok(CheckResult { tests, environment, sentences, update_command, folder: workdir.root().to_owned() })
}

/// The command in a sentence about accepting values has to write the baseline that the tests were compared with.
fn name_in_sentences(tests: &mut [TestResult], of_all: &mut [String], name: &str) {
    for sentence in tests.iter_mut().flat_map(|test| &mut test.sentences).chain(of_all) {
        *sentence = sentence.replace("`--update", &format!("`--update --baseline {name}"));
    }
}

/// Checks all results together ([`guards`]), including stale baselines if all tests were requested.
fn look_over(
    tests: &mut Vec<TestResult>,
    baselines: &Baselines,
    environment: &Environment,
    is_all: bool,
) -> Result<Vec<String>, BaselineError> {
    let kept = if is_all { Some(kept_for(tests, baselines, environment)?) } else { None };
    Ok(guards::look_over(tests, kept.as_deref()))
}

/// The names and files of all baselines of the environments that tests ran in.
fn kept_for(
    tests: &[TestResult],
    baselines: &Baselines,
    environment: &Environment,
) -> Result<Vec<(String, PathBuf)>, BaselineError> {
    // Tests in other languages have other environments in the same run.
    let measured = tests.iter().filter_map(|result| result.measurement.as_ref());
    let mut environments: BTreeSet<&Environment> = measured.map(|measured| &measured.environment).collect();
    environments.insert(environment);
    let mut kept = Vec::new();
    for environment in environments {
        kept.extend(baselines.names(environment)?);
    }
    Ok(kept)
}

/// If the suite's build step fails, every test counts as failed, so that readers of the results see it. The output is
/// reported once.
fn not_one_built(error: &BuildError, tests: usize) -> Vec<Result<Prepared, BuildError>> {
    let told_before =
        BuildError { sentence: format!("{}; see the first test", error.sentence), output: String::new() };
    (0..tests).map(|test| Err(if test == 0 { error.clone() } else { told_before.clone() })).collect()
}

/// Stores the names of measured regions, so that they can be listed. A failed test keeps the earlier names.
fn note_regions(workdir: &Workdir, test: &str, results: &[TestResult]) {
    let measured = results.iter().filter(|result| result.measurement.is_some());
    let names: Vec<&str> = measured.map(|result| result.name.as_str()).collect();
    if !names.is_empty() {
        // A list that cannot be kept is no reason not to check.
        let _ = workdir.note_regions(test, &names);
    }
}

fn path_of<'a>(test: &'a TestSpec, prepared: &'a Prepared) -> &'a Path {
    match &test.program {
        Some(Program::Source(path, _)) => path,
        _ => Path::new(&prepared.command[0]),
    }
}

/// Returns the environment of the tests, of which the most frequent is the suite's; this process's if none ran.
fn environment_of(tests: &[TestResult]) -> Environment {
    let all: Vec<&Environment> = tests
        .iter()
        .filter_map(|test| test.measurement.as_ref())
        .map(|measured| &measured.environment)
        .collect();
    let count = |environment: &Environment| all.iter().filter(|other| **other == environment).count();
    match all.iter().max_by_key(|environment| count(environment)) {
        Some(environment) => (*environment).clone(),
        None => watched_environment(&[], "", None, None),
    }
}

/// One test of the suite.
struct One<'a> {
    test: &'a TestSpec,
    prepared: &'a Prepared,
    context: CheckContext<'a>,
}

impl One<'_> {
    /// A result for each of its regions.
    fn results(&self, runner: &mut Runner<'_>) -> Result<Vec<TestResult>, CheckError> {
        let both = self.measured_before(runner).and_then(|before| {
            Ok((before, self.measured(runner, self.test, self.prepared, &self.test.name)?))
        });
        let (before, mut measured) = match both {
            Ok(both) => both,
            Err(RunError::Interrupted) => return Err(CheckError::Interrupted),
            Err(error) => return Ok(vec![failed(&self.test.name, &error)]),
        };
        if before.is_none() {
            keep_names(&self.test.name, &mut measured, self.context.baselines)?;
        }
        let judged = measured.iter().map(|measurement| self.judged(measurement, before.as_deref()));
        let mut results = judged.collect::<Result<Vec<_>, _>>()?;
        results.extend(before.map(|before| regions::vanished(&before, &measured)).unwrap_or_default());
        Ok(results)
    }

    /// The other build's measurements; none when baselines are used.
    fn measured_before(&self, runner: &mut Runner<'_>) -> Result<Option<Vec<Measurement>>, RunError> {
        let Some(against) = &self.context.options.against else { return Ok(None) };
        let Some((test, prepared)) = against.of(self.test, self.prepared) else {
            return Ok(Some(Vec::new()));
        };
        let folder = format!("{}.before", test.name);
        self.measured(runner, &test, &prepared, &folder).map(Some)
    }

    /// Measures a test, and once more if the runs differ too much.
    fn measured(
        &self,
        runner: &mut Runner<'_>,
        test: &TestSpec,
        prepared: &Prepared,
        folder: &str,
    ) -> Result<Vec<Measurement>, RunError> {
        let settings = &test.settings;
        let repeats = Repeats {
            runs: self.context.options.runs.unwrap_or(settings.runs),
            warmups: self.context.options.warmups.unwrap_or(settings.warmup),
        };
        let mut test = test.clone();
        test.settings.timeout = self.context.options.timeout.unwrap_or(test.settings.timeout);
        let folder = self
            .context
            .workdir
            .test_folder(folder)
            .map_err(|cause| RunError::Output { path: self.context.workdir.root().to_owned(), cause })?;
        // Another build is timed where this one is.
        let limits = &self.test.settings.limits;
        let is_timed = limits.are_of_processes();
        let task = Task { test: &test, prepared, repeats, is_timed, folder: &folder };
        let wants_more = |measurement: &Measurement| {
            judge::wants_more_runs(measurement) || judge::wants_more_times(measurement, limits)
        };
        let mut measured = runner.measure(&task)?;
        if measured.iter().any(wants_more) {
            for more in runner.measure(&task)? {
                let known = measured.iter_mut().find(|measurement| measurement.name == more.name);
                match known {
                    Some(known) if wants_more(known) => known.runs.extend(more.runs),
                    Some(_) => {}
                    None => measured.push(more),
                }
            }
        }
        Ok(measured)
    }

    fn judged(
        &self,
        measurement: &Measurement,
        before: Option<&[Measurement]>,
    ) -> Result<TestResult, CheckError> {
        let found = match before {
            None => self.context.baselines.find(&measurement.name, &measurement.environment)?,
            Some(before) => {
                let baseline = regions::of_same(measurement, before)
                    .and_then(|before| Baseline::of(before, &Machine::default()));
                baseline.map_or(Found::None, |baseline| Found::Exact(Box::new(baseline)))
            }
        };
        let how = judge::Settings { ignore_environment: self.context.options.ignore_environment };
        let limits = self.limits(&measurement.name, &found);
        let plumbing = [&self.test.settings.plumbing[..], &self.context.options.plumbing].concat();
        Ok(TestResult { plumbing, ..judge::judge_found(measurement, &found, &limits, &how) })
    }

    /// The manifest's limits; where it has none, package-benchmark's; then for allocations SwiftNIO's, or the suite's tolerance.
    fn limits(&self, name: &str, found: &Found) -> Limits {
        let mut limits = self.test.settings.limits.clone();
        let short = name.strip_prefix("test_").unwrap_or(name);
        for (metric, limit) in
            self.context.options.benchmark_limits.of(&[name, short], self.test.settings.tolerance)
        {
            if limits.of(metric).is_none() {
                limits.by_metric.push((metric, limit));
            }
        }
        let is_whole = matches!(self.test.mode, Mode::Process | Mode::Repeat);
        if is_whole && !matches!(found, Found::Exact(_)) && limits.of(Metric::Remaining).is_none() {
            // Programs leave it to the kernel to clear up after them: that alone is no leak.
            limits.by_metric.push((Metric::Remaining, Limit::None));
        }
        if limits.of(Metric::Allocations).is_some() {
            return limits;
        }
        let of_thresholds = |thresholds: &Thresholds| thresholds.get(name).or_else(|| thresholds.get(short));
        let threshold = self.context.options.thresholds.as_ref().and_then(of_thresholds);
        let limit = match (threshold, self.test.settings.tolerance, found) {
            (Some(max), ..) => {
                let min = (max + 1).saturating_sub(nio::WINDOW);
                Limit::Absolute { min: Some(min), max: Some(max) }
            }
            (None, Some(tolerance), Found::Exact(_)) => Limit::Relative(tolerance),
            _ => return limits,
        };
        limits.by_metric.push((Metric::Allocations, limit));
        limits
    }
}

fn failed(name: &str, error: &RunError) -> TestResult {
    let outcome = match error {
        // The program may be fine; it is we who see nothing of it.
        RunError::NotWatched { .. }
        | RunError::StaticMarks
        | RunError::Collect(CollectError::Launch(
            LaunchError::CannotPreload { .. } | LaunchError::CannotInject { .. },
        )) => Outcome::Blind,
        _ => Outcome::Error,
    };
    TestResult::unmeasured(name, outcome, sentence(&error.to_string()))
}

fn could_not_be_built(name: &str, error: &BuildError) -> TestResult {
    let output = error.output.trim_end();
    let told = match output {
        "" => error.sentence.clone(),
        output => format!("{}\n{output}", error.sentence),
    };
    TestResult::unmeasured(name, Outcome::Error, sentence(&told))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;

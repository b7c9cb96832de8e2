//! Runs a suite, judges it, and shows the results.

use super::ci_environment::CiEnvironment;
use super::outputs::Outputs;
use super::request::{Check, CheckForm, Job};
use super::suite_file;
use super::update;
use crate::{exit_code, interrupts, output, preload, words};
use mallow_check::baselines::Baselines;
use mallow_check::build::Tools;
use mallow_check::check::{Against, CheckContext, CheckError, Options, Progress};
use mallow_check::run::Runner;
use mallow_check::suite::Suite;
use mallow_check::workdir::Workdir;
use mallow_gate::nio::{BENCHMARK_ENDING, BenchmarkLimits, Thresholds, read_log};
use mallow_gate::result::CheckResult;
use mallow_profile::Nameless;
use mallow_query::{Failure, Names};
use mallow_text::check::{nio, text};
use mallow_text::{Style, shell_word};
use mallow_view::Weight;
use mallow_view::check::{outcome, settle_blame};
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Judges a suite, or stores its metrics as baselines.
pub(crate) fn run(check: &Check) -> Result<u8, Failure> {
    let ci_environment = CiEnvironment::of(|name| std::env::var_os(name));
    let suite = opened(check, check.suite.as_deref(), &check.only)?;
    let baselines = suite_file::baselines(check, &suite)?;
    let result = measured(check, &suite, &baselines)?;
    if let Job::Update { allow_missing_counts } = check.job {
        return update::of_result(check, &result, &baselines, allow_missing_counts, &ci_environment);
    }
    Outputs { check, result: &result, ci_environment: &ci_environment }.write(&suite.folder)?;
    let outcome = outcome(&result, check.baselines.allow_improvement);
    // A check without tests has checked nothing, so it must not pass.
    Ok(outcome.map_or(exit_code::BAD_INPUT, Weight::exit_code))
}

fn measured(check: &Check, suite: &Suite, baselines: &Baselines) -> Result<CheckResult, Failure> {
    let workdir = quiet_workdir(&suite.folder)?;
    let tools = tools(check);
    let (against, _other) = against(check, &tools)?;
    let options = Options {
        suite_words: check.suite.as_ref().map(|suite| shell_word(&suite.to_string_lossy())),
        runs: check.measuring.runs.map(u32::from),
        warmups: check.measuring.warmups,
        timeout: check.measuring.timeout,
        ignore_environment: check.baselines.ignore_environment,
        thresholds: thresholds(check, suite)?,
        benchmark_limits: benchmark_limits(check, suite)?,
        baseline_name: check.baselines.name.clone(),
        against,
        plumbing: check.shown.plumbing.clone(),
    };
    let names = RefCell::new(Names::new());
    let mut resolve = |module: &_, calls: &[u64]| names.borrow_mut().of_calls(module, calls);
    let mut runner = Runner {
        command_lines: check.measuring.command_lines,
        preload: preload::LIBRARY,
        ended: Some(interrupts::end_waits_for_names),
        spawner: preload::SPAWNER,
        resolve: &mut resolve,
    };
    let stderr = std::io::stderr();
    let style = crate::terminal::style(&stderr);
    // A table on stdout has everything at its end, so progress is then only for a person who waits.
    let is_table = check.shown.form == CheckForm::Text && check.shown.output.is_none();
    let is_told = !is_table || stderr.is_terminal();
    let mut progress = |progress: Progress<'_>| {
        if is_told {
            tell(check.shown.form, &progress, style);
        }
    };
    let context = CheckContext { suite, workdir: &workdir, tools: &tools, baselines, options: &options };
    let mut result = mallow_check::check::check(context, &mut runner, &mut progress).map_err(failure)?;
    result.sentences.extend(names.into_inner().nameless().iter().map(Nameless::sentence));
    settle_blame(&mut result);
    Ok(result)
}

/// Opens the work directory of a suite; says so while it waits for another check.
fn quiet_workdir(folder: &Path) -> Result<Workdir, Failure> {
    Ok(Workdir::open_telling(folder, |note| output::tell(&format!("mallow: {note}\n")))?)
}

/// The same, and prints its path.
pub(crate) fn workdir(folder: &Path) -> Result<Workdir, Failure> {
    let workdir = quiet_workdir(folder)?;
    output::inform(&format!("Working folder: {}\n", workdir.root().display()));
    Ok(workdir)
}

/// Returns the compilers, and how many of them run at once.
pub(crate) fn tools(check: &Check) -> Tools {
    let tools = Tools::of_environment();
    match check.measuring.jobs {
        Some(jobs) => tools.with_jobs(u32::from(jobs) as usize),
        None => tools,
    }
}

/// Opens a suite, with the tests that the command line selects.
fn opened(check: &Check, path: Option<&Path>, only: &[String]) -> Result<Suite, Failure> {
    let mut suite = Suite::open(path, only)?;
    if check.measuring.python_objects {
        suite.tests.iter_mut().for_each(|test| test.settings.count_python_objects(true));
    }
    Ok(suite)
}

/// Opens the other build, with its work directory, which must be kept while the build is used.
fn against(check: &Check, tools: &Tools) -> Result<(Option<Against>, Option<Workdir>), Failure> {
    let Job::Against(old) = &check.job else { return Ok((None, None)) };
    if !Path::new(old).exists() {
        return Ok((Some(Against::Prefix(words(old)?)), None));
    }
    let suite = opened(check, Some(Path::new(old)), &[])?;
    let workdir = quiet_workdir(&suite.folder)?;
    let against = Against::suite(&suite, &workdir, tools).map_err(failure)?;
    Ok((Some(against), Some(workdir)))
}

/// Splits a command prefix for each test. Its first word must be a program; otherwise a folder was meant.
fn words(text: &OsStr) -> Result<Vec<OsString>, Failure> {
    let words = words::of_command(&text.to_string_lossy()).unwrap_or_default();
    let is_program = |word: &OsString| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Path::new(word).is_file() || std::env::split_paths(&path).any(|folder| folder.join(word).is_file())
    };
    match words.first() {
        Some(first) if is_program(first) => Ok(words),
        _ => Err(Failure::new(format!(
            "--against {} is neither a suite nor a command: name the other checkout's suite, or a program to put before each test.",
            text.to_string_lossy()
        ))),
    }
}

/// Returns the path of another framework's limits.
fn thresholds_path<'a>(check: &'a Check, suite: &'a Suite) -> Option<&'a Path> {
    check.baselines.thresholds.as_deref().or(suite.gate.thresholds.as_deref())
}

/// Returns whether this is a file of package-benchmark's, or a folder of them.
fn is_of_benchmarks(path: &Path) -> bool {
    path.is_dir() || path.to_string_lossy().ends_with(BENCHMARK_ENDING)
}

/// Reads limits of package-benchmark, from a folder or one file. Metrics in it that are not judged are reported.
fn benchmark_limits(check: &Check, suite: &Suite) -> Result<BenchmarkLimits, Failure> {
    let mut limits = BenchmarkLimits::default();
    let Some(path) = thresholds_path(check, suite).filter(|path| is_of_benchmarks(path)) else {
        return Ok(limits);
    };
    for file in benchmark_files(path)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        limits.add(&name, &suite_file::read(&file)?, &file.display().to_string())?;
    }
    let others: Vec<&str> = limits.others().collect();
    if !others.is_empty() {
        output::tell(&format!(
            "mallow: {} has limits of metrics that are not judged: {}.",
            path.display(),
            others.join(", ")
        ));
    }
    Ok(limits)
}

/// Returns the files of a folder, sorted, or a single file.
fn benchmark_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| Failure::new(format!("cannot read the folder {}: {error}.", path.display()));
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(unreadable)?.collect();
    let mut files: Vec<PathBuf> = entries.map_err(unreadable)?.iter().map(std::fs::DirEntry::path).collect();
    files.retain(|file| file.to_string_lossy().ends_with(BENCHMARK_ENDING));
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!(
            "{} holds no file of limits such as Target.Benchmark{BENCHMARK_ENDING}.",
            path.display()
        )));
    }
    Ok(files)
}

/// Reads SwiftNIO's limits from a file, or computes them from logs.
fn thresholds(check: &Check, suite: &Suite) -> Result<Option<Thresholds>, Failure> {
    let path = thresholds_path(check, suite).filter(|path| !is_of_benchmarks(path));
    let mut thresholds = match path {
        Some(path) => Some(Thresholds::from_text(&suite_file::read(path)?, &path.display().to_string())?),
        None => None,
    };
    for path in &check.baselines.thresholds_from_logs {
        let log = read_log(&suite_file::read(path)?);
        let of_log = Thresholds::of_log(&log.tests);
        if of_log.iter().next().is_none() {
            return Err(Failure::new(format!(
                "{} holds no line such as `test_x.total_allocations: 10`.",
                path.display()
            )));
        }
        let all = thresholds.get_or_insert_default();
        of_log.iter().for_each(|(name, limit)| all.set(name, limit));
    }
    Ok(thresholds)
}

/// Converts the error of a check. The compiler's output precedes the sentence.
pub(crate) fn failure(error: CheckError) -> Failure {
    if let CheckError::Build(error) = &error {
        output::tell(&error.output);
    }
    error.into()
}

/// Prints progress while the check runs. SwiftNIO's lines are the result itself.
fn tell(form: CheckForm, progress: &Progress<'_>, style: Style) {
    match (form, progress) {
        (CheckForm::Nio, Progress::Begins(_, path)) => nio_line(&nio::program(path)),
        (CheckForm::Nio, Progress::Judged(test)) => nio_line(&nio::test(test)),
        (_, Progress::Begins(..)) => {}
        (_, Progress::Judged(test)) => output::inform(&text::line(test, style)),
    }
}

fn nio_line(line: &str) {
    // A closed stdout is noticed when the result is written.
    let _ = output::to_stdout(|out| out.write_all(line.as_bytes()));
}

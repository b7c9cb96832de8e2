//! `mallow stat`: runs a command, or several to be compared, once or several times, counts, and stores nothing.

use crate::refusal::Refusal;
use crate::request::Stat;
use crate::{exit_code, output, preload, words};
use mallow_collect::{CollectError, StatOptions, StatOutcome};
use mallow_json::stat::{OwnedProcessJson, RunJson, StatJson};
use mallow_profile::{Exit, Totals};
use mallow_query::Failure;
use mallow_runner::needs_shell;
use mallow_text::Style;
use mallow_text::stat::Measured;
use mallow_view::Run;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A command, and what its runs counted.
struct Counted {
    command: Vec<OsString>,
    outcomes: Vec<StatOutcome>,
}

/// Counts a command's allocations, or those of several commands.
pub(crate) fn run(stat: Stat) -> Result<u8, Refusal> {
    let interrupted = watch_interrupts()?;
    // Before the first run, so that a result that cannot be written is refused at once.
    let place = stat.output.as_ref().filter(|file| !file.is_stdout());
    let mut file = place.map(|file| output::create(&file.path, file.force)).transpose()?;
    let counted = measure_all(&stat, &interrupted).inspect_err(|_| {
        // Leave no incomplete file: this one was created above and is empty. An existing file must not be removed.
        if let Some(made) = place.filter(|made| !made.force) {
            let _ = std::fs::remove_file(&made.path);
        }
    })?;
    let outcomes = || counted.iter().flat_map(|one| &one.outcomes);
    for outcome in outcomes() {
        output::warn(&outcome.warnings);
        output::note(&outcome.notes);
    }
    let code = outcomes().map(|outcome| exit_code::of_end(outcome.exit)).find(|code| *code != 0);
    let result = if stat.json { json(&stat, counted)? } else { text(&stat, &counted, stat.output.is_some()) };
    match (place, &mut file) {
        (Some(place), Some(file)) => output::to_file(&place.path, file, &result)?,
        _ if stat.json || stat.output.is_some() => output::to_stdout(|out| out.write_all(result.as_bytes()))?,
        _ => output::tell(&result),
    }
    Ok(code.unwrap_or(exit_code::FINE))
}

/// Several words that are command lines, of which the first is no program, are several commands.
fn commands(stat: &Stat) -> Result<Vec<Vec<OsString>>, Failure> {
    let words = stat.command.as_slice();
    let lines: Option<Vec<&str>> =
        words.iter().map(|word| word.to_str().filter(|it| it.contains(' '))).collect();
    match lines {
        Some(lines) if lines.len() > 1 && mallow_launch::find_program(&words[0]).is_err() => {
            lines.into_iter().map(words_of).collect()
        }
        _ => Ok(vec![words.to_vec()]),
    }
}

/// A command line's program with its arguments, which may be a shell. An open quote needs one.
fn words_of(line: &str) -> Result<Vec<OsString>, Failure> {
    if needs_shell(line) {
        return Ok(["sh", "-c", line].map(OsString::from).to_vec());
    }
    words::of_command(line).ok_or_else(|| Failure::new(format!("'{line}' is no command line.")))
}

/// Makes Ctrl-C, and whoever asks mallow to end, end the program and not mallow, which has a result to show; a second one ends mallow.
fn watch_interrupts() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // Signals that this process ignores are ignored by the program as well.
    let ignored = mallow_launch::IgnoredSignals::read();
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.has(*signal)) {
        // In this order: the second signal must see what the first one has set.
        flag::register_conditional_shutdown(
            signal,
            i32::from(exit_code::INTERRUPTED),
            Arc::clone(&interrupted),
        )?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// Runs each command repeatedly; stops after a run that a signal ended.
fn measure_all(stat: &Stat, interrupted: &AtomicBool) -> Result<Vec<Counted>, Refusal> {
    let mut all = Vec::new();
    for command in commands(stat)? {
        let outcomes = measure(stat, &command, interrupted)?;
        all.push(Counted { command, outcomes });
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all)
}

fn measure(
    stat: &Stat,
    command: &[OsString],
    interrupted: &AtomicBool,
) -> Result<Vec<StatOutcome>, CollectError> {
    let spawn = mallow_launch::SpawnOptions::default();
    let options = StatOptions {
        command: command.to_vec(),
        command_lines: stat.command_lines,
        spawn,
        preload: preload::LIBRARY,
    };
    let mut outcomes = Vec::new();
    for _ in 0..stat.runs {
        outcomes.push(mallow_collect::stat(&options)?);
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(outcomes)
}

/// Returns warnings, followed by notes.
fn all_sentences(outcome: &StatOutcome) -> Vec<String> {
    outcome.warnings.iter().chain(&outcome.notes).cloned().collect()
}

fn are_counted(outcomes: &[StatOutcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.is_counted)
}

fn totals(outcome: &StatOutcome) -> Totals {
    let mut totals = Totals::default();
    for process in &outcome.processes {
        totals.add(&process.totals);
    }
    totals
}

fn metrics(outcome: &StatOutcome) -> Run {
    Run { totals: totals(outcome), wall_us: outcome.wall_us, peak_error_bytes: outcome.peak_error_bytes }
}

/// The table of one command, or of several side by side.
fn text(stat: &Stat, all: &[Counted], is_file: bool) -> String {
    let runs: Vec<Vec<Run>> = all.iter().map(|one| one.outcomes.iter().map(metrics).collect()).collect();
    let measured: Vec<Measured<'_>> =
        all.iter().zip(&runs).map(|(one, runs)| measured(stat, one, runs)).collect();
    let style = if is_file { Style::PLAIN } else { crate::terminal::style(&std::io::stderr()) };
    match measured.as_slice() {
        [one] => mallow_text::stat::table(one, style),
        several => mallow_text::stat::side_by_side(several, style),
    }
}

fn measured<'a>(stat: &Stat, Counted { command, outcomes }: &Counted, runs: &'a [Run]) -> Measured<'a> {
    let ended =
        |outcome: &StatOutcome| outcome.processes.iter().filter(|p| p.exit != Some(Exit::Exec)).count();
    Measured {
        command: stat.command_lines.words(command).join(" "),
        runs,
        planned: stat.runs as usize,
        exit: outcomes.last().and_then(|outcome| outcome.exit),
        processes: outcomes.iter().map(ended).max().unwrap_or_default(),
        blind: outcomes.iter().map(|outcome| outcome.blind.len()).max().unwrap_or_default(),
        is_counted: are_counted(outcomes),
    }
}

/// A document for each command, each on a line of its own.
fn json(stat: &Stat, all: Vec<Counted>) -> Result<String, Failure> {
    all.into_iter().map(|one| document(stat, one)).collect()
}

fn document(stat: &Stat, Counted { command, outcomes }: Counted) -> Result<String, Failure> {
    let equal_counts = are_counted(&outcomes)
        && mallow_text::stat::are_equal(&mallow_view::metric_rows(&Vec::from_iter(
            outcomes.iter().map(metrics),
        )));
    let warnings: Vec<String> = outcomes.iter().flat_map(all_sentences).collect();
    let complete = outcomes.iter().all(|outcome| outcome.warnings.is_empty());
    let run = |outcome: StatOutcome| RunJson {
        exit: outcome.exit.map(Into::into),
        wall_us: outcome.wall_us,
        totals: outcome.is_counted.then(|| (&totals(&outcome)).into()),
        peak_error_bytes: outcome.peak_error_bytes,
        processes: outcome
            .processes
            .into_iter()
            .filter(|_| outcome.is_counted)
            .map(OwnedProcessJson::from)
            .collect(),
    };
    let runs = outcomes.into_iter().map(run).collect();
    let command = stat.command_lines.words(&command);
    let schema = "mallow.stat/1";
    let document = StatJson { schema, command, runs, equal_counts, complete, warnings };
    Ok(serde_json::to_string(&document)? + "\n")
}

//! `mallow stat`: runs a command once or several times, counts, and stores nothing.

use crate::refusal::Refusal;
use crate::request::Stat;
use crate::{exit_code, output, preload};
use mallow_collect::{CollectError, StatOptions, StatOutcome};
use mallow_json::stat::{OwnedProcessJson, RunJson, StatJson};
use mallow_profile::{Exit, Totals};
use mallow_query::Failure;
use mallow_text::stat::Measured;
use mallow_text::{self, Style};
use mallow_view::Run;
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counts a command's allocations.
pub(crate) fn run(stat: Stat) -> Result<u8, Refusal> {
    let interrupted = watch_interrupts()?;
    // Before the first run, so that a result that cannot be written is refused at once.
    let place = stat.output.as_ref().filter(|file| !file.is_stdout());
    let mut file = place.map(|file| output::create(&file.path, file.force)).transpose()?;
    let outcomes =
        measure(&stat, &interrupted).map_err(|error| pointed(error.into(), &stat)).inspect_err(|_| {
            // Leave no incomplete file: this one was created above and is empty. An existing file must not be removed.
            if let Some(made) = place.filter(|made| !made.force) {
                let _ = std::fs::remove_file(&made.path);
            }
        })?;
    for outcome in &outcomes {
        output::warn(&outcome.warnings);
        output::note(&outcome.notes);
    }
    let code = outcomes.iter().map(|outcome| exit_code::of_program(outcome.exit)).find(|code| *code != 0);
    let result =
        if stat.json { json(&stat, outcomes)? } else { table(&stat, &outcomes, stat.output.is_some()) };
    match (place, &mut file) {
        (Some(place), Some(file)) => output::to_file(&place.path, file, &result)?,
        _ if stat.json || stat.output.is_some() => output::to_stdout(|out| out.write_all(result.as_bytes()))?,
        _ => output::tell(&result),
    }
    Ok(code.unwrap_or(exit_code::FINE))
}

/// A program name of several words is probably one of several commands that the user wants to compare.
fn pointed(refusal: Refusal, stat: &Stat) -> Refusal {
    let words: Vec<_> = stat.command.iter().map(|word| word.to_string_lossy()).collect();
    let are_lines = words.len() > 1 && words.iter().all(|word| word.contains(' '));
    if !are_lines || refusal.code != exit_code::NOT_FOUND {
        return refusal;
    }
    let words: Vec<String> = words.iter().map(|word| mallow_text::shell_word(word)).collect();
    let sentence = format!(
        "{} To compare commands: mallow bench {}",
        refusal.failure.sentence(),
        mallow_text::printable(&words.join(" "))
    );
    Refusal { failure: Failure::new(sentence), ..refusal }
}

/// Makes Ctrl-C end the program and not mallow, which has a result to show; a second one ends mallow.
fn watch_interrupts() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // Signals that this process ignores are ignored by the program as well.
    for signal in [SIGINT, SIGQUIT].into_iter().filter(|signal| !mallow_launch::is_ignored(*signal)) {
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

/// Runs the command repeatedly; stops after a run that Ctrl-C ended.
fn measure(stat: &Stat, interrupted: &AtomicBool) -> Result<Vec<StatOutcome>, CollectError> {
    let spawn = mallow_launch::SpawnOptions::default();
    let options = StatOptions {
        command: stat.command.clone(),
        command_lines: stat.command_lines,
        spawn,
        preload: preload::library(),
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

fn command(stat: &Stat) -> Vec<String> {
    stat.command_lines.words(&stat.command)
}

fn table(stat: &Stat, outcomes: &[StatOutcome], is_file: bool) -> String {
    let runs: Vec<Run> = outcomes.iter().map(metrics).collect();
    let ended =
        |outcome: &StatOutcome| outcome.processes.iter().filter(|p| p.exit != Some(Exit::Exec)).count();
    let measured = Measured {
        command: command(stat).join(" "),
        runs: &runs,
        planned: stat.runs as usize,
        exit: outcomes.last().map(|outcome| outcome.exit),
        processes: outcomes.iter().map(ended).max().unwrap_or_default(),
        blind: outcomes.iter().map(|outcome| outcome.blind.len()).max().unwrap_or_default(),
    };
    let style = if is_file { Style::PLAIN } else { crate::terminal::style(&std::io::stderr()) };
    mallow_text::stat::table(&measured, style)
}

fn json(stat: &Stat, outcomes: Vec<StatOutcome>) -> Result<String, Failure> {
    let equal_counts = mallow_text::stat::are_equal(&mallow_view::metric_rows(&Vec::from_iter(
        outcomes.iter().map(metrics),
    )));
    let warnings: Vec<String> = outcomes.iter().flat_map(all_sentences).collect();
    let complete = outcomes.iter().all(|outcome| outcome.warnings.is_empty());
    let run = |outcome: StatOutcome| RunJson {
        exit: Some(outcome.exit.into()),
        wall_us: outcome.wall_us,
        totals: (&totals(&outcome)).into(),
        peak_error_bytes: outcome.peak_error_bytes,
        processes: outcome.processes.into_iter().map(OwnedProcessJson::from).collect(),
    };
    let runs = outcomes.into_iter().map(run).collect();
    let schema = "mallow.stat/1";
    let document = StatJson { schema, command: command(stat), runs, equal_counts, complete, warnings };
    Ok(serde_json::to_string(&document)? + "\n")
}

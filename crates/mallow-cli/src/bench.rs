//! `mallow bench`: times commands in turns, and reports which is faster, with which confidence, and why.

mod baseline;
mod explain;
mod outputs;
mod parameters;
mod plan;
mod progress;

use crate::args::LowBench;
use crate::{exit_code, output, preload};
use explain::Explained;
use mallow_bench::{Session, Stop};
use mallow_query::Failure;
use mallow_runner::{Bench, Observer, RunnerError};
use mallow_text::bench::{LimitRow, Page};
use outputs::Outputs;
use progress::{Quiet, Terminal};
use std::io::IsTerminal;

/// Runs a benchmark.
pub(crate) fn run(low: &LowBench) -> Result<u8, Failure> {
    let plan = plan::plan(low)?;
    let baseline = low.baseline.as_deref().map(baseline::read).transpose()?;
    baseline::check_limits(low, plan.commands.len(), baseline.is_some())?;
    let mut outputs = Outputs::prepare(low)?;
    // Set up before anything runs, so that an unknown program is one error message and nothing else.
    let spawner = mallow_launch::unpack("mallow-spawner", "", preload::SPAWNER)?;
    let mut bench = Bench::new(&plan, spawner)?;
    let (mut session, mut failure) = bench.timed(observer(low).as_mut());
    if failure.is_none() && !bench.is_interrupted() {
        failure = bench.recorded(&mut session, preload::LIBRARY).err();
    }
    let (mut explained, mut reason) = (None, None);
    if failure.is_none() && !bench.is_interrupted() && (low.explain || low.flamegraph.is_some()) {
        match explain::explain(&bench, &plan, &session) {
            Ok(profiles) => explained = Some(profiles),
            // The measurements so far are shown anyway.
            Err(error) => reason = Some(error),
        }
    }
    if bench.is_interrupted() {
        session.stop = Stop::Interrupted;
    }
    let cleanup = bench.finish().err();
    let runs: usize = session.commands.iter().map(|command| command.runs.len()).sum();
    if runs == 0 {
        return nothing(failure.or(cleanup));
    }
    let rows = baseline::limits(low, &session, baseline.as_ref());
    let is_explained = explained.is_some();
    let page = Page { session: &session, unit: low.time_unit, limits: &rows, is_explained };
    show(low, &page, baseline.as_ref(), explained.as_ref())?;
    outputs.write(low, &page, explained.as_ref())?;
    let failures = failure.into_iter().chain(cleanup).map(Failure::from).chain(reason);
    let sentences: Vec<String> = failures.map(|failure| failure.sentence().to_owned()).collect();
    sentences.iter().for_each(|sentence| output::tell(&format!("mallow: {sentence}\n")));
    Ok(code(&session, &rows, !sentences.is_empty()))
}

/// Nothing was measured, so there is no result to show.
fn nothing(failure: Option<RunnerError>) -> Result<u8, Failure> {
    match failure {
        Some(error) => Err(error.into()),
        None => {
            output::tell("mallow: interrupted before the first run ended; there is no result.\n");
            Ok(exit_code::INTERRUPTED)
        }
    }
}

fn observer(low: &LowBench) -> Box<dyn Observer> {
    let is_terminal = std::io::stderr().is_terminal();
    let is_shown = match low.style.as_str() {
        "auto" | "nocolor" => is_terminal && !low.show_output,
        "full" => true,
        _ => false,
    };
    if is_shown { Box::new(Terminal::default()) } else { Box::new(Quiet) }
}

fn show(
    low: &LowBench,
    page: &Page<'_>,
    baseline: Option<&Session>,
    explained: Option<&Explained>,
) -> Result<(), Failure> {
    if low.json {
        let text = mallow_json::bench::BenchJson::of(page.session, page.limits).text()?;
        return output::to_stdout(|out| out.write_all(text.as_bytes()));
    }
    if low.style == "none" {
        return Ok(());
    }
    let mut style = crate::terminal::style(&std::io::stdout());
    style.whole_names = false;
    match low.style.as_str() {
        "basic" | "nocolor" => style.colour = false,
        "full" | "color" => style.colour = true,
        _ => {}
    }
    let mut text = if low.markdown {
        mallow_text::bench::markdown(page)
    } else if low.counters {
        let commands = page.session.commands.iter();
        commands.map(|command| mallow_text::bench::counters::page(page.session, command, style)).collect()
    } else {
        page.text(style)
    };
    if let Some(before) = baseline {
        text += &baseline::text(page.session, before, style);
    }
    text += &explained.map_or(String::new(), |explained| explained.text(low.markdown, style));
    output::to_stdout(|out| out.write_all(text.as_bytes()))
}

/// Returns the exit code. An interrupted or failed benchmark has no verdict; an exceeded limit takes precedence over one that cannot be judged.
fn code(session: &Session, rows: &[LimitRow], has_failed: bool) -> u8 {
    match session.stop {
        Stop::Interrupted => exit_code::INTERRUPTED,
        _ if has_failed => exit_code::BAD_INPUT,
        _ if rows.iter().any(|row| row.is_broken == Some(true)) => exit_code::FAILED,
        _ if rows.iter().any(|row| row.is_broken.is_none()) => exit_code::INCONCLUSIVE,
        _ => exit_code::FINE,
    }
}

//! Converts the command line of `mallow bench` into a plan.

use super::parameters::{combinations, filled, parameters};
use crate::args::LowBench;
use mallow_bench::Order;
use mallow_counters::{DEFAULT_EVENTS, Event};
use mallow_query::Failure;
use mallow_runner::{Failures, Input, Output, Plan, PlannedCommand, Runs, Shell};
use regex::Regex;

/// The events of `--counters` without `-e`: `perf stat`'s own list, and the caches.
const COUNTERS: [&str; 4] = ["task-clock", "context-switches", "cpu-migrations", "page-faults"];

/// The plan.
pub(super) fn plan(low: &LowBench) -> Result<Plan, Failure> {
    let commands = commands(low)?;
    if commands.len() < 2 && (low.explain || low.flamegraph.is_some()) {
        return Err(Failure::new(
            "--explain and --flamegraph show what differs between two commands, and there is one; `mallow record` shows what one does.",
        ));
    }
    let order = low.order.unwrap_or_else(|| order(&commands));
    Ok(Plan {
        runs: runs(low)?,
        warmup: low.warmup,
        shell: shell(low)?,
        failures: failures(low.ignore_failure.as_deref())?,
        input: if low.input == "null" { Input::Null } else { Input::File((&low.input).into()) },
        events: events(low)?,
        printed: low.metric.as_deref().map(pattern).transpose()?,
        recorded_runs: if low.counters { 0 } else { low.recorder_runs },
        order,
        threshold: low.threshold,
        commands,
    })
}

/// Returns the order of the runs. If the setup differs between commands, such as a build with a parameter, it may
/// undo that of another command: then all runs of a command follow its own setup.
/// follow its own setup.
fn order(commands: &[PlannedCommand]) -> Order {
    let differs = |of: fn(&PlannedCommand) -> &Option<String>| {
        commands.windows(2).any(|two| of(&two[0]) != of(&two[1]))
    };
    if differs(|it| &it.setup) || differs(|it| &it.cleanup) { Order::Sequential } else { Order::Interleaved }
}

fn runs(low: &LowBench) -> Result<Runs, Failure> {
    let number = |value: Option<u32>| value.map(|value| value as usize);
    if let Some(runs) = low.runs {
        return Ok(Runs::Fixed(runs as usize));
    }
    if low.min_runs.zip(low.max_runs).is_some_and(|(min, max)| min > max) {
        return Err(Failure::new("--min-runs is above --max-runs."));
    }
    if low.counters && low.min_runs.is_none() && low.max_runs.is_none() {
        return Ok(Runs::Fixed(10));
    }
    Ok(Runs::Adaptive { min: number(low.min_runs), max: number(low.max_runs), time_max: low.max_time })
}

fn shell(low: &LowBench) -> Result<Shell, Failure> {
    match low.shell.as_deref() {
        _ if low.no_shell => Ok(Shell::Never),
        None => Ok(Shell::WhereNeeded),
        Some("none") => Ok(Shell::Never),
        Some("default") => Ok(Shell::Always(vec!["sh".to_owned()])),
        Some(text) => {
            let words = shlex::split(text).filter(|words| !words.is_empty());
            words
                .map(Shell::Always)
                .ok_or_else(|| Failure::new(format!("'{text}' is no command for --shell.")))
        }
    }
}

fn failures(mode: Option<&str>) -> Result<Failures, Failure> {
    match mode {
        None => Ok(Failures::End),
        Some("all-non-zero") => Ok(Failures::Ignored),
        Some(codes) => {
            let codes: Result<Vec<i32>, _> = codes.split(',').map(|code| code.trim().parse()).collect();
            codes.map(Failures::IgnoredCodes).map_err(|_| {
                Failure::new(format!(
                    "'{codes:?}' are no exit codes; write --ignore-failure=1,2.",
                    codes = mode
                ))
            })
        }
    }
}

fn events(low: &LowBench) -> Result<Vec<Event>, Failure> {
    let names: Vec<&str> = match (low.event.is_empty(), low.counters) {
        (false, _) => low.event.iter().map(String::as_str).collect(),
        (true, true) => COUNTERS.into_iter().chain(DEFAULT_EVENTS).collect(),
        (true, false) => DEFAULT_EVENTS.to_vec(),
    };
    names
        .into_iter()
        .map(|name| Event::named(name).map_err(|sentence| Failure::new(sentence + ".")))
        .collect()
}

fn pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| Failure::new(format!("--metric '{text}' is no pattern: {error}")))
}

fn commands(low: &LowBench) -> Result<Vec<PlannedCommand>, Failure> {
    let parameters =
        parameters(&low.parameter_scan, low.parameter_step_size.as_deref(), &low.parameter_list)?;
    let typed = low.commands.len();
    for (what, count) in
        [("--prepare", low.prepare.len()), ("--conclude", low.conclude.len()), ("--output", low.output.len())]
    {
        if count > 1 && count != typed + usize::from(low.reference.is_some()) && count != typed {
            return Err(Failure::new(format!(
                "{what} is given {count} times for {typed} commands; give it once, or once for each."
            )));
        }
    }
    let combinations = combinations(&parameters);
    if low.command_name.len() > typed * combinations.len() {
        return Err(Failure::new("there are more --command-name than commands."));
    }
    let mut commands = Vec::new();
    if let Some(line) = &low.reference {
        let name = low.reference_name.as_ref().unwrap_or(line);
        commands.push(command(low, name, line, &[], 0)?);
    }
    for values in &combinations {
        for (index, line) in low.commands.iter().enumerate() {
            let place = commands.len() - usize::from(low.reference.is_some());
            let name = match low.command_name.len() {
                0 => None,
                // One name for each template, or one for each command.
                count if count > typed => low.command_name.get(place),
                _ => low.command_name.get(index),
            };
            commands.push(command(low, name.unwrap_or(line), line, values, index)?);
        }
    }
    Ok(commands)
}

fn command(
    low: &LowBench,
    name: &str,
    line: &str,
    values: &[(String, String)],
    index: usize,
) -> Result<PlannedCommand, Failure> {
    let of = |lines: &[String]| match lines {
        [] => None,
        [one] => Some(filled(one, values)),
        several => several.get(index).map(|line| filled(line, values)),
    };
    let output = match of(&low.output).as_deref() {
        _ if low.show_output => Output::Inherit,
        None | Some("null") => Output::Null,
        Some("pipe") => Output::Pipe,
        Some("inherit") => Output::Inherit,
        Some(path) => Output::File(path.into()),
    };
    if low.metric.is_some() && output != Output::Null {
        return Err(Failure::new("--metric reads what the commands print, so --output must be null."));
    }
    Ok(PlannedCommand {
        name: filled(name, values),
        line: filled(line, values),
        parameters: values.to_vec(),
        setup: low.setup.as_deref().map(|line| filled(line, values)),
        prepare: of(&low.prepare),
        conclude: of(&low.conclude),
        cleanup: low.cleanup.as_deref().map(|line| filled(line, values)),
        output,
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! The results of a benchmark, and reasons to doubt them, in sentences.

use super::parts::{of_times, percent, shown_name, verdict_word};
use super::units::{self, TimeUnit};
use crate::{plural, printable};
use mallow_bench::{Finding, Order, Session, Stop, Subject, findings as found};
use mallow_stacks::Unit;
use mallow_stats::{Disturbance, Ratio, Verdict};

/// Returns the verdict of each compared command, and what belongs to it.
pub fn verdicts(session: &Session, is_explained: bool) -> Vec<Vec<String>> {
    let reference = session.reference;
    let others = (0..session.commands.len()).filter(|index| *index != reference);
    let mut verdicts: Vec<Vec<String>> = others.map(|index| verdict(session, index, reference)).collect();
    let is_clear = |index| matches!(of_times(session, index).verdict, Verdict::Faster | Verdict::Slower);
    if !is_explained
        && (0..session.commands.len()).any(is_clear)
        && let Some(last) = verdicts.last_mut()
    {
        last.push("To see which lines make the difference, add --explain.".to_owned());
    }
    verdicts
}

fn verdict(session: &Session, index: usize, reference: usize) -> Vec<String> {
    let comparison = of_times(session, index);
    let (word, level) = (verdict_word(comparison.verdict), (1.0 - session.error) * 100.0);
    let Some(ratio) = comparison.ratio else {
        return vec![format!("{} against {}: unclear, there is no pair of runs.", index + 1, reference + 1)];
    };
    let first = match comparison.verdict {
        Verdict::Faster => {
            format!("{} is faster than {}: {:.2} times as fast", index + 1, reference + 1, 1.0 / ratio.ratio)
        }
        Verdict::Slower => {
            format!(
                "{} is slower than {}: it takes {:.2} times as long",
                index + 1,
                reference + 1,
                ratio.ratio
            )
        }
        Verdict::Same => {
            format!("{} is {word} as {} within {}", index + 1, reference + 1, unsigned(session.threshold))
        }
        Verdict::Unclear => {
            format!("It is unclear whether {} is faster or slower than {}", index + 1, reference + 1)
        }
    };
    let mut lines = vec![format!("{first}.")];
    lines.push(match ratio.has_interval() {
        true => format!(
            "Its time differs by {} ({} … {}, sure to {} %, {}).",
            percent(ratio.ratio - 1.0),
            percent(ratio.low - 1.0),
            percent(ratio.high - 1.0),
            level_text(level),
            plural(ratio.pairs as u64, "pair")
        ),
        false => format!(
            "Its time differs by {} in {}, too few for an interval.",
            percent(ratio.ratio - 1.0),
            plural(ratio.pairs as u64, "pair")
        ),
    });
    if comparison.verdict == Verdict::Unclear {
        lines.push(remedy(session, &ratio));
    }
    lines
}

fn remedy(session: &Session, ratio: &Ratio) -> String {
    match session.order {
        Order::Sequential => "They were not run in turns, so a drift of the machine looks like a difference; leave --order sequential \
                              out, or give all commands the same --setup and --cleanup."
            .to_owned(),
        Order::Interleaved if !ratio.has_interval() => {
            "A verdict needs 8 pairs or more, with several commands some more: --runs 12, or a longer --max-time.".to_owned()
        }
        Order::Interleaved => {
            "More runs narrow the interval (--max-time, --runs); so does a quiet machine.".to_owned()
        }
    }
}

/// Formats a confidence level: 99 or 99.91.
fn level_text(level: f64) -> String {
    let text = format!("{level:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn unsigned(share: f64) -> String {
    percent(share).trim_start_matches('+').to_owned()
}

/// Returns reasons to doubt the measurements, each with a cure.
pub fn findings(session: &Session, unit: Option<TimeUnit>) -> Vec<String> {
    found(session).iter().map(|finding| sentence(session, finding, unit)).collect()
}

fn sentence(session: &Session, finding: &Finding, unit: Option<TimeUnit>) -> String {
    let who = match finding.command {
        Some(index) if session.commands.len() > 1 => format!("{}: ", index + 1),
        _ => String::new(),
    };
    who + &match &finding.subject {
        Subject::Disturbed(disturbance) => disturbed(disturbance),
        Subject::Busy(switches) => format!(
            "The machine was busy: other processes took the processor {switches:.0} times in a run. Stop them, or take the differences for \
             less sure than they look."
        ),
        Subject::Short(ns) => format!(
            "A run takes {}, about as long as it takes to start a process. Give it more to do, or measure something larger.",
            units::with_unit(Unit::Nanoseconds, *ns, unit)
        ),
        Subject::Failed(count, code) => {
            format!("{} ended with a status that is not 0, the first with {code}; they were ignored as requested.", plural(*count as u64, "run"))
        }
        Subject::Left(count, name) => format!(
            "After {} processes were still running, such as {}. Their time is not counted, and they take the processor from later runs. Have the \
             command wait for them, or end them with --conclude.",
            plural(*count as u64, "run"),
            printable(name)
        ),
        Subject::NothingPrinted(count) => format!("In {} the pattern of --metric found no number.", plural(*count as u64, "run")),
        Subject::TookTurns(name, share) => format!(
            "{name} was counted for {} of the time, because the processor has too few counters, and scaled. Ask for fewer events with -e.",
            unsigned(*share)
        ),
        Subject::NotInTurns => "The commands were run one after the other, so a drift of the machine looks like a difference between them; \
                                no verdict is given."
            .to_owned(),
        Subject::Ticks => "The kernel divides such short times between user and system by its clock's ticks; their sum, cpu, is exact."
            .to_owned(),
    }
}

fn disturbed(disturbance: &Disturbance) -> String {
    match disturbance {
        Disturbance::Outliers(count) => format!(
            "{} took much longer or shorter than the others. Something else ran then; the median and the interval bear it, the mean does not.",
            plural(*count as u64, "run")
        ),
        Disturbance::SlowFirst(times) => format!(
            "The first run took {times:.1} times as long as the others. Caches may have been cold: --warmup 3 fills them, --prepare empties them \
             before each run."
        ),
        Disturbance::Drift(times) => format!(
            "The times moved by {} from the first third of the runs to the last. Runs in turns bear that; the mean and the median are those of \
             no moment. Wait until the machine is at rest.",
            percent(times - 1.0)
        ),
        Disturbance::Moods(likeness) => format!(
            "Runs are like their neighbours (correlation {likeness:.2}): the machine was slow for a while, and fast for a while. Something else \
             is running; wait until it has ended."
        ),
    }
}

/// Returns other notes for the reader: how it was measured, and how it ended.
pub fn notes(session: &Session) -> Vec<String> {
    let mut notes = Vec::new();
    match session.stop {
        Stop::Interrupted => {
            notes.push("Interrupted: these are the runs that were made until then.".to_owned())
        }
        Stop::Failed => {
            notes.push("A command failed: these are the runs that were made until then.".to_owned())
        }
        Stop::Time if session.commands.len() > 1 => {
            notes.push("The time was over (--max-time) before the intervals were ±1 %.".to_owned());
        }
        _ => {}
    }
    if let Some(shell) = &session.shell {
        let names: Vec<String> = session
            .commands
            .iter()
            .enumerate()
            .filter(|(_, command)| command.in_shell)
            .map(|(index, _)| (index + 1).to_string())
            .collect();
        notes.push(format!(
            "`{} -c` ran {}; the {} that it takes to start a program were taken off each run.",
            printable(&shell.shell),
            names.join(", "),
            units::with_unit(Unit::Nanoseconds, shell.wall_ns as f64, None)
        ));
    }
    notes.extend(session.notes.iter().cloned());
    notes
}

/// Returns the progress line of a running session: which run, how long it has taken, the result so far.
pub fn progress(
    session: &Session,
    command: usize,
    runs: usize,
    wanted: usize,
    seconds: f64,
    is_warmup: bool,
) -> String {
    let name = session.commands.get(command).map(shown_name).unwrap_or_default();
    let what = if is_warmup { "warming up" } else { "run" };
    let mut line = format!("{}: {what} {} of {wanted}, {seconds:.0} s", command + 1, runs + 1);
    let others = (0..session.commands.len()).filter(|index| *index != session.reference);
    for index in others.take(3) {
        if let Some(ratio) = of_times(session, index).ratio {
            line += &format!(", {} is {}", index + 1, percent(ratio.ratio - 1.0));
            if ratio.has_interval() {
                line += &format!(" ({} … {})", percent(ratio.low - 1.0), percent(ratio.high - 1.0));
            }
        }
    }
    if session.commands.len() == 1 {
        let walls: Vec<f64> = session.commands[0].runs.iter().map(|run| run.wall_ns as f64).collect();
        if let Some(summary) = mallow_stats::Summary::of(&walls) {
            line += &format!(", median {}", units::with_unit(Unit::Nanoseconds, summary.median, None));
        }
        line += &format!(": {}", printable(&name));
    }
    line
}

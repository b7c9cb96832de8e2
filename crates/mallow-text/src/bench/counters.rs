//! Counters as `perf stat -r` shows them: a mean with its relative error, and ratios of two counters.

use crate::{Style, plural, printable};
use mallow_base::grouped;
use mallow_bench::{BenchCommand, Session};
use mallow_stats::Summary;

/// Returns the mean of an event; `None` if it was not counted.
fn mean(session: &Session, command: &BenchCommand, name: &str) -> Option<f64> {
    summary(session, command, name).map(|summary| summary.mean)
}

fn summary(session: &Session, command: &BenchCommand, name: &str) -> Option<Summary> {
    let is_it = |event: &String| event.split(':').next() == Some(name);
    let at = session.events.iter().position(is_it)?;
    let counts = command.runs.iter().filter_map(|run| run.events.get(at).copied().flatten());
    Summary::of(&Vec::from_iter(counts.map(|count| count.value)))
}

fn wall_ns(command: &BenchCommand) -> Option<Summary> {
    Summary::of(&Vec::from_iter(command.runs.iter().map(|run| run.wall_ns as f64)))
}

/// Returns CPU time: as an event counted it, or as the kernel reported it at exit.
fn cpu_ns(session: &Session, command: &BenchCommand) -> Option<f64> {
    let told = || {
        let times = command.runs.iter().map(|run| run.user_ns.saturating_add(run.system_ns) as f64);
        Summary::of(&Vec::from_iter(times)).map(|summary| summary.mean)
    };
    mean(session, command, "task-clock").or_else(told)
}

/// Returns ratios of two metrics: instructions per cycle, clock rate, processors in use, shares of misses.
pub(super) fn derived(session: &Session, command: &BenchCommand) -> Vec<(&'static str, String)> {
    let of = |name| mean(session, command, name);
    let mut rows = Vec::new();
    let mut add = |name, value: Option<f64>, digits: usize, unit: &str| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            rows.push((name, format!("{value:.digits$}{unit}")));
        }
    };
    let share = |part: Option<f64>, whole: Option<f64>| part.zip(whole).map(|(part, whole)| part / whole);
    let cpu = cpu_ns(session, command);
    add("CPUs utilised", share(cpu, wall_ns(command).map(|wall| wall.mean)), 2, "");
    add("insn per cycle", share(of("instructions"), of("cycles")), 2, "");
    add("GHz", share(of("cycles"), cpu), 2, "");
    add("branch misses", share(of("branch-misses"), of("branches")).map(|it| it * 100.0), 2, " %");
    add("cache misses", share(of("cache-misses"), of("cache-references")).map(|it| it * 100.0), 2, " %");
    rows
}

/// Returns the table of one command.
pub fn page(session: &Session, command: &BenchCommand, style: Style) -> String {
    let runs = plural(command.runs.len() as u64, "run");
    let title = format!(" Performance counter stats for '{}' ({runs}):", printable(&command.name));
    let mut lines = vec![String::new(), style.bold(&title), String::new()];
    for name in &session.events {
        let base = name.split(':').next().unwrap_or(name);
        let Some(counts) = summary(session, command, base) else {
            lines.push(format!("{:>18}      {name}", "<not counted>"));
            continue;
        };
        let value = match base {
            "task-clock" | "cpu-clock" => format!("{:>18.2} msec {name}", counts.mean / 1e6),
            _ => format!("{:>18}      {name}", grouped(counts.mean.round() as u64)),
        };
        lines.push(with_error(format!("{value:<46}{}", remark(session, command, base)), &counts));
    }
    lines.push(String::new());
    if let Some(wall) = wall_ns(command) {
        let error = wall.deviation.map_or(0.0, |it| it / (wall.count as f64).sqrt());
        let line = format!("{:>18.6} +- {:.6} seconds time elapsed", wall.mean / 1e9, error / 1e9);
        lines.push(with_error(line, &wall));
    }
    for (what, of) in [
        ("user", (|run: &mallow_bench::Run| run.user_ns) as fn(&mallow_bench::Run) -> u64),
        ("sys", |run: &mallow_bench::Run| run.system_ns),
    ] {
        if let Some(times) = Summary::of(&Vec::from_iter(command.runs.iter().map(|run| of(run) as f64))) {
            lines.push(with_error(format!("{:>18.6} seconds {what}", times.mean / 1e9), &times));
        }
    }
    lines.push(String::new());
    let notes = super::sentences::notes(session);
    lines.extend(super::parts::paragraphs(&notes, style).into_iter().skip(1));
    lines.join("\n").trim_end().to_owned() + "\n"
}

fn with_error(line: String, summary: &Summary) -> String {
    match summary.relative_error() {
        Some(error) => format!("{line:<68} ( +-{:>6.2}% )", error * 100.0),
        None => line,
    }
}

/// Returns the text after the number sign.
fn remark(session: &Session, command: &BenchCommand, name: &str) -> String {
    let of = |name| mean(session, command, name);
    let share = |part: Option<f64>, whole: Option<f64>| {
        part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| part / whole)
    };
    let cpu = cpu_ns(session, command);
    let text = match name {
        "task-clock" => {
            share(cpu, wall_ns(command).map(|wall| wall.mean)).map(|it| format!("{it:.3} CPUs utilized"))
        }
        "cycles" => share(of("cycles"), cpu).map(|it| format!("{it:.3} GHz")),
        "instructions" => share(of("instructions"), of("cycles")).map(|it| format!("{it:.2} insn per cycle")),
        "branch-misses" => {
            share(of(name), of("branches")).map(|it| format!("{:.2}% of all branches", it * 100.0))
        }
        "cache-misses" => {
            share(of(name), of("cache-references")).map(|it| format!("{:.2}% of all cache refs", it * 100.0))
        }
        _ => share(of(name), cpu).map(|per_ns| match per_ns * 1e9 {
            rate if rate >= 1e9 => format!("{:.3} G/sec", rate / 1e9),
            rate if rate >= 1e6 => format!("{:.3} M/sec", rate / 1e6),
            rate if rate >= 1e3 => format!("{:.3} K/sec", rate / 1e3),
            rate => format!("{rate:.3} /sec"),
        }),
    };
    text.map(|text| format!(" # {text}")).unwrap_or_default()
}

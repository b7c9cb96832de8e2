//! Where the commands take different time, by line.

use crate::flamegraph::counted;
use mallow_bench::{BenchCommand, Session};
use mallow_cpu::{CpuMetric, CpuProfile, together};
use mallow_flame::FlameGraph;
use mallow_perf::{Rate, SamplingOptions, Target, sample};
use mallow_query::{Failure, Names};
use mallow_runner::Bench;
use mallow_stacks::Metric;
use mallow_text::Style;
use mallow_view::diff::{Comparison, DiffInput, DiffOptions, DiffReport};
use mallow_view::{Filter, FlameOptions, FrameVisibility, compared_flames};
use std::num::NonZeroU64;
use std::path::Path;

/// The number of samples of a command in which a difference is visible.
const SAMPLES: f64 = 2000.0;
/// Samples per second: the default, and the highest rate that does not slow a command down much.
const FREQUENCIES_HZ: [f64; 2] = [997.0, 4999.0];
/// The time limit of sampling, and the maximum number of runs of each command.
const SECONDS_MAX: f64 = 10.0;
const RUNS_MAX: f64 = 50.0;
/// KiB of a stack, as in `mallow cpu`.
const STACK_KIB: u32 = 32;

/// CPU profiles, each of the same number of runs.
pub(super) struct Sampled {
    pub(super) profiles: Vec<CpuProfile>,
    runs: NonZeroU64,
}

/// Samples each command, short ones in several runs.
///
/// # Errors
/// Failures other than those of the commands. If the kernel refuses to sample, the inner error is a sentence.
pub(super) fn sampled(bench: &Bench<'_>, session: &Session) -> Result<Result<Sampled, String>, Failure> {
    let seconds = |command: &BenchCommand| {
        let wall_ns = command.runs.iter().map(|run| run.wall_ns).min().unwrap_or(0);
        (wall_ns as f64 / 1e9).max(1e-4)
    };
    let shortest = session.commands.iter().map(seconds).fold(f64::INFINITY, f64::min);
    let all: f64 = session.commands.iter().map(seconds).sum();
    let frequency_hz = (SAMPLES / shortest).clamp(FREQUENCIES_HZ[0], FREQUENCIES_HZ[1]);
    // The same number for each, so that their sums can be compared.
    let runs =
        (SAMPLES / (frequency_hz * shortest)).ceil().min(RUNS_MAX).min(SECONDS_MAX / all).max(1.0) as u64;
    let options = SamplingOptions {
        event: None,
        rate: Rate::Hz(frequency_hz as u64),
        off_cpu: false,
        stack_bytes: STACK_KIB << 10,
        summary_only: true,
        duration: None,
        timers_only: false,
        inside: crate::preload::TIMERS,
        leaves_alone: false,
    };
    let mut profiles = Vec::new();
    for index in 0..session.commands.len() {
        let mut of_runs = Vec::new();
        for _ in 0..runs {
            let outcome = bench.beside(index, || {
                let (words, spawn) = bench.quiet_start(index)?;
                Ok::<_, Failure>(sample(Target::Command { words: &words, spawn: &spawn }, &options))
            })??;
            match outcome {
                Ok(outcome) => of_runs.push(outcome.sampled.profile),
                Err(error) => return Ok(Err(format!("{error}."))),
            }
        }
        let mut profile = together(&of_runs);
        Names::new().complete(&mut profile.stacks);
        profiles.push(profile);
    }
    Ok(Ok(Sampled { profiles, runs: NonZeroU64::new(runs).unwrap_or(NonZeroU64::MIN) }))
}

/// Draws the difference of one command from another; `None` if nothing was sampled.
pub(super) fn flamegraph(
    sampled: &Sampled,
    sides: [usize; 2],
    names: &[String],
) -> Result<Option<String>, Failure> {
    let profiles = sides.map(|at| &sampled.profiles[at]);
    let by = metric(profiles);
    let options = FlameOptions {
        shown: FrameVisibility::WithoutStart,
        filter: &Filter::default(),
        folds_recursion: true,
    };
    let stacks = compared_flames(profiles, options, by);
    let runs = match sampled.runs.get() {
        1 => String::new(),
        runs => format!(", {runs} runs each"),
    };
    let subject = if by == CpuMetric::Time { "Time on processors" } else { "Events" };
    let graph = FlameGraph {
        title: format!("{subject}: {}", names[sides[1]]),
        subtitle: format!("against {}{runs}; a box is as wide as the larger of both", names[sides[0]]),
        unit: by.unit(),
        counted: counted(by).to_owned(),
        icicle: false,
        is_compared: true,
    };
    // There is nothing to draw if a command was too short to be sampled.
    Ok(graph.draw(&stacks).ok())
}

/// Returns time, if both profiles have it.
fn metric(profiles: [&CpuProfile; 2]) -> CpuMetric {
    if profiles.iter().all(|profile| profile.known.time) { CpuMetric::Time } else { CpuMetric::Events }
}

/// Returns the largest differences of one command from another.
pub(super) fn text(
    sampled: &Sampled,
    sides: [usize; 2],
    names: &[String],
    sites: usize,
    is_markdown: bool,
    style: Style,
) -> String {
    let profiles = sides.map(|at| &sampled.profiles[at]);
    let names = sides.map(|at| names[at].as_str());
    let by = metric(profiles);
    let options = DiffOptions { by, shown: FrameVisibility::WithoutStart, ..DiffOptions::default() };
    let comparison = &Comparison::of(profiles[0], profiles[1], &options);
    let side = |at: usize| DiffInput {
        file: Path::new(names[at]),
        profile: profiles[at],
        complete: true,
        warnings: &[],
    };
    let diff = DiffReport {
        sides: [side(0), side(1)],
        options: &options,
        per: sampled.runs,
        limit: Some(sites),
        comparison,
        verdicts: &[],
        shares: &[],
    };
    let title = format!("Where {} spends its time otherwise than {}", names[1], names[0]);
    match is_markdown {
        true => format!("\n#### {title}\n\n{}", mallow_text::diff::markdown(&diff)),
        false => format!("\n{}\n\n{}", style.bold(&title), mallow_text::diff::text(&diff, style)),
    }
}

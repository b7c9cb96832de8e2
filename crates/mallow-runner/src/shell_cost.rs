//! What a shell adds to a run.
//!
//! An empty shell is not what a shell costs: it does not start a program, and most shells become the last command of a line instead of
//! starting it. So the same command that does nothing is run with and without the shell, in turns; the difference of the medians is the cost.

use crate::RunnerError;
use crate::command_line::Program;
use crate::spawn::{RunEnvironment, Spawner, end_words};
use mallow_bench::{Run, RunEnd, ShellCost};
use mallow_launch::Interrupts;
use mallow_stats::Summary;

/// Runs of each kind.
const RUNS: usize = 25;

/// Measures a shell.
pub(crate) fn measure(
    spawner: &Spawner,
    shell: &[String],
    interrupts: &Interrupts,
) -> Result<ShellCost, RunnerError> {
    let words = shell.join(" ");
    let nothing = spawner.nothing();
    let bare = Program { path: (&nothing).into(), words: vec![(&nothing).into()], in_shell: false };
    // What is no shell of Bourne's, such as an interpreter, cannot start a program so; an empty text it can run.
    let lines = [nothing.as_str(), ""];
    let mut reason = String::new();
    for line in lines {
        let through = Program::in_shell(line, shell)?;
        let quiet = RunEnvironment::default();
        let first = spawner.run(&through, &quiet, interrupts)?.run;
        if first.end != RunEnd::Status(0) {
            reason = format!("it ended with {}", end_words(first.end));
            continue;
        }
        let (mut with, mut without) = (Vec::new(), Vec::new());
        while with.len() < RUNS && interrupts.heard() == 0 {
            with.push(spawner.run(&through, &quiet, interrupts)?.run);
            without.push(spawner.run(&bare, &quiet, interrupts)?.run);
        }
        let extra = |of: fn(&Run) -> u64| {
            let median = |runs: &[Run]| {
                Summary::of(&Vec::from_iter(runs.iter().map(|run| of(run) as f64)))
                    .map_or(0.0, |it| it.median)
            };
            (median(&with) - median(&without)).max(0.0) as u64
        };
        return Ok(ShellCost {
            shell: words,
            wall_ns: extra(|run| run.wall_ns),
            user_ns: extra(|run| run.user_ns),
            system_ns: extra(|run| run.system_ns),
        });
    }
    Err(RunnerError::Shell { shell: words, reason })
}

/// A run without the shell's part.
pub(crate) fn without(mut run: Run, cost: &ShellCost) -> Run {
    run.wall_ns = run.wall_ns.saturating_sub(cost.wall_ns);
    run.user_ns = run.user_ns.saturating_sub(cost.user_ns);
    run.system_ns = run.system_ns.saturating_sub(cost.system_ns);
    run
}

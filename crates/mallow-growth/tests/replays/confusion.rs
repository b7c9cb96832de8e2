//! How often which verdict was given: the confusion matrix.

use crate::modes::{MODES, Mode};
use crate::replay::{Outcome, places, replay};
use mallow_growth::Verdict;
use std::fmt::Write;

/// Runs of each mode.
pub(crate) const RUNS: usize = 300;

/// The verdicts, as columns.
pub(crate) const VERDICTS: [(Verdict, &str); 8] = [
    (Verdict::Leaking, "leaking"),
    (Verdict::Plateau, "plateau"),
    (Verdict::Clean, "clean"),
    (Verdict::Retention, "retention"),
    (Verdict::Fragmentation, "fragm."),
    (Verdict::Mappings, "mappings"),
    (Verdict::GrowsWhenIdle, "idle"),
    (Verdict::Inconclusive, "open"),
];

/// One mode's outcomes.
pub(crate) struct Row {
    /// The mode.
    pub(crate) mode: &'static Mode,
    /// Its runs.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Row {
    /// How many runs had this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count()
    }

    /// Runs whose verdict was neither accepted nor open. Of resident memory alone, leaks that it has to see and did not.
    pub(crate) fn wrong(&self) -> usize {
        let is_wrong = |outcome: &&Outcome| match outcome.conclusion.heap.is_some() {
            true => {
                let verdict = outcome.verdict();
                verdict != Verdict::Inconclusive && !self.mode.accepted.contains(&verdict)
            }
            false => self.mode.is_large && matches!(outcome.verdict(), Verdict::Clean | Verdict::Plateau),
        };
        self.outcomes.iter().filter(is_wrong).count()
    }

    /// The mean number of iterations.
    pub(crate) fn iterations(&self) -> f64 {
        let all: usize = self.outcomes.iter().map(|outcome| outcome.iterations).sum();
        all as f64 / self.outcomes.len() as f64
    }
}

/// Every mode, on two threads.
pub(crate) fn matrix(recorder: bool, runs: usize) -> Vec<Row> {
    let row = |(index, mode): (usize, &'static Mode)| {
        let places = places();
        let run = |number: usize| {
            let seed = (index * 1_000_003 + number) as u64;
            replay(mode, places[number % places.len()], seed, recorder)
        };
        Row { mode, outcomes: (0..runs).map(run).collect() }
    };
    let modes: Vec<(usize, &'static Mode)> = MODES.iter().enumerate().collect();
    let (even, odd): (Vec<_>, Vec<_>) = modes.into_iter().partition(|(index, _)| index % 2 == 0);
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| odd.into_iter().map(row).collect::<Vec<Row>>());
        let even: Vec<Row> = even.into_iter().map(row).collect();
        (even, odd.join().expect("no replay panics"))
    });
    let mut rows: Vec<Row> = even.into_iter().chain(odd).collect();
    rows.sort_by_key(|row| MODES.iter().position(|mode| mode.name == row.mode.name));
    rows
}

/// The matrix as a table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!("| {:<25} |", "mode");
    for (_, name) in VERDICTS {
        let _ = write!(text, " {name:>9} |");
    }
    let _ = write!(text, " {:>5} | {:>10} |\n| {:-<25} |", "wrong", "iterations", "");
    for width in [9; VERDICTS.len()].into_iter().chain([5, 10]) {
        let _ = write!(text, " {:->width$}: |", "", width = width - 1);
    }
    text.push('\n');
    for row in rows {
        let _ = write!(text, "| {:<25} |", row.mode.name);
        for (verdict, _) in VERDICTS {
            let count = match row.count(verdict) {
                0 => String::new(),
                count => count.to_string(),
            };
            let _ = write!(text, " {count:>9} |");
        }
        let _ = writeln!(text, " {:>5} | {:>10.0} |", row.wrong(), row.iterations());
    }
    text
}

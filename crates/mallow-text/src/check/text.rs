//! A check as a table, the worst test first, with reasons for each that is not OK.

use super::details;
use super::metrics::{each, from_baseline, operations, per_operation, steadiness};
use crate::columns::Columns as _;
use crate::{Style, cut_end, grouped, plural, printable, shell_word};
use mallow_gate::measurement::Metric;
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use mallow_view::check::{conclusion, deciding, stats, worst_first};

/// Columns of a verdict.
const VERDICT: usize = 9;
/// The column where names and reasons begin.
const INDENT: usize = VERDICT + 2;
/// The minimum number of columns of a name before it gets a line of its own.
const NAME_MIN: usize = 12;
/// The headings of the columns after the name.
const HEADS: [&str; 5] = ["per op", "allocations", "left", "fds", "least in"];

/// A check, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The results of the tests.
    pub result: &'a CheckResult,
    /// Stacks in each section of a test.
    pub limit: usize,
    /// Whether improvements count as OK.
    pub allow_improvement: bool,
}

/// Formats one line for a test that has just been judged.
pub fn line(test: &TestResult, style: Style) -> String {
    let name = printable(&test.name);
    let text = match conclusion(test, Metric::Allocations) {
        Some(allocations) => {
            let of = |metric| conclusion(test, metric).map_or(0, |conclusion| conclusion.spread.min);
            let share = per_operation(allocations, operations(test));
            let share =
                if share.is_empty() { share } else { format!(" ({share}/{})", each(operations(test))) };
            let runs = allocations.spread;
            let steadiness = match runs.min == runs.max {
                true => format!("{} of {} equal", runs.at_min, runs.runs),
                false => format!("least in {}", steadiness(allocations)),
            };
            // What is as expected is not printed, so that names have room.
            let left = match of(Metric::Remaining) {
                0 => String::new(),
                count => format!(", {} left", grouped(count)),
            };
            let descriptors = match of(Metric::Descriptors) {
                0 => String::new(),
                count => format!(", {} open", plural(count, "descriptor")),
            };
            let allocations = plural(runs.min, "allocation");
            format!("{name}: {allocations}{share}{left}{descriptors}, {steadiness}")
        }
        None => match test.sentences.first() {
            Some(sentence) => format!("{name}: {}", printable(sentence)),
            None => name,
        },
    };
    let text = cut_end(&text, style.width.saturating_sub(INDENT));
    format!("{}  {text}\n", verdict(test.outcome, style))
}

fn verdict(outcome: Outcome, style: Style) -> String {
    let word = format!("{:<VERDICT$}", outcome.word());
    if outcome == Outcome::Ok { word } else { style.bold(&word) }
}

impl Page<'_> {
    /// Returns the table with all details.
    pub fn text(&self, style: Style) -> String {
        let tests = worst_first(self.result);
        let columns = Columns::of(&tests, style.width);
        let mut out = vec![style.dim(&columns.head())];
        let inner = Style { width: style.width.saturating_sub(INDENT), ..style };
        let mut was_explained = true;
        for test in tests {
            let details = match test.outcome {
                Outcome::Ok => details::notes(test, inner),
                _ => details::lines(test, self.limit, inner),
            };
            // A test with details is separated by a blank line; rows alone are not.
            if was_explained || !details.is_empty() {
                out.push(String::new());
            }
            out.extend(columns.row(test, style));
            was_explained = !details.is_empty();
            out.extend(details.iter().map(|line| format!("{:INDENT$}{line}", "")));
        }
        out.push(String::new());
        out.extend(self.end(style));
        out.join("\n") + "\n"
    }

    /// Returns the conclusion, and what to do next.
    fn end(&self, style: Style) -> Vec<String> {
        let mut out: Vec<String> = self
            .result
            .sentences
            .iter()
            .flat_map(|sentence| details::printable_lines(sentence, style.width))
            .collect();
        out.extend(broken_at_commas(&self.counts(), style.width).iter().map(|line| style.bold(line)));
        out.push(style.dim(&cut_end(&format!("Ran on: {}", self.environment()), style.width)));
        if self.has_metrics_to_accept() {
            out.push(format!("To accept these values: {}", self.result.update_command));
        }
        out.push(format!("Working folder: {}", shell_word(&self.result.folder.to_string_lossy())));
        out
    }

    /// Formats `3 tests: 1 REGRESSED, 2 OK`.
    pub(crate) fn counts(&self) -> String {
        let counts: Vec<String> = stats(self.result)
            .into_iter()
            .map(|(outcome, count)| format!("{} {}", grouped(count as u64), outcome.word()))
            .collect();
        let tests = plural(self.result.tests.len() as u64, "test");
        if counts.is_empty() {
            format!("{tests}: nothing was checked")
        } else {
            format!("{tests}: {}", counts.join(", "))
        }
    }

    /// Formats `x86_64, glibc 2.36, native code, libc's allocator, 2 CPUs`.
    pub(crate) fn environment(&self) -> String {
        let environment = &self.result.environment;
        let allocator = match environment.allocator.as_str() {
            "" | "libc" => "libc's allocator".to_owned(),
            other => other.to_owned(),
        };
        let parts = [
            environment.architecture.clone(),
            environment.libc.clone(),
            environment.runtime.clone(),
            allocator,
            plural(u64::from(environment.processors), "CPU"),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        printable(&parts.join(", "))
    }

    /// Returns whether there is a test whose metrics an update would store.
    pub(crate) fn has_metrics_to_accept(&self) -> bool {
        let is_open = |test: &TestResult| match test.outcome {
            Outcome::Improved | Outcome::Stale | Outcome::Missing => true,
            // What exceeds a limit still exceeds it, whatever the baseline is.
            Outcome::Regressed => deciding(test).iter().all(|conclusion| conclusion.reference.is_some()),
            Outcome::Ok | Outcome::Flaky | Outcome::Blind | Outcome::Error => false,
        };
        self.result.tests.iter().any(is_open) && !self.result.update_command.is_empty()
    }
}

/// Breaks a text after commas into lines of at most `width` columns.
fn broken_at_commas(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.columns() + part.trim_end().columns() <= width => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The widths of the table's columns.
struct Columns {
    name: usize,
    metrics: [usize; 5],
}

impl Columns {
    fn of(tests: &[&TestResult], width: usize) -> Self {
        let mut metrics = HEADS.map(|head| head.columns());
        for test in tests {
            for (column, cell) in metrics.iter_mut().zip(cells(test).iter().flatten()) {
                *column = (*column).max(cell.columns());
            }
        }
        let others: usize = INDENT + metrics.iter().map(|column| column + 2).sum::<usize>();
        let longest = tests.iter().map(|test| test.name.columns()).max().unwrap_or(0);
        Self { name: longest.min(width.saturating_sub(others)).max(NAME_MIN), metrics }
    }

    fn head(&self) -> String {
        let metrics = self.metrics_text(&HEADS.map(str::to_owned));
        format!("{:INDENT$}{:<width$}{metrics}", "", "test", width = self.name)
    }

    /// Returns a test's line; two if its name is too long for its column.
    fn row(&self, test: &TestResult, style: Style) -> Vec<String> {
        let name = printable(&test.name);
        let start = |name: &str| {
            let name = if test.outcome == Outcome::Ok { name.to_owned() } else { style.bold(name) };
            format!("{}  {name}", verdict(test.outcome, style))
        };
        let Some(cells) = cells(test) else { return vec![start(&name)] };
        let metrics = self.metrics_text(&cells);
        if name.columns() > self.name {
            return vec![start(&name), format!("{:width$}{metrics}", "", width = INDENT + self.name)];
        }
        vec![format!("{}{metrics}", start(&format!("{name:<width$}", width = self.name)))]
    }

    fn metrics_text(&self, cells: &[String; 5]) -> String {
        let cell = |(text, width): (&String, usize)| format!("  {text:>width$}");
        cells.iter().zip(self.metrics).map(cell).collect()
    }
}

/// Returns a test's metrics; `None` if nothing was measured.
fn cells(test: &TestResult) -> Option<[String; 5]> {
    let allocations = conclusion(test, Metric::Allocations)?;
    let least = |metric| {
        conclusion(test, metric).map(|conclusion| grouped(conclusion.spread.min)).unwrap_or_default()
    };
    Some([
        per_operation(allocations, operations(test)),
        from_baseline(allocations),
        least(Metric::Remaining),
        least(Metric::Descriptors),
        steadiness(allocations),
    ])
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

//! The report of `mallow bench`: a table for each command, the result of the comparison, and reasons to doubt it.

pub mod counters;
pub mod exports;
mod junit;
mod limits;
mod markdown;
mod parts;
pub mod sentences;
mod units;

pub use junit::document as junit;
pub use limits::{LimitRow, sentence as limit_sentence};
pub use markdown::markdown;
pub use units::TimeUnit;

use crate::columns::Columns;
use crate::{Style, cut_end, plural, printable, wrapped};
use mallow_bench::{Counted, Metric, Session, counted};
use mallow_stacks::{Metric as _, Unit};
use mallow_stats::{Ratio, Summary};
use parts::{paragraphs, percent, shown_name};
use units::{amount, with_unit};

/// A report.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What was measured.
    pub session: &'a Session,
    /// The unit of all times; `None` for the one that suits each.
    pub unit: Option<TimeUnit>,
    /// The results of limits.
    pub limits: &'a [LimitRow],
    /// Whether the differences are explained below, so that no hint at `--explain` is needed.
    pub is_explained: bool,
}

/// Columns of a row's name.
const NAME: usize = 17;

/// Metrics in the order of the table. A metric that was not measured has no row.
const ROWS: [Metric; 7] = [
    Metric::Wall,
    Metric::User,
    Metric::System,
    Metric::Cpu,
    Metric::PeakRss,
    Metric::PageFaults,
    Metric::ContextSwitches,
];
const RECORDED: [Metric; 4] = [Metric::Allocations, Metric::Bytes, Metric::Peak, Metric::Leaked];

impl Page<'_> {
    /// Returns the report as text.
    pub fn text(&self, style: Style) -> String {
        let mut lines = Vec::new();
        for index in 0..self.session.commands.len() {
            lines.extend((index > 0).then(String::new));
            lines.extend(self.command(index, style));
        }
        for sentence in sentences::verdicts(self.session, self.is_explained) {
            lines.extend([String::new(), style.bold(&sentence[0])]);
            lines.extend(sentence[1..].iter().flat_map(|sentence| wrapped(sentence, style.width)));
        }
        lines.extend(paragraphs(&sentences::findings(self.session, self.unit), style));
        lines.extend(paragraphs(&sentences::notes(self.session), style));
        lines.extend((!self.limits.is_empty()).then(String::new));
        lines.extend(self.limits.iter().flat_map(|row| wrapped(&limit_sentence(row), style.width)));
        lines.join("\n").trim_end().to_owned() + "\n"
    }

    fn command(&self, index: usize, style: Style) -> Vec<String> {
        let command = &self.session.commands[index];
        let runs = plural(command.runs.len() as u64, "run");
        let title = format!("{}: {}", index + 1, printable(&shown_name(command)));
        let title = cut_end(&title, style.width.saturating_sub(runs.columns() + 2));
        let gap = style.width.saturating_sub(title.columns() + runs.columns()).max(2);
        let mut lines = vec![format!("{}{}{runs}", style.bold(&title), " ".repeat(gap))];
        if command.runs.is_empty() {
            return lines;
        }
        let is_compared = index != self.session.reference && !self.reference_is_empty();
        let versus = if is_compared { format!("vs {}", self.session.reference + 1) } else { String::new() };
        let head =
            format!("  {:<NAME$}{:>10}{:>21}{:>20}{versus:>10}", "", "median", "mean ± σ", "min … max");
        lines.push(style.dim(head.trim_end()));
        for metric in ROWS {
            lines.extend(self.row(index, metric.word(), metric.unit(), is_compared, |run| {
                metric.of_run(run, &self.session.events)
            }));
        }
        for (at, name) in self.session.events.iter().enumerate() {
            lines.extend(self.row(index, name, Unit::Count, is_compared, |run| {
                run.events.get(at).copied().flatten().map(|count| count.value)
            }));
        }
        lines.extend(self.row(index, "printed", Unit::Count, is_compared, |run| run.printed));
        lines.extend(
            counters::derived(self.session, command)
                .into_iter()
                .map(|(name, value)| format!("  {name:<NAME$}{value:>10}")),
        );
        lines.extend(RECORDED.into_iter().filter_map(|metric| self.recorded(index, metric, is_compared)));
        if let Some(reason) = &command.not_recorded {
            let sentence = format!("Allocations were not counted: {}.", reason.trim_end_matches('.'));
            lines.extend(wrapped(&sentence, style.width - 2).into_iter().map(|line| format!("  {line}")));
        }
        lines
    }

    fn reference_is_empty(&self) -> bool {
        self.session.commands.get(self.session.reference).is_none_or(|reference| reference.runs.is_empty())
    }

    fn row(
        &self,
        index: usize,
        name: &str,
        unit: Unit,
        is_compared: bool,
        of: impl Fn(&mallow_bench::Run) -> Option<f64>,
    ) -> Option<String> {
        let command = &self.session.commands[index];
        let values: Vec<f64> = command.runs.iter().filter_map(&of).collect();
        let summary = Summary::of(&values)?;
        let middle = |value| with_unit(unit, value, self.unit);
        let deviation = summary
            .deviation
            .map_or(String::new(), |it| format!(" ± {}", amount(unit, it, summary.median, self.unit)));
        let mean = format!("{}{deviation}", amount(unit, summary.mean, summary.median, self.unit));
        let range = format!(
            "{} … {}",
            amount(unit, summary.min, summary.median, self.unit),
            amount(unit, summary.max, summary.median, self.unit)
        );
        let change = match is_compared {
            true => {
                let reference = &self.session.commands[self.session.reference];
                let pairs = mallow_bench::pairs(reference, command, &of);
                Ratio::of_pairs(&pairs, self.session.error).map_or(String::new(), |ratio| change(&ratio))
            }
            false => String::new(),
        };
        let line = format!("  {name:<NAME$}{:>10}{mean:>21}{range:>20}{change:>10}", middle(summary.median));
        Some(line.trim_end().to_owned())
    }

    /// Returns what the recorder counted: one exact value, or the minimum and the maximum.
    fn recorded(&self, index: usize, metric: Metric, is_compared: bool) -> Option<String> {
        let command = &self.session.commands[index];
        let count = counted(command, metric)?;
        let text = |value: u64| recorded_text(metric, value);
        let runs = plural(command.allocations.len() as u64, "run");
        let (value, remark) = match count {
            Counted::Exact(value) => (text(value), format!("the same in {runs}")),
            Counted::Varies(min, max) => (text(min), format!("to {}, varies", text(max))),
        };
        let reference = &self.session.commands[self.session.reference];
        let change = match (is_compared, counted(reference, metric), count) {
            (true, Some(Counted::Exact(before)), Counted::Exact(after)) => exact_change(before, after),
            _ => String::new(),
        };
        let line = format!("  {:<NAME$}{value:>10}  {remark:<39}{change:>10}", recorded_name(metric));
        Some(line.trim_end().to_owned())
    }
}

fn recorded_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Bytes => "bytes allocated",
        Metric::Peak => "peak heap",
        other => other.word(),
    }
}

fn recorded_text(metric: Metric, value: u64) -> String {
    match metric.unit() {
        Unit::Bytes => mallow_base::Bytes(value).to_string(),
        _ if value < 100_000_000 => mallow_base::grouped(value),
        _ => mallow_base::Count(value).to_string(),
    }
}

/// Formats a change: `−50.1 %`. A `~` marks one whose interval contains 0, or is unknown.
fn change(ratio: &Ratio) -> String {
    let clear = ratio.has_interval() && (ratio.high < 1.0 || ratio.low > 1.0);
    let mark = if clear { "" } else { "~" };
    format!("{mark}{}", percent(ratio.ratio - 1.0))
}

fn exact_change(before: u64, after: u64) -> String {
    match (before, after) {
        (before, after) if before == after => "same".to_owned(),
        (0, _) => "new".to_owned(),
        (before, after) => percent(after as f64 / before as f64 - 1.0),
    }
}

#[cfg(test)]
#[path = "bench_tests.rs"]
mod tests;

//! The report of `mallow diff`: totals, then what is new, gone, changed and moved.
//!
//! Every difference is after minus before, so an increase is positive.

mod limits;
mod markdown;
mod moved;
mod rows;
mod values;
mod words;

use crate::{Style, cut_end, grouped, plural, printable};
pub use limits::{broken, share, undecided};
use mallow_stacks::{Metric, MetricOf, StackProfile, Weights};
use mallow_view::Measure;
use mallow_view::diff::{Change, DiffReport, DiffRow, Section, Stats};
use std::num::NonZeroU64;
use std::path::Path;
pub(crate) use values::{mark, percent, signed, value};

/// Sites in a section.
const LIMIT: usize = 10;
/// The number of those sites that show their whole stack; the others have a line for their callers.
const WITH_STACK: usize = 3;
/// The column where stacks begin.
const INDENT: usize = 14;

/// Returns the report as text.
pub fn text<P: StackProfile<Weights: Weights<Metric: DiffWords>>>(
    diff: &DiffReport<'_, P>,
    style: Style,
) -> String {
    Page(diff).text(style)
}

/// Returns the report as Markdown, for a comment on a change.
pub fn markdown<P: StackProfile<Weights: Weights<Metric: DiffWords>>>(diff: &DiffReport<'_, P>) -> String {
    Page(diff).markdown()
}

/// A report.
struct Page<'a, P: StackProfile>(&'a DiffReport<'a, P>);

/// The words of a diff for its metrics.
pub trait DiffWords: Metric {
    /// The heading of the Markdown.
    const TITLE: &'static str;

    /// Returns what it counts, for the sentence that nothing differs.
    fn differs_in(self) -> &'static str;

    /// Returns what follows a formatted metric: ` allocations`, or nothing if the metric already says it.
    fn unit_behind(self, metric: &str) -> &'static str;

    /// Returns what else is shown of a site that only one side has, with these metrics: another metric, or words.
    fn beside(self, totals: &Self::Weights, is_known: impl Fn(Self) -> bool) -> Beside<Self>;
}

/// What is shown beside a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside<M> {
    /// Another metric, without its unit if that is clear.
    Metric(M),
    /// Words.
    Words(String),
}

impl<P: StackProfile<Weights: Weights<Metric: DiffWords>>> Page<'_, P> {
    /// Returns the report for a terminal.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut out = self.title(style);
        out.extend(self.totals(style));
        for section in Section::SHOWN {
            out.extend(self.section(section, style));
        }
        out.push(String::new());
        out.extend(self.remainder(style));
        out.join("\n") + "\n"
    }

    pub(super) fn per(&self) -> NonZeroU64 {
        self.0.per
    }

    pub(super) fn by(&self) -> MetricOf<P> {
        self.0.comparison.by
    }

    /// Returns file and command of each side.
    pub(super) fn sides(&self) -> [(&'static str, String, String); 2] {
        let side = |word, path: &Path, profile: &P| {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            (word, printable(&name), printable(&profile.command().join(" ")))
        };
        [
            side("before", self.0.sides[0].file, self.0.sides[0].profile),
            side("after", self.0.sides[1].file, self.0.sides[1].profile),
        ]
    }

    fn title(&self, style: Style) -> Vec<String> {
        let line = |(word, file, command): &(&str, String, String)| {
            let command = if command.is_empty() { String::new() } else { format!(": {command}") };
            let text = cut_end(&format!("{file}{command}"), style.width.saturating_sub(8));
            format!("{word:<8}{}", style.bold(&text))
        };
        self.sides().iter().map(line).collect()
    }

    fn totals(&self, style: Style) -> Vec<String> {
        let head = format!("{:<12}{:>14}{:>14}{:>14}", "", "before", "after", "difference");
        let mut lines = vec![String::new(), style.dim(&head)];
        for (measure, change) in &self.0.comparison.totals {
            let line = format!(
                "{:<12}{:>14}{:>14}{:>14}{:>10}",
                measure.word(),
                value(*measure, change.before, self.per()),
                value(*measure, change.after, self.per()),
                signed(*measure, change.difference(), self.per()),
                percent(*change)
            );
            lines.push(line.trim_end().to_owned());
        }
        lines.extend(self.notes());
        lines
    }

    /// Returns notes that are needed to interpret the metrics.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.per() > NonZeroU64::MIN {
            let words: Vec<&str> =
                self.0.comparison.totals.iter().map(|(measure, _)| measure.word()).collect();
            let but = if words.contains(&Measure::Peak.word()) { " but the peak" } else { "" };
            notes.push(format!("All metrics{but} are divided by {}.", grouped(self.per().get())));
        }
        let names = self.sides().map(|(_, file, _)| file);
        for (before, after, who) in [
            (false, true, format!("{} does not contain", names[0])),
            (true, false, format!("{} does not contain", names[1])),
            (false, false, "neither file contains".to_owned()),
        ] {
            let unknown = self
                .0
                .comparison
                .unknown
                .iter()
                .filter(|unknown| (unknown.before, unknown.after) == (before, after));
            let words: Vec<&str> = unknown.map(|unknown| unknown.measure.word()).collect();
            if !words.is_empty() {
                notes.push(format!("Left out, because {who}: {}.", words.join(", ")));
            }
        }
        notes
    }

    /// Formats `+1,000 allocations at 2 sites`.
    pub(super) fn amount(&self, stats: Stats) -> String {
        format!("{} at {}", self.amount_only(stats.change), plural(stats.sites as u64, "site"))
    }

    fn amount_only(&self, change: Change) -> String {
        let metric = signed(self.by(), change.difference(), self.per());
        format!("{metric}{}", unit(self.by(), &metric))
    }

    fn section(&self, section: Section, style: Style) -> Vec<String> {
        let rows: Vec<&DiffRow<'_, P::Weights>> = self.0.comparison.section(section).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let stats = self.0.comparison.stats(section);
        let mut out = vec![String::new()];
        if section == Section::Moved {
            out.push(format!("{}: {}", style.bold("moved"), self.moved_amount(stats)));
            out.extend(self.moved(&rows, style));
        } else {
            out.push(format!("{}: {}", style.bold(section.word()), self.amount(stats)));
            let limit = self.0.limit.unwrap_or(LIMIT);
            for (at, row) in rows.iter().take(limit).enumerate() {
                out.extend(self.row(row, style, at < WITH_STACK));
            }
            let more = self.not_shown(rows.get(limit..).unwrap_or_default(), style, Self::amount_only);
            out.extend(more.into_iter().flat_map(|line| [String::new(), line]));
        }
        out
    }

    /// Returns how much the row limit leaves out, by the same metric as the rows above.
    fn not_shown(
        &self,
        rest: &[&DiffRow<'_, P::Weights>],
        style: Style,
        amount: impl Fn(&Self, Change) -> String,
    ) -> Option<String> {
        let mut stats = Stats::default();
        rest.iter().for_each(|row| stats.add(row.change(self.by())));
        let more = plural(stats.sites as u64, "more site");
        let text = format!("{more} with {}; --top shows more", amount(self, stats.change));
        (stats.sites > 0).then(|| style.dim(&text))
    }

    /// Returns everything that is in no section, so that the metrics add up.
    fn remainder(&self, style: Style) -> Vec<String> {
        let mut out = Vec::new();
        if self.0.comparison.rows.is_empty() && self.0.comparison.hidden.sites == 0 {
            out.push(format!("No site differs in {}.", self.by().differs_in()));
            out.extend(self.other_measures());
        }
        let hidden = self.0.comparison.hidden;
        if hidden.sites > 0 {
            out.push(format!("hidden: {} ({})", self.amount(hidden), self.hiding()));
        }
        let unchanged = self.0.comparison.unchanged;
        if unchanged.sites > 0 {
            let metric = value(self.by(), unchanged.change.after, self.per());
            let sites = plural(unchanged.sites as u64, "site");
            out.push(style.dim(&format!("unchanged: {metric}{} at {sites}", unit(self.by(), &metric))));
        }
        out
    }

    fn hiding(&self) -> String {
        let options = self.0.options;
        let min = (options.min > 0).then(|| format!("--min {}", options.min));
        let filter = options.filter.as_ref().map(|text| format!("--filter {}", printable(&text.to_string())));
        [min, filter].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn other_measures(&self) -> Option<String> {
        let differ = self.0.comparison.totals.iter().filter(|(_, change)| change.difference() != 0);
        let words: Vec<&str> =
            differ.map(|(measure, _)| measure.word()).filter(|word| *word != self.by().word()).collect();
        let first = words.first()?;
        Some(format!("Other metrics differ ({}); use --metric {first} to see where.", words.join(", ")))
    }
}

/// Returns what follows a formatted metric.
pub(super) fn unit(measure: impl DiffWords, metric: &str) -> &'static str {
    measure.unit_behind(metric)
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

//! The report of `mallow diff`: totals, then what is new, gone, changed and moved.
//!
//! Every difference is after minus before, so an increase is positive.

mod markdown;
mod words;

use crate::columns::Columns;
use crate::report::whole_frame;
use crate::wording::{again, callers};
use crate::{Style, cut_end, frame_text, grouped, metric, plural, printable};
use mallow_base::{Bytes, Frame};
use mallow_stacks::{Level, Metric, MetricOf, Rename, StackProfile, Unit, Weights};
use mallow_stats::Proportion;
use mallow_view::Measure;
use mallow_view::diff::{Change, DiffReport, DiffRow, Section, ShareVerdict, Stats, Verdict};
use mallow_view::{FrameVisibility, Line, Piece, cut, short_name};
use std::num::NonZeroU64;
use std::path::Path;

/// Sites in a section.
const LIMIT: usize = 10;
/// The number of those sites that show their whole stack; the others have a line for their callers.
const WITH_STACK: usize = 3;
/// The maximum number of lines of a stack; beyond it, its middle is left out.
const STACK_LINES_MAX: usize = 8;
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

/// Renames with their sums, and the rows that are not renames.
type ByRename<'r, 'd, W> = (Vec<(String, Stats)>, Vec<&'r DiffRow<'d, W>>);

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

/// Formats a metric, divided by the number of operations. A peak is not: it is what was live at one moment, however often something was done.
pub(crate) fn value(measure: impl Metric, value: u64, per: NonZeroU64) -> String {
    if per == NonZeroU64::MIN || measure.word() == Measure::Peak.word() {
        return metric(measure, value);
    }
    if measure.unit() == Unit::Nanoseconds {
        return metric(measure, value / per);
    }
    if measure.unit() != Unit::Bytes {
        return thousandths(u128::from(value), per);
    }
    let whole = value / per;
    if whole >= 1024 {
        Bytes(whole).to_string()
    } else {
        format!("{} B", thousandths(u128::from(value), per))
    }
}

/// Formats `1,234.567`, truncated and not rounded, so that what is shown never exceeds the value.
fn thousandths(value: u128, per: NonZeroU64) -> String {
    let per = u128::from(per.get());
    let whole = u64::try_from(value / per).unwrap_or(u64::MAX);
    format!("{}.{:03}", grouped(whole), value % per * 1000 / per)
}

/// Formats a difference with its sign; `0` has none.
pub(crate) fn signed(measure: impl Metric, difference: i128, per: NonZeroU64) -> String {
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    match difference {
        0 => "0".to_owned(),
        1.. => format!("+{}", value(measure, size, per)),
        _ => format!("-{}", value(measure, size, per)),
    }
}

/// Formats the difference as a percentage of before; empty if there is none or before is 0.
pub(crate) fn percent(change: Change) -> String {
    let difference = change.difference();
    if difference == 0 || change.before == 0 {
        return String::new();
    }
    let percent = difference as f64 * 100.0 / change.before as f64;
    match percent.abs() {
        0.0..0.01 => format!("{}<0.01%", if difference > 0 { '+' } else { '-' }),
        0.01..0.1 => format!("{percent:+.2}%"),
        0.1..10_000.0 => format!("{percent:+.1}%"),
        _ => format!("× {}", grouped(change.after / change.before)),
    }
}

/// Returns the confidence of a match, as a few characters.
pub(crate) fn mark(level: Level) -> String {
    match level {
        Level::Same => "=".to_owned(),
        Level::Lines => "≈ lines".to_owned(),
        Level::Files => "≈ files".to_owned(),
        Level::Inlining => "≈ inlining".to_owned(),
        Level::Renamed => "≈ renamed".to_owned(),
        Level::Frames => "~ frames".to_owned(),
        Level::Similar(percent) => format!("~ {percent} %"),
    }
}

/// Returns the sentence for a limit that is exceeded.
pub fn broken<M: Metric>(verdict: &Verdict<M>, per: NonZeroU64) -> String {
    let (measure, change) = (verdict.limit.measure, verdict.change);
    let share = percent(change);
    let share = if share.is_empty() { share } else { format!(", {share}") };
    let each = if per == NonZeroU64::MIN { "" } else { ", per operation" };
    format!(
        "the limit {} is broken: {} before, {} after, {}{share}{each}.",
        verdict.limit,
        value(measure, change.before, per),
        value(measure, change.after, per),
        signed(measure, change.difference(), per)
    )
}

/// Returns the sentence for a limit on a function's share that is exceeded or cannot be judged.
pub fn share(verdict: &ShareVerdict, is_complete: bool) -> String {
    let ShareVerdict { limit, samples, interval, is_broken } = verdict;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let side = |side: Proportion| format!("{} of {} samples", grouped(side.part), grouped(side.whole));
    let shares = format!(
        "{} before ({}), {} after ({})",
        percent(samples[0].share()),
        side(samples[0]),
        percent(samples[1].share()),
        side(samples[1])
    );
    let bounds = interval.map(|(low, high)| {
        let what = if limit.is_relative {
            "which is between {} and {} points more"
        } else {
            "which may be {} to {} of all"
        };
        let unit =
            |share: f64| if limit.is_relative { format!("{:+.1}", share * 100.0) } else { percent(share) };
        what.replacen("{}", &unit(low), 1).replacen("{}", &unit(high), 1)
    });
    match (is_broken, bounds) {
        _ if !is_complete => format!("the limit {limit} cannot be judged: a profile is not complete."),
        (_, None) => format!("the limit {limit} cannot be judged: a profile has no samples."),
        (Some(_), Some(bounds)) => format!("the limit {limit} is broken: {shares}, {bounds}."),
        (None, Some(bounds)) => format!(
            "the limit {limit} cannot be judged: {shares}, {bounds}; more samples would decide (-F, or a longer run)."
        ),
    }
}

/// Returns the sentence for a limit that cannot be judged.
pub fn undecided<M: Metric>(verdict: &Verdict<M>) -> String {
    format!("the limit {} cannot be judged: a profile is not complete.", verdict.limit)
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

    /// Formats `1,000 allocations at 2 sites, no difference`.
    pub(super) fn moved_amount(&self, stats: Stats) -> String {
        let sites = plural(stats.sites as u64, "site");
        let [metric, difference] = self.moved_parts(stats.change);
        format!("{metric} at {sites}, {difference}")
    }

    fn moved_amount_only(&self, change: Change) -> String {
        self.moved_parts(change).join(", ")
    }

    fn moved_parts(&self, change: Change) -> [String; 2] {
        let metric = value(self.by(), change.after, self.per());
        let difference = match change.difference() {
            0 => "no difference".to_owned(),
            difference => signed(self.by(), difference, self.per()),
        };
        [format!("{metric}{}", unit(self.by(), &metric)), difference]
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

    fn row(&self, row: &DiffRow<'_, P::Weights>, style: Style, is_whole: bool) -> Vec<String> {
        let change = row.change(self.by());
        let difference = format!("{:>12}", signed(self.by(), change.difference(), self.per()));
        let mut out = vec![String::new()];
        out.push(format!("{}  {}", style.bold(&difference), self.detail(row)).trim_end().to_owned());
        out.extend(if is_whole || self.is_all() { self.stack(row, style) } else { self.callers(row, style) });
        out
    }

    fn is_all(&self) -> bool {
        self.0.options.shown == FrameVisibility::All
    }

    /// Returns the naming frame, and its callers.
    fn callers(&self, row: &DiffRow<'_, P::Weights>, style: Style) -> Vec<String> {
        let width = style.name_width(INDENT);
        let frames = row.after.as_ref().or(row.before.as_ref()).map_or(&[][..], |side| &side.frames);
        let mut out = vec![format!("{:INDENT$}{}", "", frame_text(frames.first().copied(), width))];
        if let Some(was) = was(row) {
            let text = format!("was {}", frame_text(Some(was), width.saturating_sub(4)));
            out.push(format!("{:INDENT$}{}", "", style.dim(&text)));
        }
        if let Some(callers) = callers(frames.iter().skip(1).copied(), width.saturating_sub(2)) {
            out.push(format!("{:INDENT$}  {}", "", style.dim(&callers)));
        }
        out
    }

    /// Returns the text beside the difference: the total, and the confidence of the match.
    pub(super) fn detail(&self, row: &DiffRow<'_, P::Weights>) -> String {
        let change = row.change(self.by());
        match row.section {
            Section::New | Section::Gone => self.other_metrics(row),
            _ => {
                let metrics = format!(
                    "{} → {}",
                    value(self.by(), change.before, self.per()),
                    value(self.by(), change.after, self.per())
                );
                let share = percent(change);
                let stacks = |side: &Option<mallow_view::diff::DiffSide<'_, P::Weights>>| {
                    side.as_ref().map_or(0, |side| side.stacks)
                };
                let split = match (stacks(&row.before), stacks(&row.after)) {
                    (1, 1) => String::new(),
                    (before, after) => format!("{before} → {}", plural(after as u64, "stack")),
                };
                let parts = [share, metrics, mark(row.level), split];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("   ")
            }
        }
    }

    /// Returns the other metrics of a site that only one side has.
    fn other_metrics(&self, row: &DiffRow<'_, P::Weights>) -> String {
        let Some(side) = row.after.as_ref().or(row.before.as_ref()) else { return String::new() };
        let is_known = |measure| self.0.comparison.total(measure).is_some();
        match self.by().beside(&side.totals, is_known) {
            Beside::Words(words) => words,
            Beside::Metric(other) => {
                let metric = signed(other, row.change(other).difference(), self.per());
                let unit = other.unit_behind(&metric);
                metric + unit
            }
        }
    }

    fn stack(&self, row: &DiffRow<'_, P::Weights>, style: Style) -> Vec<String> {
        let width = style.name_width(INDENT);
        let mut out = self.stack_lines(row, width);
        if let Some(was) = was(row) {
            let text = format!("was {}", frame_text(Some(was), width.saturating_sub(4)));
            out.insert(1, style.dim(&text));
        }
        out.iter().map(|line| format!("{:INDENT$}{line}", "")).collect()
    }

    /// Returns the frames of the side after, or of a stack that is gone; the middle is left out if there are many.
    pub(super) fn stack_lines(&self, row: &DiffRow<'_, P::Weights>, width: usize) -> Vec<String> {
        let frames = row.after.as_ref().or(row.before.as_ref()).map_or(&[][..], |side| &side.frames);
        if frames.is_empty() {
            return vec![frame_text(None, width)];
        }
        if self.is_all() {
            return frames.iter().map(|frame| whole_frame(frame)).collect();
        }
        let lines: Vec<Line<'_>> = frames.iter().map(|frame| Line { frame, times: 1 }).collect();
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Line(line) => frame_text(Some(line.frame), width),
            Piece::Again { lines, times } => again(*lines, *times),
            Piece::Gap(count) => format!("… {count} more"),
        };
        cut(&lines, STACK_LINES_MAX).iter().map(piece).collect()
    }

    /// Returns renamed functions, one line each, then what else has moved.
    fn moved(&self, rows: &[&DiffRow<'_, P::Weights>], style: Style) -> Vec<String> {
        let limit = self.0.limit.unwrap_or(LIMIT);
        let (renames, others) = self.by_rename(rows);
        let width = style.name_width(INDENT);
        let mut out = Vec::new();
        for (names, stats) in renames.iter().take(limit) {
            let metric = self.moved_metric(stats.change);
            let sites = plural(stats.sites as u64, "site");
            let names = cut_end(names, width.saturating_sub(sites.columns() + 2));
            out.push(format!("{metric:>12}  {names}  {}", style.dim(&sites)));
        }
        if renames.len() > limit {
            let more = plural((renames.len() - limit) as u64, "more rename");
            out.push(style.dim(&format!("{more}; --top shows more")));
        }
        for row in others.iter().take(limit) {
            let frame = row.after.as_ref().and_then(|side| side.frames.first()).copied();
            let mark = mark(row.level);
            let text = frame_text(frame, width.saturating_sub(mark.columns() + 2));
            out.push(format!(
                "{:>12}  {text}  {}",
                self.moved_metric(row.change(self.by())),
                style.dim(&mark)
            ));
        }
        out.extend(self.not_shown(others.get(limit..).unwrap_or_default(), style, Self::moved_amount_only));
        out
    }

    fn moved_metric(&self, change: Change) -> String {
        match change.difference() {
            0 => value(self.by(), change.after, self.per()),
            difference => signed(self.by(), difference, self.per()),
        }
    }

    /// Returns the sums of rows that differ by renamed functions, for each rename; and the other rows.
    pub(super) fn by_rename<'r, 'd>(
        &self,
        rows: &[&'r DiffRow<'d, P::Weights>],
    ) -> ByRename<'r, 'd, P::Weights> {
        let texts: Vec<Option<String>> = self.0.comparison.renames.iter().map(rename_text).collect();
        let mut tallies = vec![Stats::default(); texts.len()];
        let mut others = Vec::new();
        for row in rows {
            match row.renames.iter().find(|rename| texts[**rename].is_some()) {
                Some(rename) => tallies[*rename].add(row.change(self.by())),
                None => others.push(*row),
            }
        }
        let named = texts.into_iter().zip(tallies).filter_map(|(text, stats)| Some((text?, stats)));
        let mut renames: Vec<(String, Stats)> = named.filter(|(_, stats)| stats.sites > 0).collect();
        renames.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.sites));
        (renames, others)
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

/// Formats `load_rows → read_rows`; `None` if the names differ only in arguments, because then another rename is the reason.
fn rename_text(rename: &Rename) -> Option<String> {
    let [before, after] = [&rename.before, &rename.after].map(|name| printable(&short_name(name)));
    (before != after).then(|| format!("{before} → {after}"))
}

/// Returns the innermost frame before, if it is another function than after.
fn was<'a, W: Weights>(row: &DiffRow<'a, W>) -> Option<&'a Frame> {
    let before = row.before.as_ref()?.frames.first().copied()?;
    let after = row.after.as_ref()?.frames.first().copied()?;
    (short_name(&before.function) != short_name(&after.function)).then_some(before)
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

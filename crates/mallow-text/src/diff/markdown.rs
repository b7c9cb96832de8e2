//! The report of `mallow diff` as Markdown for a comment on a change: the largest increase first, stacks collapsed.
//!
//! Servers truncate or refuse comments of more than 65,536 characters, so stacks are left out if there is no room for them.

use super::{DiffWords, Page, mark, percent, signed, value};
use crate::markdown::{BYTES_MAX, STYLE, capitalised, code, escaped, folded};
use crate::{frame_text, plural};
use mallow_stacks::{Metric, MetricOf, StackProfile, Weights};
use mallow_view::diff::{DiffRow, Section, Stats};

/// Sites in each part.
const LIMIT: usize = 20;
/// The maximum number of columns of a file name.
const FILE_MAX: usize = usize::MAX;

impl<P: StackProfile<Weights: Weights<Metric: DiffWords>>> Page<'_, P> {
    /// Returns the report as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = self.markdown_head();
        let shown: Vec<&DiffRow<'_, P::Weights>> =
            self.0.comparison.rows.iter().filter(|row| row.section != Section::Moved).collect();
        let difference = |row: &DiffRow<'_, P::Weights>| row.change(self.by()).difference();
        let (mut more, mut less): (Vec<_>, Vec<_>) = shown.into_iter().partition(|row| difference(row) > 0);
        more.sort_by_key(|row| std::cmp::Reverse(difference(row)));
        less.sort_by_key(|row| difference(row));
        self.part("More", &more, &mut out);
        self.part("Less", &less, &mut out);
        self.moved_part(&mut out);
        let hidden = self.0.comparison.hidden;
        if hidden.sites > 0 {
            out.push_str(&format!("\nHidden: {}.\n", self.amount(hidden)));
        }
        let unchanged = self.0.comparison.unchanged;
        if unchanged.sites > 0 {
            let metric = value(self.by(), unchanged.change.after, self.per());
            let sites = plural(unchanged.sites as u64, "site");
            out.push_str(&format!("\nUnchanged: {metric}{} at {sites}.\n", super::unit(self.by(), &metric)));
        }
        out
    }

    fn markdown_head(&self) -> String {
        let mut out = format!("## {}\n\n", MetricOf::<P>::TITLE);
        let news: Vec<_> =
            self.0.verdicts.iter().filter(|verdict| verdict.is_broken != Some(false)).collect();
        for verdict in &news {
            let sentence = match verdict.is_broken {
                None => super::undecided(verdict),
                Some(_) => super::broken(verdict, self.per()),
            };
            out.push_str(&format!("**{}**\n\n", capitalised(&sentence)));
        }
        let is_complete = self.0.sides.iter().all(|side| side.complete);
        let shares: Vec<_> =
            self.0.shares.iter().filter(|verdict| verdict.is_broken != Some(false)).collect();
        for verdict in &shares {
            out.push_str(&format!("**{}**\n\n", capitalised(&super::share(verdict, is_complete))));
        }
        let has_limits = !self.0.verdicts.is_empty() || !self.0.shares.is_empty();
        if news.is_empty() && shares.is_empty() && has_limits {
            out.push_str("All limits hold.\n\n");
        }
        out.push_str("| | before | after | difference | |\n|---|--:|--:|--:|--:|\n");
        for (measure, change) in &self.0.comparison.totals {
            let difference = signed(*measure, change.difference(), self.per());
            let difference = if change.difference() > 0 { format!("**{difference}**") } else { difference };
            out.push_str(&format!(
                "| {} | {} | {} | {difference} | {} |\n",
                measure.word(),
                value(*measure, change.before, self.per()),
                value(*measure, change.after, self.per()),
                percent(*change)
            ));
        }
        out.push('\n');
        for (word, file, command) in self.sides() {
            let command =
                if command.is_empty() { String::new() } else { format!(": {}", code(&command, STYLE.width)) };
            out.push_str(&format!("- {word} {}{command}\n", code(&file, FILE_MAX)));
        }
        for note in self.notes() {
            out.push_str(&format!("\n{note}\n"));
        }
        out
    }

    /// Appends a part with a collapsed stack for each site.
    fn part(&self, heading: &str, rows: &[&DiffRow<'_, P::Weights>], out: &mut String) {
        let mut stats = Stats::default();
        rows.iter().for_each(|row| stats.add(row.change(self.by())));
        if rows.is_empty() {
            return;
        }
        out.push_str(&format!("\n### {heading}: {}\n\n", self.amount(stats)));
        let limit = self.0.limit.unwrap_or(LIMIT);
        let mut rest = Stats::default();
        for (at, row) in rows.iter().enumerate() {
            let text = self.folded(row);
            if at < limit && rest.sites == 0 && out.len() + text.len() <= BYTES_MAX {
                out.push_str(&text);
            } else {
                rest.add(row.change(self.by()));
            }
        }
        if rest.sites > 0 {
            let metric = signed(self.by(), rest.change.difference(), self.per());
            out.push_str(&format!("\n{} with {metric} not shown.\n", plural(rest.sites as u64, "more site")));
        }
    }

    fn folded(&self, row: &DiffRow<'_, P::Weights>) -> String {
        let difference = signed(self.by(), row.change(self.by()).difference(), self.per());
        let frames = row.after.as_ref().or(row.before.as_ref()).map_or(&[][..], |side| &side.frames);
        let name = escaped(&frame_text(frames.first().copied(), STYLE.width));
        let detail = escaped(&self.detail(row));
        let word = row.section.word();
        let stack = self.stack_lines(row, STYLE.width).join("\n") + "\n";
        folded(&format!("{word} <b>{difference}</b> <code>{name}</code> {detail}"), false, &stack)
    }

    fn moved_part(&self, out: &mut String) {
        let rows: Vec<&DiffRow<'_, P::Weights>> = self.0.comparison.section(Section::Moved).collect();
        if rows.is_empty() {
            return;
        }
        let stats = self.0.comparison.stats(Section::Moved);
        out.push_str(&format!("\n### Moved: {}\n\n", self.moved_amount(stats)));
        let (renames, others) = self.by_rename(&rows);
        let limit = self.0.limit.unwrap_or(LIMIT);
        let renamed = renames.iter().map(|(names, stats)| {
            format!("- {} renamed: {}\n", code(names, STYLE.width), plural(stats.sites as u64, "site"))
        });
        let placed = others.iter().map(|row| {
            let frame = row.after.as_ref().and_then(|side| side.frames.first()).copied();
            format!("- {} {}\n", code(&frame_text(frame, STYLE.width), FILE_MAX), mark(row.level))
        });
        let lines: Vec<String> = renamed.take(limit).chain(placed.take(limit)).collect();
        let mut left_out = renames.len() + others.len() - lines.len();
        for line in lines {
            if out.len() + line.len() <= BYTES_MAX {
                out.push_str(&line);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            out.push_str(&format!("- and {left_out} more\n"));
        }
    }
}

//! Sites that are the same under another name or in another place.

use super::{DiffWords, INDENT, LIMIT, Page, mark, signed, unit, value};
use crate::columns::Columns;
use crate::{Style, cut_end, frame_text, plural, printable};
use mallow_stacks::{Rename, StackProfile, Weights};
use mallow_view::diff::{Change, DiffRow, Stats};
use mallow_view::short_name;

/// Renames with their sums, and the rows that are not renames.
type ByRename<'r, 'd, W> = (Vec<(String, Stats)>, Vec<&'r DiffRow<'d, W>>);

impl<P: StackProfile<Weights: Weights<Metric: DiffWords>>> Page<'_, P> {
    /// Formats `1,000 allocations at 2 sites, no difference`.
    pub(super) fn moved_amount(&self, stats: Stats) -> String {
        let sites = plural(stats.sites as u64, "site");
        let [metric, difference] = self.moved_parts(stats.change);
        format!("{metric} at {sites}, {difference}")
    }

    pub(super) fn moved_amount_only(&self, change: Change) -> String {
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

    /// Returns renamed functions, one line each, then what else has moved.
    pub(super) fn moved(&self, rows: &[&DiffRow<'_, P::Weights>], style: Style) -> Vec<String> {
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
}

/// Formats `load_rows → read_rows`; `None` if the names differ only in arguments, because then another rename is the reason.
fn rename_text(rename: &Rename) -> Option<String> {
    let [before, after] = [&rename.before, &rename.after].map(|name| printable(&short_name(name)));
    (before != after).then(|| format!("{before} → {after}"))
}

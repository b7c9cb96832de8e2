//! What changed between two profiles, as rows: new, gone, changed and moved sites.
//!
//! Which site is which is decided in `mallow-stacks`; here sites are folded and cut as reports show them,
//! before they are compared, and the result is put into sections by one measure. Whatever a filter hides is
//! summed up, so that sections, what is hidden and what did not change always add up to the totals.

mod limit;
mod report;
mod share;
mod side;
mod stacks;

pub use limit::{Limit, LimitError, Verdict};
pub use mallow_stacks::Level;
pub use report::{DiffInput, DiffReport};
pub use share::{ShareLimit, ShareVerdict};

use crate::filter::Expression;
use crate::{FrameVisibility, Measure};
use mallow_base::{Frame, add_fields};
use mallow_profile::SiteTotals;
use mallow_stacks::{Diff, DiffEntry, Metric, Rename, StackId, StackProfile, Weights, totals_of};
use side::{Side, same_modules};
pub(crate) use stacks::compared_stacks;

/// A site that was moved and differs by at most one part in so many is shown as moved, not as changed:
/// another place often brings another warm-up.
const SMALL_CHANGE: u64 = 100;

/// What to compare, and which part of it to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions<M = Measure> {
    /// The metric that makes a site new, gone or changed.
    pub by: M,
    /// Which frames of a stack are compared.
    pub shown: FrameVisibility,
    /// How many frames from the leaf are compared; `None` for all.
    pub depth: Option<usize>,
    /// Sites that differ by less are hidden; moved ones when both metrics are less.
    pub min: u64,
    /// Which stacks are shown: sites that match on either side.
    pub filter: Option<Expression>,
}

impl<M: Metric> Default for DiffOptions<M> {
    fn default() -> Self {
        Self { by: M::ALL[0], shown: FrameVisibility::WithoutPlumbing, depth: None, min: 0, filter: None }
    }
}

/// The section of a site in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Only the profile after has it.
    New,
    /// Only the profile before has it.
    Gone,
    /// Both have it, with other metrics.
    Changed,
    /// Both have it with about the same metrics, in another place or under another name.
    Moved,
    /// Both have it with the same metrics.
    Unchanged,
}

impl Section {
    /// The sections that are shown, in their order.
    pub const SHOWN: [Section; 4] = [Section::New, Section::Gone, Section::Changed, Section::Moved];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Section::New => "new",
            Section::Gone => "gone",
            Section::Changed => "changed",
            Section::Moved => "moved",
            Section::Unchanged => "unchanged",
        }
    }
}

/// A metric on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

impl Change {
    /// After minus before: what became more is positive.
    pub fn difference(self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }

    fn add(&mut self, more: Change) {
        add_fields!(self, more; before, after);
    }
}

/// One side of a row.
#[derive(Clone, Debug)]
pub struct DiffSide<'a, W = SiteTotals> {
    /// The metrics of all its sites.
    pub totals: W,
    /// How many stacks were merged.
    pub stacks: usize,
    /// The stack with the highest metric.
    pub stack: Option<StackId>,
    /// The frames of that stack by which it was compared, leaf first.
    pub frames: Vec<&'a Frame>,
}

/// One site, or sites that became several, on both sides.
#[derive(Clone, Debug)]
pub struct DiffRow<'a, W = SiteTotals> {
    /// Its section.
    pub section: Section,
    /// How it was matched.
    pub level: Level,
    /// None for a new site.
    pub before: Option<DiffSide<'a, W>>,
    /// None for a site that is gone.
    pub after: Option<DiffSide<'a, W>>,
    /// Indices of [`Comparison::renames`] between the two.
    pub renames: Vec<usize>,
}

impl<W: Weights> DiffRow<'_, W> {
    /// A metric on both sides.
    pub fn change(&self, metric: W::Metric) -> Change {
        self.change_of(|totals| metric.of_site(totals))
    }

    fn change_of(&self, metric: impl Fn(&W) -> u64) -> Change {
        let of = |side: &Option<DiffSide<'_, W>>| side.as_ref().map_or(0, |side| metric(&side.totals));
        Change { before: of(&self.before), after: of(&self.after) }
    }
}

/// The number of rows, and their metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of sites.
    pub sites: usize,
    /// Their metrics together.
    pub change: Change,
}

impl Stats {
    /// Counts one more.
    pub fn add(&mut self, change: Change) {
        self.sites += 1;
        self.change.add(change);
    }
}

/// The changes between two profiles.
#[derive(Clone, Debug)]
pub struct Comparison<'a, W: Weights = SiteTotals> {
    /// By what sites are new, gone or changed.
    pub by: W::Metric,
    /// The totals of every measure that both sides know.
    pub totals: Vec<(W::Metric, Change)>,
    /// Measures that one of the sides does not know.
    pub unknown: Vec<Unknown<W::Metric>>,
    /// The sites of [`Section::SHOWN`], section by section, the largest difference first.
    pub rows: Vec<DiffRow<'a, W>>,
    /// Renamed functions.
    pub renames: Vec<Rename>,
    /// Sites that would be in a section without `min` and `filter`.
    pub hidden: Stats,
    /// Sites with the same metric on both sides, in the same place.
    pub unchanged: Stats,
}

/// A measure that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown<M = Measure> {
    /// The measure.
    pub measure: M,
    /// Whether the profile before has it.
    pub before: bool,
    /// Whether the profile after has it.
    pub after: bool,
}

impl<'a, W: Weights> Comparison<'a, W> {
    /// Compares two profiles.
    pub fn of<P: StackProfile<Weights = W>>(
        before: &'a P,
        after: &'a P,
        options: &DiffOptions<W::Metric>,
    ) -> Self {
        let known = |metric| before.knows(metric) && after.knows(metric);
        let unknown = W::Metric::ALL.iter().filter(|metric| !known(**metric)).map(|metric| Unknown {
            measure: *metric,
            before: before.knows(*metric),
            after: after.knows(*metric),
        });
        let unknown = unknown.collect();
        let same_modules = same_modules(before.stacks(), after.stacks());
        let (before, after) = (Side::of(before, options), Side::of(after, options));
        let Diff { entries, renames, .. } = Diff::of(&before, &after, known, &same_modules);
        let mut comparison = Self {
            by: options.by,
            totals: Vec::new(),
            unknown,
            rows: Vec::new(),
            renames,
            hidden: Stats::default(),
            unchanged: Stats::default(),
        };
        for metric in W::Metric::ALL.iter().copied().filter(|metric| known(*metric)) {
            let change = Change { before: before.total(metric), after: after.total(metric) };
            comparison.totals.push((metric, change));
        }
        for entry in entries {
            comparison.place(entry, &before, &after, options);
        }
        // Of half a million sites they are large, and what sorts the rows is large too.
        drop((before, after));
        comparison.sort();
        comparison
    }

    /// The totals of a measure; none if a side does not know it.
    pub fn total(&self, measure: W::Metric) -> Option<Change> {
        self.totals.iter().find(|(other, _)| *other == measure).map(|(_, change)| *change)
    }

    /// The rows of a section.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &DiffRow<'a, W>> {
        self.rows.iter().filter(move |row| row.section == section)
    }

    /// The metrics of a section together.
    pub fn stats(&self, section: Section) -> Stats {
        let mut stats = Stats::default();
        self.section(section).for_each(|row| stats.add(row.change(self.by)));
        stats
    }

    fn place(
        &mut self,
        entry: DiffEntry,
        before: &Side<'a, W>,
        after: &Side<'a, W>,
        options: &DiffOptions<W::Metric>,
    ) {
        let by = options.by;
        let totals =
            [(before, &entry.before), (after, &entry.after)].map(|(side, sites)| totals_of(side, sites));
        if totals.iter().all(|totals| !by.concerns(totals)) {
            return;
        }
        let change = Change { before: by.of_site(&totals[0]), after: by.of_site(&totals[1]) };
        let section = section_of(&entry, change);
        if section == Section::Unchanged {
            self.unchanged.add(change);
            return;
        }
        let size = match section {
            Section::Moved => u128::from(change.before.max(change.after)),
            _ => change.difference().unsigned_abs(),
        };
        let is_wanted = before.wants(&entry.before) || after.wants(&entry.after);
        if size < u128::from(options.min) || !is_wanted {
            self.hidden.add(change);
            return;
        }
        self.rows.push(DiffRow {
            section,
            level: entry.level,
            before: before.part(&entry.before, totals[0], by),
            after: after.part(&entry.after, totals[1], by),
            renames: entry.renames,
        });
    }

    fn sort(&mut self) {
        let by = self.by;
        self.rows.sort_by_cached_key(|row| {
            let change = row.change(by);
            let tie = row.change_of(|totals| totals.tie()[0]).difference().unsigned_abs();
            let place = Section::SHOWN.iter().position(|section| *section == row.section);
            let size = change.before.max(change.after);
            (place, std::cmp::Reverse((change.difference().unsigned_abs(), size, tie)))
        });
    }
}

fn section_of(entry: &DiffEntry, change: Change) -> Section {
    let difference = change.difference();
    let is_moved = !matches!(entry.level, Level::Same | Level::Lines | Level::Inlining);
    let is_small =
        difference.unsigned_abs() * u128::from(SMALL_CHANGE) <= u128::from(change.before.max(change.after));
    match (entry.before.is_empty(), entry.after.is_empty()) {
        (true, _) => Section::New,
        (_, true) => Section::Gone,
        _ if is_moved && is_small => Section::Moved,
        _ if difference != 0 => Section::Changed,
        _ => Section::Unchanged,
    }
}

#[cfg(test)]
#[path = "diff/tests.rs"]
mod tests;

//! What a report is about, and which part of it is shown: the same for text, JSON and a page.

use crate::leaks::Leaks;
use crate::{
    AppliedSuppressions, Direction, Filter, FrameVisibility, FunctionOrder, Measure, PartOf, SortKey,
    SuppressedLeaks, TreeOptions,
};
use mallow_profile::Profile;
use std::path::Path;

/// The source of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The format's word, such as `heaptrack`.
    pub word: &'static str,
    /// The name of the file's format, such as `heaptrack file`.
    pub name: &'static str,
    /// Whether it is a trace of ours.
    pub is_trace: bool,
}

/// A profile, and what was found out about it beside its sums.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The profile, without what was suppressed.
    pub profile: &'a Profile,
    /// Its file.
    pub file: &'a Path,
    /// Its source.
    pub origin: Origin,
    /// The suppressions.
    pub suppressions: &'a AppliedSuppressions,
    /// Verdicts on its leaks, if there are events.
    pub leaks: Option<&'a Leaks>,
    /// Which part of a recording it is, if it is not all.
    pub part: Option<&'a PartOf>,
}

/// Which part of a profile is shown, and in which layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The layout of sites.
    pub layout: Layout,
    /// Rows of a table, or branches of a node; none for as many as the front end thinks fit.
    pub limit: Option<usize>,
    /// Which frames of a stack are shown.
    pub shown: FrameVisibility,
    /// Which sites are shown.
    pub filter: Filter,
    /// Operations that the program did, to divide by.
    pub per: Option<u64>,
}

/// The layout of sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The totals, and a short table by each measure.
    Tables,
    /// The top sites with one metric and their stacks.
    Stacks(SortKey),
    /// The top sites with all their metrics.
    Points(SortKey),
    /// A tree of calls.
    Tree(TreeLayout),
    /// Functions by what they allocated themselves, or with their callees.
    Functions(Measure, FunctionOrder),
    /// Functions of this name, with those that called them and those that they called.
    Peek(Measure, String),
}

/// A tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLayout {
    /// The sort key of its branches.
    pub key: SortKey,
    /// Its direction.
    pub direction: Direction,
    /// Branches below this part of the whole are folded, in millionths.
    pub threshold_ppm: u32,
    /// Branches above one another.
    pub depth: usize,
}

impl Subject<'_> {
    /// Returns the leaks matching the options that suppressions removed.
    pub fn suppressed(&self, options: &ReportOptions) -> SuppressedLeaks {
        let AppliedSuppressions { taken, suppressions, .. } = self.suppressions;
        SuppressedLeaks::of(self.profile, taken, suppressions.len(), options.shown, &options.filter)
    }
}

impl ReportOptions {
    /// Returns the options of a tree.
    pub fn tree_options(&self, tree: TreeLayout) -> TreeOptions {
        TreeOptions {
            direction: tree.direction,
            key: tree.key,
            threshold_ppm: tree.threshold_ppm,
            depth: tree.depth,
            limit: self.limit.unwrap_or(usize::MAX),
            shown: self.shown,
        }
    }
}

impl Layout {
    /// Returns the sort key of sites; `None` if each measure has its own table.
    pub fn key(&self) -> Option<SortKey> {
        match self {
            Layout::Tables => None,
            Layout::Stacks(key) | Layout::Points(key) | Layout::Tree(TreeLayout { key, .. }) => Some(*key),
            Layout::Functions(measure, _) | Layout::Peek(measure, _) => Some((*measure).into()),
        }
    }

    /// Returns whether it lists leaks with their verdicts.
    pub fn has_leak_table(&self) -> bool {
        let is_of_sites = matches!(self, Layout::Tables | Layout::Stacks(_) | Layout::Points(_));
        is_of_sites && self.key().is_none_or(|key| key.weight() == Measure::Leaked)
    }
}

//! What `mallow report` is asked for.

use super::{Booking, Form};
use crate::args::{LowDirection, LowKey, LowRealloc, LowReport};
use crate::report_events::EventsView;
use mallow_view::{Direction, Filter, Measure, Shown, SortKey, TreeOptions};
use std::path::PathBuf;

/// The part of the whole tree below which its branches are folded: 1 %.
const THRESHOLD_PPM: u32 = 10_000;
/// Branches above one another that still leave room for names in 80 columns.
const TEXT_DEPTH: usize = 16;
/// What a parser of JSON can be expected to follow.
const JSON_DEPTH: usize = 60;

/// Show a profile.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) file: PathBuf,
    pub(crate) booking: Booking,
    pub(crate) form: Form,
    pub(crate) suppressions: Suppressions,
    pub(crate) view: ReportView,
    pub(crate) events: EventsView,
}

/// Where suppressions come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suppressions {
    pub(crate) files: Vec<PathBuf>,
    /// Whether those that the recorded executable carries count too.
    pub(crate) embedded: bool,
}

/// Which part of a profile is shown, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportView {
    pub(crate) layout: Layout,
    pub(crate) limit: Option<usize>,
    pub(crate) shown: Shown,
    pub(crate) filter: Filter,
    /// Operations that the program did, to divide by.
    pub(crate) per: Option<u64>,
}

/// How sites are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The totals, and a short table by each measure.
    Tables,
    /// The top sites with one figure and their stacks.
    Stacks(SortKey),
    /// The top sites with all their figures.
    Points(SortKey),
    /// A tree of calls.
    Tree(TreeView),
}

/// A tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeView {
    pub(crate) key: SortKey,
    pub(crate) direction: Direction,
    pub(crate) threshold_ppm: u32,
    pub(crate) depth: usize,
}

impl ReportView {
    /// What a tree in this view shows.
    pub(crate) fn tree_options(&self, tree: TreeView) -> TreeOptions {
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
    /// What sites are sorted by; none where each measure has its own table.
    pub(crate) fn key(self) -> Option<SortKey> {
        match self {
            Layout::Tables => None,
            Layout::Stacks(key) | Layout::Points(key) | Layout::Tree(TreeView { key, .. }) => Some(key),
        }
    }
}

impl From<LowReport> for Report {
    fn from(low: LowReport) -> Self {
        let form = if low.json { Form::Json } else { Form::Text };
        let view = ReportView {
            layout: layout(&low, form),
            limit: low.limit,
            shown: if low.all_frames { Shown::All } else { Shown::without_plumbing(low.plumbing) },
            filter: Filter { function: low.function, module: low.module },
            per: low.per.map(std::num::NonZeroU64::get),
        };
        let booking = match low.realloc {
            LowRealloc::Own => Booking::Own,
            LowRealloc::Origin => Booking::Origin,
        };
        let suppressions = Suppressions { files: low.suppressions, embedded: !low.no_embedded_suppressions };
        Report { file: low.file, booking, form, suppressions, view, events: low.events.into() }
    }
}

fn layout(low: &LowReport, form: Form) -> Layout {
    let sort = low.sort.map(SortKey::from);
    let key = sort.unwrap_or(SortKey::Measure(Measure::Bytes));
    let depth = match form {
        Form::Text => TEXT_DEPTH,
        Form::Json => JSON_DEPTH,
    };
    match low.tree {
        Some(direction) => Layout::Tree(TreeView {
            key,
            direction: match direction {
                LowDirection::Callers => Direction::Callers,
                LowDirection::Callees => Direction::Callees,
            },
            threshold_ppm: low.threshold.unwrap_or(THRESHOLD_PPM),
            depth: low.depth.map_or(depth, |depth| depth as usize),
        }),
        None if low.points => Layout::Points(key),
        None => sort.map_or(Layout::Tables, Layout::Stacks),
    }
}

impl From<LowKey> for SortKey {
    fn from(low: LowKey) -> Self {
        match low {
            LowKey::Allocations => Measure::Allocations.into(),
            LowKey::Bytes => Measure::Bytes.into(),
            LowKey::Peak => Measure::Peak.into(),
            LowKey::Leaked => Measure::Leaked.into(),
            LowKey::Temporary => Measure::Temporary.into(),
            LowKey::Reallocations => SortKey::Reallocations,
            LowKey::PeakBlocks => SortKey::PeakBlocks,
            LowKey::LeakedBlocks => SortKey::LeakedBlocks,
            LowKey::Max => SortKey::Max,
            LowKey::MaxBlocks => SortKey::MaxBlocks,
            LowKey::Size => SortKey::Size,
            LowKey::Lifetime => SortKey::Lifetime,
            LowKey::Rate => SortKey::Rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LowArgs;
    use crate::request::Request;
    use clap::{Parser, ValueEnum};

    #[track_caller]
    fn report(line: &str) -> Report {
        let words = ["mallow", "report", "f"].into_iter().chain(line.split_whitespace());
        match LowArgs::try_parse_from(words).map(Request::from) {
            Ok(Request::Report(report)) => report,
            Ok(other) => panic!("{other:?}"),
            Err(error) => panic!("{error}"),
        }
    }

    fn is_refused(line: &str) -> bool {
        let words = ["mallow", "report", "f"].into_iter().chain(line.split_whitespace());
        LowArgs::try_parse_from(words).is_err()
    }

    #[test]
    fn without_flags_every_table_is_shown() {
        let view = ReportView {
            layout: Layout::Tables,
            limit: None,
            shown: Shown::WithoutPlumbing,
            filter: Filter::default(),
            per: None,
        };
        let suppressions = Suppressions { files: Vec::new(), embedded: true };
        let expected = Report {
            file: "f".into(),
            booking: Booking::Own,
            form: Form::Text,
            suppressions,
            view,
            events: EventsView::default(),
        };
        assert_eq!(report(""), expected);
    }

    #[test]
    fn every_flag_has_its_meaning() {
        let report = report(
            "--sort leaked --limit 3 --all-frames --function a --module b --realloc origin --json --per 11000 \
             --suppressions x --suppressions y --no-embedded-suppressions",
        );
        assert_eq!((report.booking, report.form), (Booking::Origin, Form::Json));
        assert_eq!(report.view.layout, Layout::Stacks(Measure::Leaked.into()));
        assert_eq!((report.view.limit, report.view.per), (Some(3), Some(11_000)));
        assert_eq!(report.view.shown, Shown::All);
        assert_eq!(report.view.filter, Filter { function: Some("a".into()), module: Some("b".into()) });
        let suppressions = Suppressions { files: vec!["x".into(), "y".into()], embedded: false };
        assert_eq!(report.suppressions, suppressions);
    }

    #[test]
    fn layouts() {
        let tree = |line: &str| match report(line).view.layout {
            Layout::Tree(tree) => tree,
            other => panic!("{other:?}"),
        };
        let bytes = SortKey::Measure(Measure::Bytes);
        let plain = TreeView { key: bytes, direction: Direction::Callers, threshold_ppm: 10_000, depth: 16 };
        assert_eq!(tree("--tree"), plain);
        assert_eq!(tree("--tree=callees").direction, Direction::Callees);
        assert_eq!(tree("--tree --json").depth, 60);
        let asked = tree("--tree=callers --sort lifetime --threshold 0.5% --depth 3 --json");
        assert_eq!(asked, TreeView { key: SortKey::Lifetime, threshold_ppm: 5_000, depth: 3, ..plain });
        assert_eq!(tree("--tree --threshold 0").threshold_ppm, 0);
        assert_eq!(report("--points").view.layout, Layout::Points(bytes));
        assert_eq!(report("--points --sort max").view.layout, Layout::Points(SortKey::Max));
        assert_eq!(report("--sort rate").view.layout.key(), Some(SortKey::Rate));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--sort sizes",
            "--tree=down",
            "--tree --points",
            "--threshold 1",
            "--depth 3",
            "--tree --depth 0",
            "--tree --depth 61",
            "--tree --threshold 101%",
            "--tree --threshold -1",
            "--tree --threshold nan",
            "--per 0",
        ] {
            assert!(is_refused(line), "{line}");
        }
    }

    #[test]
    fn the_words_behind_sort_are_those_of_the_keys() {
        let keys: Vec<SortKey> = LowKey::value_variants().iter().map(|low| SortKey::from(*low)).collect();
        assert_eq!(keys, SortKey::ALL);
        for low in LowKey::value_variants() {
            let word = low.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(word.as_deref(), Some(SortKey::from(*low).word()));
        }
    }
}

//! What `mallow report` is asked for.

use crate::args::{LowEvents, LowReport};
use mallow_query::{Detail, EventOptions, ReportRequest, SuppressionRequest};
use mallow_view::{Layout, Measure, ReportOptions, SortKey, TreeLayout};

/// The part of the whole tree below which its branches are folded: 1 %.
const THRESHOLD_PPM: u32 = 10_000;
/// Branches above one another that still leave room for names in 80 columns.
const TEXT_DEPTH: usize = 16;
/// What a parser of JSON can be expected to follow.
const JSON_DEPTH: usize = 60;

impl From<LowReport> for ReportRequest {
    fn from(low: LowReport) -> Self {
        let detail = if low.json { Detail::Document } else { Detail::Page };
        let layout = layout(&low, detail);
        let (shown, filter) = low.filter.into();
        let options = ReportOptions {
            layout,
            limit: low.limit,
            shown,
            filter,
            per: low.per.map(std::num::NonZeroU64::get),
        };
        let suppressions =
            SuppressionRequest { files: low.suppressions, embedded: !low.no_embedded_suppressions };
        let (attribution, events) = (low.realloc, low.events.into());
        ReportRequest { file: low.file, attribution, detail, suppressions, options, events }
    }
}

impl From<LowEvents> for EventOptions {
    fn from(low: LowEvents) -> Self {
        EventOptions {
            timeline: low.timeline,
            histogram: low.histogram,
            threads: low.threads,
            chains: low.chains,
            temporary_within: low.temporary_within,
            short_lived_us: low.short_lived,
            from: low.from,
            to: low.to,
            at: low.at,
            pid: low.pid,
        }
    }
}

fn layout(low: &LowReport, detail: Detail) -> Layout {
    let sort = low.sort;
    let key = sort.unwrap_or(SortKey::Measure(Measure::Bytes));
    let depth = match detail {
        Detail::Page => TEXT_DEPTH,
        Detail::Document => JSON_DEPTH,
    };
    match low.tree {
        Some(direction) => Layout::Tree(TreeLayout {
            key,
            direction,
            threshold_ppm: low.threshold.unwrap_or(THRESHOLD_PPM),
            depth: low.depth.map_or(depth, |depth| depth as usize),
        }),
        None if low.points => Layout::Points(key),
        None => sort.map_or(Layout::Tables, Layout::Stacks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LowArgs;
    use crate::request::Request;
    use clap::Parser;
    use mallow_profile::ReallocAttribution;
    use mallow_view::{Direction, Filter, FrameVisibility};

    #[track_caller]
    fn report(line: &str) -> ReportRequest {
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
        let options = ReportOptions {
            layout: Layout::Tables,
            limit: None,
            shown: FrameVisibility::WithoutPlumbing,
            filter: Filter::default(),
            per: None,
        };
        let suppressions = SuppressionRequest { files: Vec::new(), embedded: true };
        let expected = ReportRequest {
            file: "f".into(),
            attribution: ReallocAttribution::OwnSite,
            detail: Detail::Page,
            suppressions,
            options,
            events: EventOptions::default(),
        };
        assert_eq!(report(""), expected);
    }

    #[test]
    fn every_flag_has_its_meaning() {
        let report = report(
            "--sort leaked --limit 3 --all-frames --function a --module b --realloc origin --json --per 11000 \
             --suppressions x --suppressions y --no-embedded-suppressions",
        );
        assert_eq!((report.attribution, report.detail), (ReallocAttribution::Origin, Detail::Document));
        assert_eq!(report.options.layout, Layout::Stacks(Measure::Leaked.into()));
        assert_eq!((report.options.limit, report.options.per), (Some(3), Some(11_000)));
        assert_eq!(report.options.shown, FrameVisibility::All);
        assert_eq!(report.options.filter, Filter { function: Some("a".into()), module: Some("b".into()) });
        let suppressions = SuppressionRequest { files: vec!["x".into(), "y".into()], embedded: false };
        assert_eq!(report.suppressions, suppressions);
    }

    #[test]
    fn layouts() {
        let tree = |line: &str| match report(line).options.layout {
            Layout::Tree(tree) => tree,
            other => panic!("{other:?}"),
        };
        let bytes = SortKey::Measure(Measure::Bytes);
        let plain =
            TreeLayout { key: bytes, direction: Direction::Callers, threshold_ppm: 10_000, depth: 16 };
        assert_eq!(tree("--tree"), plain);
        assert_eq!(tree("--tree=callees").direction, Direction::Callees);
        assert_eq!(tree("--tree --json").depth, 60);
        let asked = tree("--tree=callers --sort lifetime --threshold 0.5% --depth 3 --json");
        assert_eq!(asked, TreeLayout { key: SortKey::Lifetime, threshold_ppm: 5_000, depth: 3, ..plain });
        assert_eq!(tree("--tree --threshold 0").threshold_ppm, 0);
        assert_eq!(report("--points").options.layout, Layout::Points(bytes));
        assert_eq!(report("--points --sort max").options.layout, Layout::Points(SortKey::Max));
        assert_eq!(report("--sort rate").options.layout.key(), Some(SortKey::Rate));
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
        for key in SortKey::ALL {
            assert_eq!(report(&format!("--sort {}", key.word())).options.layout, Layout::Stacks(key));
        }
    }
}

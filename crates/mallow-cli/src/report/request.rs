//! Interprets the command line of `mallow report`.

use crate::args::{AnyMeasure, AnySort, LowEvents, LowExpression, LowReport, LowWindow, ReportForm};
use crate::destination::Destination;
use mallow_cpu::CpuMetric;
use mallow_query::{CpuWindow, Detail, EventOptions, ReportRequest, SuppressionRequest};
use mallow_view::{
    CpuLayout, Filter, FrameVisibility, FunctionOrder, Layout, Measure, ReportOptions, ScriptFrames, SortKey,
    TreeLayout,
};

/// Branches below this part of the whole tree are collapsed: 1 %.
const THRESHOLD_PPM: u32 = 10_000;
/// The number of nested branches that still leaves room for names in 80 columns.
const TEXT_DEPTH: usize = 16;
/// The depth that JSON parsers can be expected to handle.
const JSON_DEPTH: usize = 60;

/// A request, for either kind of profile.
#[derive(Debug, PartialEq)]
pub(crate) struct ReportCommand {
    /// For a heap profile.
    pub(crate) heap: ReportRequest,
    /// For a CPU profile.
    pub(crate) cpu: CpuRequest,
    /// A flag that has no meaning for a heap profile.
    pub(crate) only_cpu: Option<String>,
    /// Whether a document has each frame once.
    pub(crate) compact: bool,
    /// Only the suppressions that are built in are listed.
    pub(crate) lists_known_leaks: bool,
    pub(crate) output: Destination,
}

/// The request for a CPU profile.
#[derive(Debug, PartialEq)]
pub(crate) struct CpuRequest {
    pub(crate) sort: Option<AnySort>,
    pub(crate) measure: Option<CpuMetric>,
    pub(crate) layout: Option<CpuLayout>,
    pub(crate) window: CpuWindow,
    pub(crate) limit: Option<usize>,
    pub(crate) scripts: ScriptFrames,
    pub(crate) shown: FrameVisibility,
    pub(crate) filter: Filter,
    pub(crate) annotate: Option<String>,
    pub(crate) form: ReportForm,
    /// A flag that has no meaning for a CPU profile.
    pub(crate) only_heap: Option<String>,
}

impl From<LowReport> for ReportCommand {
    fn from(mut low: LowReport) -> Self {
        let (cpu, only_cpu) = (cpu_request(&low), only_cpu(&low));
        let detail = if low.form.form() == ReportForm::Text { Detail::Page } else { Detail::Document };
        let layout = layout(&low, detail);
        // A document has whole stacks; its readers can recognise the interpreter's frames.
        let scripts = match (&low.filter.frames).into() {
            ScriptFrames::Folded if detail == Detail::Document => ScriptFrames::All,
            scripts => scripts,
        };
        // A table shows a part; analyses of single events show a window in their own way.
        let window =
            if has_table(&low) { std::mem::take(&mut low.events.window) } else { LowWindow::default() };
        let part = window.part(LowExpression { filter: low.filter.expression.filter.take() });
        let (shown, filter) = low.filter.into();
        let options = ReportOptions {
            layout,
            limit: low.limit,
            shown,
            filter,
            per: low.per.map(std::num::NonZeroU64::get),
        };
        let suppressions = SuppressionRequest {
            files: low.suppressions,
            embedded: !low.no_embedded_suppressions,
            built_in: !low.no_default_suppressions,
        };
        let (attribution, events) = (low.realloc, low.events.into());
        let lists_known_leaks = low.list_default_suppressions;
        let heap = ReportRequest {
            file: low.file.unwrap_or_default(),
            process: low.process.process,
            attribution,
            detail,
            suppressions,
            part,
            scripts,
            options,
            events,
        };
        let output = low.form.output.into();
        ReportCommand { heap, cpu, only_cpu, compact: low.compact, lists_known_leaks, output }
    }
}

fn cpu_request(low: &LowReport) -> CpuRequest {
    let depth = if low.form.form() == ReportForm::Text { TEXT_DEPTH } else { JSON_DEPTH };
    let layout = match low.tree {
        Some(direction) => Some(CpuLayout::Tree {
            direction,
            threshold_ppm: low.threshold.unwrap_or(THRESHOLD_PPM),
            depth: low.depth.map_or(depth, |depth| depth as usize),
        }),
        None if low.functions.is_some() => low.functions.map(CpuLayout::Functions),
        None if low.peek.is_some() => low.peek.clone().map(CpuLayout::Peek),
        None if low.events.threads => Some(CpuLayout::Threads),
        None if low.events.timeline => Some(CpuLayout::Timeline),
        None => None,
    };
    let filter = &low.filter;
    CpuRequest {
        sort: low.sort,
        measure: match low.measure {
            Some(AnyMeasure::Cpu(metric)) => Some(metric),
            _ => None,
        },
        layout,
        window: CpuWindow {
            from: low.events.window.from,
            to: low.events.window.to,
            process: low.process.process.clone(),
            filter: low.filter.expression.filter.clone(),
        },
        limit: low.limit,
        scripts: (&filter.frames).into(),
        // The innermost frame is the answer, even if it is the allocator.
        shown: if filter.frames.all_frames { FrameVisibility::All } else { FrameVisibility::WithoutStart },
        filter: Filter {
            function: filter.function.clone(),
            module: filter.module.clone(),
            ..Filter::default()
        },
        annotate: low.annotate.clone(),
        form: low.form.form(),
        only_heap: only_heap(low),
    }
}

/// Returns a flag that was typed and has no meaning for a CPU profile.
fn only_heap(low: &LowReport) -> Option<String> {
    if let Some(AnySort::Heap(key)) = low.sort {
        return Some(format!("--metric {}", key.word()));
    }
    if let Some(AnyMeasure::Heap(measure)) = low.measure {
        return Some(format!("--metric {}", measure.word()));
    }
    let events = &low.events;
    let flags = [
        (low.points, "--points"),
        (low.per.is_some(), "--per"),
        (!low.suppressions.is_empty(), "--suppressions"),
        (!low.filter.frames.plumbing.is_empty(), "--plumbing"),
        (low.filter.domain.is_some(), "--domain"),
        (events.histogram, "--histogram"),
        (events.chains, "--chains"),
        (events.temporary_within.is_some(), "--temporary-within"),
        (events.short_lived.is_some(), "--short-lived"),
        (events.window.at.is_some(), "--at"),
    ];
    flags.into_iter().find(|(is_typed, _)| *is_typed).map(|(_, flag)| flag.to_owned())
}

/// Returns a flag that was typed and has no meaning for a heap profile.
fn only_cpu(low: &LowReport) -> Option<String> {
    match low.sort {
        None => {}
        // Each of these has its own metrics.
        Some(AnySort::Heap(key)) if low.events.timeline || low.events.threads => {
            let view = if low.events.timeline { "--timeline" } else { "--threads" };
            return Some(format!("--metric {} beside {view}", key.word()));
        }
        Some(AnySort::Heap(_)) => {}
        Some(other) => return Some(format!("--metric {}", other.word())),
    }
    low.measure.map(|measure| format!("--measure {}", measure.word()))
}

/// Returns whether a flag for a layout of sites was given.
fn has_table(low: &LowReport) -> bool {
    let is_of_functions = low.functions.is_some() || low.peek.is_some() || low.annotate.is_some();
    is_of_functions || low.sort.is_some() || low.tree.is_some() || low.points || low.per.is_some()
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
            from: low.window.from,
            to: low.window.to,
            at: low.window.at,
        }
    }
}

fn layout(low: &LowReport, detail: Detail) -> Layout {
    let sort = match low.sort {
        Some(AnySort::Heap(key)) => Some(key),
        _ => None,
    };
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
        None if low.functions.is_some() || low.peek.is_some() => {
            let by = key.weight();
            let order = low.functions.unwrap_or(FunctionOrder::Own);
            low.peek.clone().map_or(Layout::Functions(by, order), |wanted| Layout::Peek(by, wanted))
        }
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
    use mallow_query::{PartRequest, ProcessChoice};
    use mallow_view::Direction;

    #[track_caller]
    fn report(line: &str) -> ReportRequest {
        let words = ["mallow", "report", "f"].into_iter().chain(line.split_whitespace());
        match LowArgs::try_parse_from(words).map(Request::from) {
            Ok(Request::Report(report)) => report.heap,
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
        let suppressions = SuppressionRequest { files: Vec::new(), embedded: true, built_in: true };
        let expected = ReportRequest {
            file: "f".into(),
            process: None,
            attribution: ReallocAttribution::OwnSite,
            detail: Detail::Page,
            suppressions,
            part: PartRequest::default(),
            scripts: ScriptFrames::Folded,
            options,
            events: EventOptions::default(),
        };
        assert_eq!(report(""), expected);
    }

    #[test]
    fn every_flag_has_its_meaning() {
        let report = report(
            "--sort leaked --limit 3 --all-frames --function a --module b --realloc origin --json --per 11000 \
             --suppressions x --suppressions y --no-embedded-suppressions --no-default-suppressions --process app.py",
        );
        assert_eq!((report.attribution, report.detail), (ReallocAttribution::Origin, Detail::Document));
        assert_eq!(report.options.layout, Layout::Stacks(Measure::Leaked.into()));
        assert_eq!((report.options.limit, report.options.per), (Some(3), Some(11_000)));
        assert_eq!(report.options.shown, FrameVisibility::All);
        assert_eq!(
            report.options.filter,
            Filter { function: Some("a".into()), module: Some("b".into()), ..Filter::default() }
        );
        let suppressions =
            SuppressionRequest { files: vec!["x".into(), "y".into()], embedded: false, built_in: false };
        assert_eq!(report.suppressions, suppressions);
        assert_eq!(report.scripts, ScriptFrames::All);
        assert_eq!(report.process, Some(ProcessChoice::Named("app.py".into())));
    }

    #[test]
    fn documents_have_whole_stacks_unless_lines_of_scripts_are_not_wanted() {
        for (line, scripts) in [
            ("", ScriptFrames::Folded),
            ("--json", ScriptFrames::All),
            ("--native --json", ScriptFrames::LeftOut),
            ("--native --all-frames", ScriptFrames::LeftOut),
        ] {
            assert_eq!(report(line).scripts, scripts, "{line}");
        }
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
            assert_eq!(report(&format!("--metric {}", key.word())).options.layout, Layout::Stacks(key));
        }
    }
}

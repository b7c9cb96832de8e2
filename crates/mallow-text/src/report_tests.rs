//! Reports as they are shown.

use super::*;
use insta::assert_snapshot;
use mallow_profile::{Availability, Suppression};
use mallow_samples::profile as sample;
use mallow_view::TreeLayout;
use mallow_view::{AppliedSuppressions, Direction, FrameVisibility, Origin};
use std::path::Path;

fn of(layout: Layout) -> ReportOptions {
    let filter = Filter::default();
    ReportOptions { layout, limit: None, shown: FrameVisibility::WithoutPlumbing, filter, per: None }
}

fn view(sort: Option<Measure>) -> ReportOptions {
    of(sort.map_or(Layout::Tables, |measure| Layout::Stacks(measure.into())))
}

fn tree(key: impl Into<SortKey>, direction: Direction) -> TreeLayout {
    TreeLayout { key: key.into(), direction, threshold_ppm: 10_000, depth: 12 }
}

#[track_caller]
fn text(profile: &Profile, view: &ReportOptions) -> String {
    text_of(profile, sample::TRACE, &AppliedSuppressions::default(), view)
}

#[track_caller]
fn text_of(
    profile: &Profile,
    origin: Origin,
    suppressions: &AppliedSuppressions,
    view: &ReportOptions,
) -> String {
    let file = Path::new("/srv/profiles/app.out");
    let text =
        report(&Subject { profile, file, origin, suppressions, leaks: None, part: None }, view, Style::PLAIN);
    if view.shown != FrameVisibility::All {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

#[test]
fn all_tables_of_a_leaky_c_program() {
    assert_snapshot!(text(&sample::leaky_c(), &view(None)));
}

#[test]
fn rules_that_are_built_in_are_told_by_what_they_are_for() {
    let mut profile = sample::leaky_c();
    for location in &mut profile.stacks.locations {
        for frame in location.frames.iter_mut().filter(|frame| frame.function == "load_field") {
            (frame.function, frame.module) = ("setlocale".into(), Some("/lib/libc.so.6".into()));
        }
    }
    let mut applied = AppliedSuppressions::default();
    applied.add_known();
    let mut warnings = Vec::new();
    applied.take(&mut profile, &mut warnings);
    assert_eq!(warnings, [""; 0]);
    let text = text_of(&profile, sample::TRACE, &applied, &view(Some(Measure::Leaked)));
    assert!(
        text.contains("\nsuppressed: 2 sites, 1.11 KiB in 8 blocks by buffers of stdio (1), the local"),
        "{text}"
    );
    assert!(!text.contains("setlocale"), "{text}");
}

#[test]
fn leaks_of_a_leaky_c_program() {
    assert_snapshot!(text(&sample::leaky_c(), &view(Some(Measure::Leaked))));
}

#[test]
fn allocations_of_a_rust_program_without_plumbing() {
    assert_snapshot!(text(&sample::rust(), &view(Some(Measure::Allocations))));
}

#[test]
fn allocations_of_a_rust_program_with_all_frames() {
    let all =
        ReportOptions { shown: FrameVisibility::All, limit: Some(1), ..view(Some(Measure::Allocations)) };
    assert_snapshot!(text(&sample::rust(), &all));
}

#[test]
fn all_tables_of_python_with_children() {
    assert_snapshot!(text(&sample::python(), &view(None)));
}

#[test]
fn a_limit_tells_what_is_not_shown() {
    assert_snapshot!(text(
        &sample::python(),
        &ReportOptions { limit: Some(1), ..view(Some(Measure::Temporary)) }
    ));
}

#[test]
fn a_filter_tells_its_share() {
    let filter =
        Filter { function: Some("encoder".into()), module: Some("_json".into()), ..Filter::default() };
    assert_snapshot!(text(
        &sample::python(),
        &ReportOptions { filter, limit: Some(1), ..view(Some(Measure::Bytes)) }
    ));
}

/// A name that matches nothing does not rule out functions without names.
#[test]
fn a_filter_that_nothing_passes_says_so() {
    let mut profile = sample::leaky_c();
    for frame in profile.stacks.locations.iter_mut().flat_map(|location| &mut location.frames) {
        if frame.module.as_deref().is_some_and(|path| !path.contains("libc")) {
            frame.function = String::from("0x1139");
        }
    }
    let filter = Filter { function: Some("nope".into()), ..Filter::default() };
    for measure in [None, Some(Measure::Bytes)] {
        let text = text(&profile, &ReportOptions { filter: filter.clone(), ..view(measure) });
        assert!(text.contains("\nsites with function \"nope\": none\nNot one of "), "{text}");
        assert!(text.contains("\nNo names for functions of "), "{text}");
        assert!(!text.contains("0.0%"), "{text}");
    }
}

#[test]
fn a_program_that_allocates_nothing() {
    assert_snapshot!(text(&sample::nothing(), &view(None)));
    assert_snapshot!("nothing_leaked", text(&sample::nothing(), &view(Some(Measure::Leaked))));
}

#[test]
fn deep_stacks_are_cut_in_the_middle() {
    assert_snapshot!(text(&sample::deep(), &view(Some(Measure::Bytes))));
}

#[test]
fn points_of_a_rust_program() {
    assert_snapshot!(text(&sample::rust(), &of(Layout::Points(Measure::Allocations.into()))));
}

#[test]
fn points_by_lifetime_of_a_leaky_c_program() {
    let view = ReportOptions { limit: Some(2), ..of(Layout::Points(SortKey::Lifetime)) };
    assert_snapshot!(text(&sample::leaky_c(), &view));
}

#[test]
fn callers_of_a_rust_program() {
    let layout = Layout::Tree(tree(Measure::Allocations, Direction::Callers));
    assert_snapshot!(text(&sample::rust(), &of(layout)));
}

#[test]
fn callees_of_a_leaky_c_program() {
    let layout = Layout::Tree(tree(Measure::Bytes, Direction::Callees));
    assert_snapshot!(text(&sample::leaky_c(), &of(layout)));
}

#[test]
fn a_tree_that_is_cut_at_its_depth_and_its_limit() {
    let view = TreeLayout { depth: 1, threshold_ppm: 0, ..tree(Measure::Bytes, Direction::Callees) };
    assert_snapshot!(text(&sample::leaky_c(), &of(Layout::Tree(view))));
    let narrow = Layout::Tree(TreeLayout { depth: 12, ..view });
    assert_snapshot!(
        "narrow_tree",
        text(&sample::leaky_c(), &ReportOptions { limit: Some(1), ..of(narrow) })
    );
}

#[test]
fn deep_stacks_in_a_tree() {
    let layout = Layout::Tree(tree(Measure::Bytes, Direction::Callers));
    assert_snapshot!(text(&sample::deep(), &of(layout)));
}

#[test]
fn other_metrics_to_sort_by() {
    for key in [SortKey::Max, SortKey::MaxBlocks, SortKey::Size, SortKey::Lifetime, SortKey::Rate] {
        let view = ReportOptions { limit: Some(1), ..of(Layout::Stacks(key)) };
        let name = format!("sorted_by_{}", key.word());
        assert_snapshot!(name, text(&sample::leaky_c(), &view));
    }
}

#[test]
fn suppressed_leaks_leave_the_tables_and_stay_in_the_totals() {
    let mut profile = sample::leaky_c();
    let mut applied = AppliedSuppressions::default();
    applied.add("known".into(), false, Suppression::parse("leak:^load_field$\nleak:printf\n").unwrap());
    applied.take(&mut profile, &mut Vec::new());
    let text = |view: &ReportOptions| text_of(&profile, sample::TRACE, &applied, view);
    assert_snapshot!("suppressed_leaks", text(&view(Some(Measure::Leaked))));
    assert_snapshot!("suppressed_in_tables", text(&view(None)));
    let filter = Filter { function: Some("printf".into()), ..Filter::default() };
    let only = ReportOptions { filter, ..view(Some(Measure::Leaked)) };
    assert_snapshot!("all_suppressed", text(&only));
}

#[test]
fn metrics_per_operation() {
    let per = |layout| ReportOptions { per: Some(37_449), limit: Some(2), ..of(layout) };
    assert_snapshot!("per_operation", text(&sample::rust(), &per(Layout::Tables)));
    let points = Layout::Points(Measure::Allocations.into());
    assert_snapshot!("points_per_operation", text(&sample::rust(), &per(points)));
}

/// 231,000 allocations in 11 runs of 1,000 operations are 21 for each.
#[test]
fn the_example_of_the_guide() {
    assert_eq!(per_operation(Measure::Allocations, 231_000, 11_000), "21.000");
    assert_eq!(per_operation(Measure::Bytes, 231_000, 11_000), "21.0 B");
    assert_eq!(per_operation(Measure::Bytes, 231_000_000, 11_000), "20.5 KiB");
    assert_eq!(per_operation(Measure::Allocations, 12_345_678, 1_000), "12,345.678");
    assert_eq!(per_operation(Measure::Allocations, u64::MAX, 1), "18.4 E");
}

#[test]
fn what_another_tool_did_not_tell_is_left_out() {
    let dhat = sample::dhat();
    let shown = |layout| text_of(&dhat, sample::DHAT, &AppliedSuppressions::default(), &of(layout));
    assert_snapshot!("dhat", shown(Layout::Tables));
    assert_snapshot!("dhat_points", shown(Layout::Points(Measure::Bytes.into())));
    assert_snapshot!("dhat_temporary", shown(Layout::Stacks(Measure::Temporary.into())));
    let accessed = sample::accessed();
    let shown = |layout| text_of(&accessed, sample::DHAT, &AppliedSuppressions::default(), &of(layout));
    assert_snapshot!("dhat_accesses", shown(Layout::Tables));
    assert_snapshot!("dhat_accesses_points", shown(Layout::Points(SortKey::Writes)));
    assert_snapshot!("dhat_accesses_unused", shown(Layout::Stacks(SortKey::Unused)));
    let mut folded = sample::dhat();
    folded.known = Availability { allocations: true, ..Availability::NOTHING };
    folded.processes[0].totals.bytes = 0;
    folded.sites.iter_mut().for_each(|site| site.totals.bytes = 0);
    folded.recording = Default::default();
    let view = of(Layout::Tables);
    let applied = AppliedSuppressions::default();
    assert_snapshot!("folded", text_of(&folded, sample::FOLDED, &applied, &view));
    let of_stdin = Subject {
        profile: &folded,
        file: Path::new("-"),
        origin: sample::FOLDED,
        suppressions: &applied,
        leaks: None,
        part: None,
    };
    let of_stdin = report(&of_stdin, &view, Style::PLAIN);
    assert!(of_stdin.starts_with("a program that is not named: file of folded stacks\n"), "{of_stdin}");
}

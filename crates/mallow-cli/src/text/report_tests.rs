//! Reports as people see them.

use super::*;
use crate::sample;
use insta::assert_snapshot;

fn view(sort: Option<Measure>) -> ReportView {
    ReportView { sort, limit: None, shown: Shown::WithoutPlumbing, filter: Filter::default() }
}

#[track_caller]
fn text(profile: &Profile, view: &ReportView) -> String {
    let text = report(profile, view, Style::PLAIN);
    if view.shown != Shown::All {
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
fn leaks_of_a_leaky_c_program() {
    assert_snapshot!(text(&sample::leaky_c(), &view(Some(Measure::Leaked))));
}

#[test]
fn allocations_of_a_rust_program_without_plumbing() {
    assert_snapshot!(text(&sample::rust(), &view(Some(Measure::Allocations))));
}

#[test]
fn allocations_of_a_rust_program_with_all_frames() {
    let all = ReportView { shown: Shown::All, limit: Some(1), ..view(Some(Measure::Allocations)) };
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
        &ReportView { limit: Some(1), ..view(Some(Measure::Temporary)) }
    ));
}

#[test]
fn a_filter_tells_its_share() {
    let filter = Filter { function: Some("encoder".into()), module: Some("_json".into()) };
    assert_snapshot!(text(
        &sample::python(),
        &ReportView { filter, limit: Some(1), ..view(Some(Measure::Bytes)) }
    ));
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

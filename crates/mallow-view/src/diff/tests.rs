//! Sections, and that they add up to the totals.

use super::*;
use crate::example::{allocated, frame, profile, site};
use mallow_profile::{Availability, Profile};

fn stack(names: &[&str]) -> Vec<Vec<Frame>> {
    names.iter().map(|name| vec![frame(name, "/usr/bin/app")]).collect()
}

fn made(sites: &[(&[&str], u64)]) -> Profile {
    let mut profile = profile();
    for (names, allocations) in sites {
        site(&mut profile, 0, &stack(names), allocated(*allocations, allocations * 10));
    }
    profile
}

fn rows(comparison: &Comparison<'_>) -> Vec<(Section, String, i128)> {
    let name = |row: &DiffRow<'_>| {
        let side = row.after.as_ref().or(row.before.as_ref());
        side.and_then(|side| side.frames.first()).map_or(String::new(), |frame| frame.function.clone())
    };
    comparison
        .rows
        .iter()
        .map(|row| (row.section, name(row), row.change(comparison.by).difference()))
        .collect()
}

#[track_caller]
fn adds_up(comparison: &Comparison<'_>) {
    let mut sum = comparison.hidden.change;
    sum.add(comparison.unchanged.change);
    comparison.rows.iter().for_each(|row| sum.add(row.change(comparison.by)));
    assert_eq!(Some(sum), comparison.total(comparison.by));
}

#[test]
fn sites_stand_in_the_section_that_their_metrics_say() {
    let before =
        made(&[(&["a", "main"], 10), (&["b", "main"], 20), (&["c", "main"], 5), (&["d", "p", "main"], 7)]);
    let after = made(&[
        (&["a", "main"], 10),
        (&["b", "main"], 25),
        (&["x", "y", "main"], 400),
        (&["d", "p", "q", "main"], 7),
    ]);
    let comparison = Comparison::of(&before, &after, &DiffOptions::default());
    let expected = [
        (Section::New, "x".to_owned(), 400),
        (Section::Gone, "c".to_owned(), -5),
        (Section::Changed, "b".to_owned(), 5),
        (Section::Moved, "d".to_owned(), 0),
    ];
    assert_eq!(rows(&comparison), expected);
    assert_eq!(comparison.unchanged.sites, 1);
    assert_eq!(comparison.total(Measure::Bytes), Some(Change { before: 420, after: 4420 }));
    adds_up(&comparison);
}

/// `run` is new, `try_main` is gone, and what is in between was on other stacks before.
#[test]
fn adapters_of_the_standard_library_between_a_caller_and_its_callee_make_no_new_site() {
    let [and_then, call_once] = ["core::result::Result::and_then", "core::ops::function::FnOnce::call_once"];
    let read = ["read", "search", and_then, call_once, "rg::main"];
    let called = ["search", "run", and_then, call_once, "rg::main"];
    let others: [(&[&str], u64); 3] =
        [(&["walk", "search", "rg::main"], 5), (&["open", "search", "rg::main"], 6), (&read, 9)];
    let (mut before, mut after) = (others.to_vec(), others.to_vec());
    before.push((&["search", "try_main", "rg::main"], 210));
    after.push((&called, 210));
    let [before, same] = [made(&before), made(&after)];
    let comparison = Comparison::of(&before, &same, &DiffOptions::default());
    assert_eq!(rows(&comparison), [(Section::Moved, "search".to_owned(), 0)]);
    // Another figure is another use of the function.
    after.last_mut().unwrap().1 = 3_000;
    let after = made(&after);
    let comparison = Comparison::of(&before, &after, &DiffOptions::default());
    let expected = [(Section::New, "search".to_owned(), 3_000), (Section::Gone, "search".to_owned(), -210)];
    assert_eq!(rows(&comparison), expected);
    adds_up(&comparison);
}

#[test]
fn what_is_hidden_is_counted() {
    let before = made(&[(&["a", "main"], 10), (&["parse", "main"], 20)]);
    let after = made(&[(&["a", "main"], 12), (&["parse", "main"], 120), (&["c", "main"], 50)]);
    let min = Comparison::of(&before, &after, &DiffOptions { min: 50, ..DiffOptions::default() });
    assert_eq!(rows(&min).len(), 2);
    assert_eq!((min.hidden.sites, min.hidden.change), (1, Change { before: 10, after: 12 }));
    adds_up(&min);
    let filter = DiffOptions { filter: "parse".parse().ok(), ..DiffOptions::default() };
    let filtered = Comparison::of(&before, &after, &filter);
    assert_eq!(rows(&filtered), [(Section::Changed, "parse".to_owned(), 100),]);
    assert_eq!(filtered.hidden.sites, 2);
    adds_up(&filtered);
    let library = DiffOptions { filter: "bin/app".parse().ok(), ..DiffOptions::default() };
    assert_eq!(rows(&Comparison::of(&before, &after, &library)).len(), 3);
}

#[test]
fn depth_makes_sites_of_the_innermost_frames() {
    let before = made(&[(&["a", "p", "main"], 10), (&["a", "q", "main"], 20)]);
    let after = made(&[(&["a", "p", "main"], 20), (&["a", "q", "main"], 10)]);
    let whole = Comparison::of(&before, &after, &DiffOptions::default());
    assert_eq!(rows(&whole).len(), 2);
    let cut = Comparison::of(&before, &after, &DiffOptions { depth: Some(1), ..DiffOptions::default() });
    assert_eq!(rows(&cut), []);
    assert_eq!((cut.unchanged.sites, cut.unchanged.change), (1, Change { before: 30, after: 30 }));
    adds_up(&cut);
}

#[test]
fn plumbing_does_not_make_a_difference() {
    let before = made(&[(&["operator new", "std::vector<int>::push_back", "load", "main"], 10)]);
    let after = made(&[(&["malloc", "operator new", "load", "main"], 10)]);
    assert_eq!(rows(&Comparison::of(&before, &after, &DiffOptions::default())), []);
    let all = DiffOptions { shown: FrameVisibility::All, ..DiffOptions::default() };
    assert_ne!(rows(&Comparison::of(&before, &after, &all)), []);
}

#[test]
fn what_a_side_does_not_know_is_left_out_and_named() {
    let mut before = made(&[(&["a"], 10)]);
    before.known = Availability { leaked: false, temporary: false, ..Availability::ALL };
    let mut after = made(&[(&["a"], 10)]);
    after.known.temporary = false;
    let comparison = Comparison::of(&before, &after, &DiffOptions::default());
    let known: Vec<&str> = comparison.totals.iter().map(|(measure, _)| measure.word()).collect();
    assert_eq!(known, ["allocations", "bytes", "peak"]);
    let leaked = Unknown { measure: Measure::Leaked, before: false, after: true };
    assert_eq!(comparison.unknown[0], leaked);
    assert_eq!(comparison.unknown.len(), 2);
    let limit: Limit = "leaked>0".parse().unwrap();
    assert_eq!(limit.judge(&comparison, std::num::NonZeroU64::MIN), None);
}

#[test]
fn totals_without_sites_are_a_site_of_their_own() {
    let before = made(&[(&["a"], 10)]);
    let mut after = made(&[(&["a"], 10)]);
    after.processes[0].totals.allocations += 90;
    let comparison = Comparison::of(&before, &after, &DiffOptions::default());
    assert_eq!(rows(&comparison), [(Section::New, String::new(), 90)]);
    adds_up(&comparison);
}

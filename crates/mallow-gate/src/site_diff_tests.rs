//! Sites found again after lines, names and folders changed; what a full table does not tell.

use super::*;
use crate::baseline::{LeftOut, SITES_MAX};
use crate::sample::{baseline, frame, of_runs, run, site};

fn before(sites: Vec<Site>) -> Baseline {
    baseline(&of_runs(Some(1000), vec![run(sites)]))
}

/// Function, allocations before and after.
fn change_list(changes: &[SiteChange]) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let allocations = |side: Option<Metrics>| side.map(|metrics| metrics.allocations);
    changes
        .iter()
        .map(|change| {
            (change.frames[0].function.as_str(), allocations(change.before), allocations(change.after))
        })
        .collect()
}

#[test]
fn the_largest_change_comes_first_and_what_is_the_same_is_not_told() {
    let before = before(vec![site("same", 1, 500, 0), site("less", 2, 40, 0), site("gone", 3, 7, 0)]);
    let now = run(vec![site("new", 4, 1000, 0), site("less", 2, 10, 0), site("same", 1, 500, 0)]);
    let changes = changes(&before, &now, Metric::Allocations);
    assert_eq!(
        change_list(&changes),
        [("new", None, Some(1000)), ("less", Some(40), Some(10)), ("gone", Some(7), None)]
    );
}

#[test]
fn moved_lines_and_other_folders_are_no_change() {
    let before = before(vec![site("grow", 88, 1000, 0)]);
    let mut moved = site("grow", 93, 1000, 0);
    moved.frames[0].file = Some("/srv/other/checkout/src/buf.c".to_owned());
    moved.frames[0].module = Some("/srv/other/bench".to_owned());
    assert_eq!(changes(&before, &run(vec![moved.clone()]), Metric::Allocations), []);
    moved.metrics.allocations = 2000;
    let changes = changes(&before, &run(vec![moved]), Metric::Allocations);
    assert_eq!(change_list(&changes), [("grow", Some(1000), Some(2000))]);
    assert!(changes[0].exact);
    assert_eq!(changes[0].frames[0].line, Some(93), "the line of today");
    assert_eq!(changes[0].frames[0].file.as_deref(), Some("/srv/other/checkout/src/buf.c"));
}

#[test]
fn another_caller_between_is_alike_and_not_exact() {
    let long = |middle: &[&str]| {
        let mut site = site("grow", 88, 1000, 0);
        let frames = middle.iter().map(|name| frame(name, "/srv/demo/src/buf.c", 20));
        site.frames.splice(1..1, frames);
        site
    };
    let before = before(vec![long(&["push", "encode"])]);
    let mut now = long(&["push", "encode_all", "encode"]);
    now.metrics.allocations = 1500;
    let changes = changes(&before, &run(vec![now]), Metric::Allocations);
    assert_eq!(change_list(&changes), [("grow", Some(1000), Some(1500))]);
    assert!(!changes[0].exact);
}

#[test]
fn the_failing_metric_decides_the_order() {
    let before = before(vec![site("count", 1, 100, 0), site("leak", 2, 100, 0)]);
    let now = run(vec![site("count", 1, 150, 0), site("leak", 2, 100, 10)]);
    let by = |metric| changes(&before, &now, metric)[0].frames[0].function.clone();
    assert_eq!(by(Metric::Remaining), "leak");
    assert_eq!(by(Metric::Allocations), "count");
}

#[test]
fn a_small_new_site_may_have_been_left_out_before() {
    let full = |count: u32| (0..count).map(|line| site("f", line + 1, 100, 0)).collect::<Vec<_>>();
    let mut before = before(full(3));
    let small = run([full(3), vec![site("small", 900, 100, 0), site("leaks", 901, 1, 1)]].concat());
    let names = |changes: Vec<SiteChange>| {
        changes.into_iter().map(|change| change.frames[0].function.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(changes(&before, &small, Metric::Allocations)), ["small", "leaks"]);
    before.left_out = LeftOut { sites: 1, allocations: 100 };
    assert_eq!(names(changes(&before, &small, Metric::Allocations)), ["leaks"], "what leaks always had room");
    assert_eq!(SITES_MAX, 200);
}

#[test]
fn what_was_left_is_sorted_and_descriptors_count() {
    let mut socket = site("socket", 5, 0, 0);
    socket.metrics.descriptors = 3;
    let left = left(&run(vec![site("a", 1, 9, 0), site("b", 2, 9, 2), socket, site("c", 3, 9, 4)]));
    let names: Vec<&str> = left.iter().map(|site| site.frames[0].function.as_str()).collect();
    assert_eq!(names, ["c", "socket", "b"]);
}

/// Of two calls in one function the nearer one was there before, and the other one is the line to blame.
#[test]
fn of_two_calls_the_one_that_is_nearer_is_the_old_one() {
    let call = |line, outer| {
        let mut site = site("grow", 88, 1000, 0);
        let at = "/srv/demo/src/buf.c";
        site.frames = vec![frame("grow", at, 88), frame("parse", at, line), frame("main", at, outer)];
        site
    };
    let before = before(vec![call(8, 20)]);
    for (old, new, outer) in [(8, 9, 21), (10, 11, 23)] {
        for now in [vec![call(old, outer), call(new, outer)], vec![call(new, outer), call(old, outer)]] {
            let changes = changes(&before, &run(now), Metric::Allocations);
            assert_eq!(change_list(&changes), [("grow", None, Some(1000))]);
            assert_eq!(changes[0].frames[1].line, Some(new));
            assert_eq!(changes[0].blamed, Some(1), "{changes:?}");
        }
    }
}

//! Order, sums and which stacks are one.

use super::*;
use mallow_gate::measurement::{Environment, Site};
use mallow_gate::result::{SiteChange, VaryingSite, Window};

fn frames(names: &str) -> Vec<Frame> {
    names.split(' ').map(|name| Frame { function: name.to_owned(), ..Frame::default() }).collect()
}

fn test(name: &str, outcome: Outcome) -> TestResult {
    TestResult { sentences: Vec::new(), ..TestResult::unmeasured(name, outcome, String::new()) }
}

fn result(outcomes: &[Outcome]) -> CheckResult {
    CheckResult {
        tests: outcomes.iter().enumerate().map(|(at, outcome)| test(&at.to_string(), *outcome)).collect(),
        environment: Environment::default(),
        sentences: Vec::new(),
        update_command: String::new(),
        folder: "/srv".into(),
    }
}

fn judged(metric: Metric, position: Position) -> Conclusion {
    let spread = Spread { min: 5, mode: 5, max: 5, at_min: 10, runs: 10 };
    Conclusion { metric, spread, reference: Some(4), window: Some(Window { min: 4, max: 4 }), position }
}

fn change(names: &str, before: Option<u64>, after: Option<u64>, exact: bool) -> SiteChange {
    let metrics = |allocations| Metrics { allocations, bytes: allocations * 8, ..Metrics::default() };
    SiteChange {
        frames: frames(names),
        before: before.map(metrics),
        after: after.map(metrics),
        exact,
        blamed: None,
    }
}

fn names(frames: &[&Frame]) -> String {
    frames.iter().map(|frame| frame.function.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_worst_stands_first_and_equals_keep_their_order() {
    let result = result(&[Outcome::Ok, Outcome::Regressed, Outcome::Error, Outcome::Ok, Outcome::Regressed]);
    let order: Vec<&str> = worst_first(&result).iter().map(|test| test.name.as_str()).collect();
    assert_eq!(order, ["2", "1", "4", "0", "3"]);
    assert_eq!(stats(&result), [(Outcome::Error, 1), (Outcome::Regressed, 2), (Outcome::Ok, 2)]);
}

#[test]
fn what_is_above_decides_before_what_is_below() {
    let mut test = test("t", Outcome::Regressed);
    test.conclusions =
        vec![judged(Metric::Allocations, Position::Below), judged(Metric::Remaining, Position::Within)];
    assert_eq!(deciding(&test), [&test.conclusions[0]]);
    assert_eq!(site_metrics(&test), [Metric::Allocations]);
    test.conclusions.push(judged(Metric::Descriptors, Position::Above));
    assert_eq!(deciding(&test), [&test.conclusions[2]]);
    assert_eq!(site_metrics(&test), [Metric::Descriptors]);
    assert_eq!(conclusion(&test, Metric::Peak), None);
}

#[test]
fn stacks_are_listed_by_the_count_and_by_bytes_only_without_it() {
    let mut test = test("t", Outcome::Regressed);
    let metrics = |list: &[Metric]| -> Vec<Conclusion> {
        list.iter().map(|metric| judged(*metric, Position::Above)).collect()
    };
    test.conclusions = metrics(&Metric::ALL);
    assert_eq!(
        site_metrics(&test),
        [Metric::Allocations, Metric::Remaining, Metric::Descriptors, Metric::Temporary]
    );
    test.conclusions = metrics(&[Metric::Bytes, Metric::Peak, Metric::RemainingBytes]);
    assert_eq!(site_metrics(&test), [Metric::Bytes, Metric::RemainingBytes]);
    test.conclusions = metrics(&[Metric::Peak]);
    assert_eq!(site_metrics(&test), [Metric::Bytes]);
    test.conclusions.clear();
    assert_eq!(site_metrics(&test), [Metric::Allocations]);
}

#[test]
fn changes_that_look_the_same_are_one_and_the_totals_are_complete() {
    let mut test = test("t", Outcome::Regressed);
    test.changes = vec![
        change("malloc grow main _start", None, Some(700), false),
        change("realloc grow main _start", Some(100), Some(400), true),
        change("gone main", Some(1000), None, false),
        change("same main", Some(9), Some(9), true),
        change("moved main", Some(5), Some(8), false),
        change("few main", Some(8), Some(6), true),
    ];
    let all = changes(&test, Metric::Allocations, 10);
    let rows: Vec<(String, i128, bool)> =
        all.rows.iter().map(|row| (names(&row.frames), row.difference(), row.exact)).collect();
    let expected = [
        ("grow main".to_owned(), 1000, true),
        ("gone main".to_owned(), -1000, true),
        ("moved main".to_owned(), 3, false),
        ("few main".to_owned(), -2, true),
    ];
    assert_eq!((rows.as_slice(), all.more, all.more_difference), (&expected[..], 0, 0));
    let two = changes(&test, Metric::Allocations, 2);
    assert_eq!((two.rows.as_slice(), two.more, two.more_difference), (&all.rows[..2], 2, 1));
    assert_eq!(changes(&test, Metric::Bytes, 1).rows[0].difference(), 8000);
    assert_eq!(changes(&test, Metric::Remaining, 10).rows, []);
}

#[test]
fn what_is_left_is_sorted_and_summed_up() {
    let mut test = test("t", Outcome::Regressed);
    let site = |names: &str, blocks, bytes, descriptors| Site {
        frames: frames(names),
        metrics: Metrics {
            remaining_blocks: blocks,
            remaining_bytes: bytes,
            descriptors,
            ..Metrics::default()
        },
    };
    test.left = vec![
        site("open connect main", 0, 0, 3),
        site("malloc cache main", 2, 64, 0),
        site("calloc cache main", 5, 40, 0),
        site("malloc table main", 1, 4096, 0),
        site("nothing main", 0, 0, 0),
    ];
    let left = left(&test, 1, <[_]>::to_vec);
    let rows: Vec<(String, u64, u64, u64)> =
        left.rows.iter().map(|row| (names(&row.frames), row.blocks, row.bytes, row.descriptors)).collect();
    assert_eq!(rows, [("cache main".to_owned(), 7, 104, 0)]);
    assert_eq!((left.more, left.more_blocks, left.more_bytes, left.more_descriptors), (2, 1, 4096, 3));
}

#[test]
fn varying_sites_keep_their_order() {
    let mut test = test("t", Outcome::Flaky);
    let allocations = Spread { min: 1, mode: 2, max: 9, at_min: 2, runs: 20 };
    test.varying = ["malloc race main", "late main", "rare main"]
        .map(|names| VaryingSite { frames: frames(names), allocations })
        .to_vec();
    let (rows, more) = varying(&test, 2, <[_]>::to_vec);
    assert_eq!(rows.iter().map(|row| names(&row.frames)).collect::<Vec<_>>(), ["race main", "late main"]);
    assert_eq!(more, 1);
}

#[test]
fn the_loop_that_runs_a_region_is_left_out() {
    let shown = |frames: &[Frame]| names(&visible(frames, &[]));
    assert_eq!(shown(&frames("malloc encode run mallow_measure main _start")), "encode run main");
    assert_eq!(shown(&frames("malloc run mallow_markers::measure app::main")), "run app::main");
    assert_eq!(shown(&frames("malloc mallow_measure")), "mallow_measure");
    let mut python = frames("encode measure <module>");
    python[1].file = Some("mallow/python/mallow/__init__.py".into());
    assert_eq!(shown(&python), "encode <module>");
    python[1].file = Some("src/mallow.hpp".into());
    assert_eq!(shown(&python), "encode measure <module>");
}

#[test]
fn the_line_to_blame_is_of_nobodys_plumbing() {
    let mut test = test("t", Outcome::Regressed);
    let own = |mut change: SiteChange| {
        change.frames.iter_mut().for_each(|frame| frame.module = Some("/srv/bench".to_owned()));
        change
    };
    let new = |names: &str, blamed| SiteChange { blamed, ..own(change(names, None, Some(5), true)) };
    for (names, blamed, expected) in [
        ("malloc alloc::vec::Vec::push parse main", Some(1), "parse"),
        ("malloc fill core::iter::fold parse main", Some(2), "parse"),
        ("malloc fill core::iter::fold parse main", Some(1), "fill"),
        ("malloc wrapper parse main", Some(2), "parse"),
        ("malloc wrapper parse main", None, "wrapper"),
    ] {
        test.changes = vec![new(names, blamed)];
        let all = changes(&test, Metric::Allocations, 10);
        assert_eq!(all.rows[0].frames[all.rows[0].blamed].function, expected, "{names} {blamed:?}");
    }
}

#[test]
fn own_plumbing_is_passed_wherever_a_stack_is_shown_or_a_line_blamed() {
    let mut result = result(&[Outcome::Regressed]);
    let test = &mut result.tests[0];
    test.plumbing = vec!["my_*".to_owned(), "dup".to_owned()];
    for (names_of, blamed, shown, line) in [
        // On the leaf side it is not shown at all.
        ("malloc my_raw my_alloc parse main", Some(2), "parse main", "parse"),
        ("malloc my_raw my_alloc parse main", None, "parse main", "parse"),
        // Further out it is shown, and its caller is blamed.
        ("malloc fill dup my_alloc parse main", Some(2), "fill dup my_alloc parse main", "parse"),
        ("malloc fill dup parse main", Some(1), "fill dup parse main", "fill"),
    ] {
        let mut change = SiteChange { blamed, ..change(names_of, None, Some(5), true) };
        change.frames.iter_mut().for_each(|frame| frame.module = Some("/srv/bench".to_owned()));
        result.tests[0].changes = vec![change];
        settle_blame(&mut result);
        let test = &result.tests[0];
        let all = changes(test, Metric::Allocations, 10);
        assert_eq!(names(&all.rows[0].frames), shown, "{names_of}");
        assert_eq!(all.rows[0].frames[all.rows[0].blamed].function, line, "{names_of} {blamed:?}");
        // What JSON has as `blamed`.
        let settled = test.changes[0].blamed.map(|at| &*test.changes[0].frames[at].function);
        assert_eq!(settled, blamed.map(|_| line), "{names_of} {blamed:?}");
    }
}

#[test]
fn a_broken_limit_without_a_baseline_has_its_largest_stacks() {
    let mut test = test("t", Outcome::Regressed);
    test.conclusions = vec![Conclusion { reference: None, ..judged(Metric::Allocations, Position::Above) }];
    let site = |names: &str, allocations| Site {
        frames: frames(names),
        metrics: Metrics { allocations, ..Metrics::default() },
    };
    let run = mallow_gate::measurement::Run {
        sites: vec![
            site("malloc a main", 3),
            site("malloc b main", 7),
            site("calloc b main", 2),
            site("c", 1),
        ],
        ..Default::default()
    };
    test.measurement = Some(mallow_gate::measurement::Measurement {
        name: "t".to_owned(),
        region: String::new(),
        ops: None,
        runs: vec![run],
        warmups: 0,
        environment: Environment::default(),
        notes: Vec::new(),
        unseen: Vec::new(),
        is_marked: true,
    });
    let (rows, more, together) = largest(&test, Metric::Allocations, 2, |frames, _| frames.to_vec());
    let told: Vec<(String, u64)> = rows.iter().map(|row| (names(&row.frames), row.value)).collect();
    assert_eq!(told, [("b main".to_owned(), 9), ("a main".to_owned(), 3)]);
    assert_eq!((more, together), (1, 1));
    test.conclusions[0].reference = Some(1);
    assert_eq!(largest(&test, Metric::Allocations, 2, |frames, _| frames.to_vec()).0, []);
}

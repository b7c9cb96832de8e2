//! Each kind of window exactly.

use super::*;
use crate::limit::{Combine, Tolerance};
use crate::sample;

const METRIC: Metric = Metric::Allocations;

fn limits_of(metric: Metric, limit: Limit) -> Limits {
    Limits { by_metric: vec![(metric, limit)], ignore_sites: Vec::new() }
}

fn relative(abs: Option<u64>, rel_ppm: Option<u64>, combine: Combine) -> Limits {
    limits_of(METRIC, Limit::Relative(Tolerance { abs, rel_ppm, combine }))
}

/// Returns whether a test of a thousand allocations is judged at all.
fn is_known(baseline: Option<&Baseline>, limits: &Limits) -> bool {
    let now = sample::counts(Some(1000), &[1000; 10]);
    let judged = crate::judge::judge(&now, baseline, limits, &crate::judge::Settings::default());
    assert_eq!(
        unknown(&judged.conclusions).is_some(),
        judged.sentences.iter().any(|said| said.contains("no limit for its allocations"))
    );
    unknown(&judged.conclusions).is_none()
}

fn baseline(allocations: u64) -> Baseline {
    sample::baseline(&sample::counts(Some(1000), &[allocations; 10]))
}

fn ends(limits: &Limits, reference: u64) -> (u64, u64) {
    let window = of(METRIC, limits, Some(&baseline(reference)), Some(1000)).expect("it has a window");
    (window.min, window.max)
}

#[test]
fn strays_are_one_in_a_hundred_operations() {
    let expected = [
        (None, 0),
        (Some(0), 0),
        (Some(1), 0),
        (Some(10), 0),
        (Some(99), 0),
        (Some(100), 1),
        (Some(199), 1),
        (Some(1000), 10),
        (Some(4999), 49),
        (Some(5000), 50),
        (Some(1_000_000), 50),
        (Some(u64::MAX), 50),
    ];
    for (ops, strays) in expected {
        assert_eq!(stray_allocations(ops), strays, "{ops:?}");
    }
}

#[test]
fn a_window_is_always_narrower_than_an_allocation_per_operation() {
    for ops in 1..20_000 {
        assert!(2 * stray_allocations(Some(ops)) < ops, "{ops}");
    }
}

#[test]
fn a_hundred_operations_take_so_many_runs() {
    let expected = [
        (None, 1),
        (Some(0), 1),
        (Some(1), 100),
        (Some(10), 10),
        (Some(34), 3),
        (Some(99), 2),
        (Some(100), 1),
    ];
    for (ops, runs) in expected {
        assert_eq!(runs_per_hundred(ops), runs, "{ops:?}");
    }
}

#[test]
fn the_default_is_around_the_baseline_and_never_below_zero() {
    assert_eq!(ends(&Limits::default(), 74_000), (73_990, 74_010));
    assert_eq!(ends(&Limits::default(), 3), (0, 13));
    assert_eq!(ends(&Limits::default(), u64::MAX - 3), (u64::MAX - 13, u64::MAX));
}

#[test]
fn absolute_limits_win_over_the_baseline() {
    assert_eq!(ends(&limits_of(METRIC, Limit::Absolute { min: Some(5), max: Some(9) }), 74_000), (5, 9));
    assert_eq!(ends(&limits_of(METRIC, Limit::Absolute { min: None, max: Some(9) }), 74_000), (0, 9));
    assert_eq!(ends(&limits_of(METRIC, Limit::Absolute { min: Some(5), max: None }), 74_000), (5, u64::MAX));
}

#[test]
fn the_wider_tolerance_counts_with_and_the_narrower_with_or() {
    assert_eq!(ends(&relative(Some(50), None, Combine::And), 10_000), (9_950, 10_050));
    assert_eq!(ends(&relative(None, Some(1000), Combine::And), 10_000), (9_990, 10_010));
    assert_eq!(ends(&relative(Some(50), Some(1000), Combine::And), 10_000), (9_950, 10_050));
    assert_eq!(ends(&relative(Some(50), Some(1000), Combine::Or), 10_000), (9_990, 10_010));
    assert_eq!(ends(&relative(Some(5), Some(1000), Combine::And), 10_000), (9_990, 10_010));
    assert_eq!(ends(&relative(None, None, Combine::And), 10_000), (10_000, 10_000));
    assert_eq!(ends(&relative(None, Some(999), Combine::And), 1000), (1000, 1000), "rounded down");
}

#[test]
fn of_a_reference_of_zero_only_the_absolute_part_counts() {
    assert_eq!(ends(&relative(Some(50), Some(1000), Combine::Or), 0), (0, 50));
    assert_eq!(ends(&relative(Some(50), Some(1000), Combine::And), 0), (0, 50));
    assert_eq!(ends(&relative(None, Some(1_000_000), Combine::And), 0), (0, 0));
}

#[test]
fn huge_shares_do_not_overflow() {
    assert_eq!(ends(&relative(None, Some(u64::MAX), Combine::And), u64::MAX), (0, u64::MAX));
}

#[test]
fn what_is_left_is_exact_and_bytes_are_free() {
    let window = |metric, baseline: Option<&Baseline>, ops| of(metric, &Limits::default(), baseline, ops);
    let exactly = |value| Some(Window { min: value, max: value });
    for metric in [Metric::Remaining, Metric::Descriptors] {
        assert_eq!(window(metric, None, Some(1000)), exactly(0));
    }
    assert_eq!(window(Metric::RemainingObjects, None, Some(1000)), exactly(0));
    let some_bytes = Some(Window { min: 0, max: 128 });
    assert_eq!(window(Metric::RemainingObjectBytes, None, Some(1000)), some_bytes);
    for metric in [Metric::Bytes, Metric::Peak, Metric::RemainingBytes] {
        assert_eq!(window(metric, Some(&baseline(5)), Some(1000)), None);
    }
    assert_eq!(window(METRIC, None, Some(1000)), None);
    let left = sample::baseline(&sample::measurement(Some(1000), &[(5, 3), (5, 4)]));
    assert_eq!(window(Metric::Remaining, Some(&left), Some(1000)), exactly(3));
    assert_eq!(window(Metric::Remaining, Some(&left), Some(10)), Some(Window { min: 3, max: 4 }));
}

#[test]
fn a_relative_limit_needs_a_baseline() {
    let limits = relative(Some(50), None, Combine::And);
    assert_eq!(of(METRIC, &limits, None, Some(1000)), None);
    assert!(!is_known(None, &limits));
    assert!(is_known(Some(&baseline(1)), &limits));
}

#[test]
fn only_an_upper_end_for_allocations_says_what_a_test_may_cost() {
    let absolute = |metric, min, max| limits_of(metric, Limit::Absolute { min, max });
    for (limits, without, with) in [
        (Limits::default(), false, true),
        (absolute(METRIC, None, Some(1)), true, true),
        (absolute(METRIC, Some(1), Some(2)), true, true),
        (absolute(METRIC, None, None), false, false),
        (absolute(METRIC, Some(0), None), false, false),
        (absolute(METRIC, Some(5), None), false, false),
        (absolute(METRIC, None, Some(u64::MAX)), false, false),
        (limits_of(METRIC, Limit::None), false, false),
        (absolute(Metric::Remaining, None, Some(0)), false, true),
        (absolute(Metric::Bytes, None, Some(10)), false, true),
    ] {
        assert_eq!(is_known(None, &limits), without, "{limits:?}");
        assert_eq!(is_known(Some(&baseline(1)), &limits), with, "{limits:?}");
    }
}

const CHAPTER: &str = include_str!("../../../../docs/guide/verdicts.md");

/// The rows of the chapter's table with this heading, each as the text of its columns.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let rows = CHAPTER.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    rows.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .collect()
}

#[test]
fn the_guide_tells_the_slack_that_is_given() {
    let told = rows("| operations per run | slack |");
    assert_eq!(told.len(), 6);
    for row in told {
        let digits: String = row[0].chars().filter(char::is_ascii_digit).collect();
        let slack = stray_allocations(digits.parse().ok());
        assert_eq!(slack.to_string(), row[1], "{row:?}");
    }
}

#[test]
fn the_guide_tells_every_metric_and_every_verdict() {
    let metrics: Vec<&str> =
        rows("| metric | judged |").iter().flat_map(|row| row[0].split('`').skip(1).step_by(2)).collect();
    assert_eq!(metrics.len(), Metric::ALL.len());
    assert!(metrics.iter().all(|word| Metric::of_word(word).is_some()), "{metrics:?}");
    let mut verdicts: Vec<&str> = rows("| verdict | when |").iter().map(|row| row[0]).collect();
    verdicts.sort_unstable();
    assert_eq!(verdicts, ["BLIND", "ERROR", "FLAKY", "IMPROVED", "MISSING", "OK", "REGRESSED", "STALE"]);
}

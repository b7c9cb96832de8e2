//! The five assertions at their edges.

use super::*;

fn test(total: Option<i64>, remaining: i64, leaked: i64) -> LogTest {
    LogTest {
        name: "t".to_owned(),
        total_allocations: total,
        remaining_allocations: Some(remaining),
        leaked_fds: Some(leaked),
        ..LogTest::default()
    }
}

fn sentences(test: LogTest, limit: Option<u64>) -> Vec<String> {
    let mut limits = Thresholds::default();
    if let Some(limit) = limit {
        limits.set("t", limit);
    }
    check(&[test], &limits).into_iter().map(|failure| failure.sentence).collect()
}

#[test]
fn the_window_is_a_thousand_up_to_the_limit() {
    for total in [74_051, 75_000, 75_050] {
        assert_eq!(sentences(test(Some(total), 0, 0), Some(75_050)), [""; 0], "{total}");
    }
    assert_eq!(
        sentences(test(Some(75_051), 0, 0), Some(75_050)),
        ["75051 allocations are more than its limit, 75050."]
    );
    assert_eq!(
        sentences(test(Some(74_050), 0, 0), Some(75_050)),
        ["74050 allocations are 1000 or more below its limit, 75050: lower it."]
    );
    assert_eq!(sentences(test(Some(0), 0, 0), Some(0)), [""; 0]);
    assert_eq!(
        sentences(test(Some(-1), 0, 0), Some(998)),
        [""; 0],
        "as the framework, thrown away runs pass"
    );
    assert_eq!(sentences(test(Some(-1), 0, 0), Some(999)).len(), 1);
    assert_eq!(sentences(test(Some(-1), 0, 0), Some(u64::MAX)).len(), 1);
}

#[test]
fn remaining_is_fine_up_to_four_to_either_side() {
    for remaining in [-4, 0, 4] {
        assert_eq!(sentences(test(Some(5), remaining, 0), Some(5)), [""; 0], "{remaining}");
    }
    for remaining in [-5, 5] {
        let sentence = format!("{remaining} allocations remain; more than -5 and less than 5 are fine.");
        assert_eq!(sentences(test(Some(5), remaining, 0), Some(5)), [sentence]);
    }
}

#[test]
fn no_descriptor_may_leak() {
    assert_eq!(sentences(test(Some(5), 0, 1), Some(5)), ["1 descriptors leaked."]);
}

#[test]
fn a_test_without_limit_or_without_total_fails() {
    assert_eq!(sentences(test(Some(5), 0, 0), None), ["there is no limit for it; it made 5 allocations."]);
    assert_eq!(sentences(test(None, 0, 0), Some(5)), ["the log has no total_allocations for it."]);
}

#[test]
fn all_failures_are_reported() {
    assert_eq!(sentences(test(Some(6), 9, 2), Some(5)).len(), 3);
}

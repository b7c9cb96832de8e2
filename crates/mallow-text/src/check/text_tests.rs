//! The table as it is shown.

use super::*;
use insta::assert_snapshot;
use mallow_samples::check as sample;

#[track_caller]
fn text(result: &CheckResult, limit: usize) -> String {
    let page = Page { result, limit, allow_improvement: false };
    let text = page.text(Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    text
}

#[test]
fn every_verdict() {
    assert_snapshot!(text(&sample::check(), 10));
}

#[test]
fn all_is_well() {
    assert_snapshot!(text(&sample::fine(), 10));
}

#[test]
fn blind_tests() {
    assert_snapshot!(text(&sample::all_blind(), 10));
}

#[test]
fn a_limit_cuts_stacks_but_not_sums() {
    let mut result = sample::fine();
    result.tests = vec![sample::regressed(), sample::leaking(), sample::flaky()];
    let text = text(&result, 1);
    assert!(text.contains("\n           … 14 more, +0.040/op together; totals are complete\n"), "{text}");
    assert!(text.contains("\n           … 1 more, 2 descriptors together; totals are complete\n"), "{text}");
    assert!(text.contains("\n           … 1 more\n"), "{text}");
}

/// Lines that look the same are merged into one, with the sum of their metrics: 2, 5 and 9 in the three runs, and two blocks left.
#[test]
fn stacks_that_look_the_same_are_one_row() {
    let mut result = sample::fine();
    result.tests = vec![sample::look_alikes()];
    for (outcome, metrics) in
        [(Outcome::Flaky, &["2…9"][..]), (Outcome::Missing, &["2…9", "2 blocks, 128 B"])]
    {
        result.tests[0].outcome = outcome;
        let text = text(&result, 10);
        let rows: Vec<&str> = text
            .lines()
            .filter_map(|line| line.trim_start().split_once("  grow (pool.c:9)"))
            .map(|row| row.0)
            .collect();
        assert_eq!(rows, metrics, "{text}");
    }
}

#[test]
fn a_line_for_each_test_while_they_run() {
    let result = sample::check();
    let lines: String = result.tests.iter().map(|test| line(test, Style::PLAIN)).collect();
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    assert_snapshot!(lines);
}

#[test]
fn verdicts_that_are_not_ok_stand_out_in_colour() {
    let result = sample::check();
    let page = Page { result: &result, limit: 10, allow_improvement: false };
    let coloured = page.text(Style { colour: true, ..Style::PLAIN });
    assert!(coloured.contains("\x1b[1mREGRESSED\x1b[0m  \x1b[1mbuffer_rw"), "{coloured}");
    assert!(coloured.contains("\nOK         ping_pong"), "{coloured}");
    // Without the escape codes it is the very same text: emphasis must not move columns.
    let plain = coloured.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
    assert_eq!(plain, page.text(Style::PLAIN));
}

#[test]
fn a_wide_terminal_has_room_for_names() {
    let result = sample::check();
    let page = Page { result: &result, limit: 10, allow_improvement: false };
    let text = page.text(Style { width: 120, ..Style::PLAIN });
    let row = text.lines().find(|line| line.contains("http_keepalive")).unwrap_or_default();
    assert!(row.ends_with("10 of 10") && row.chars().count() <= 120, "{text}");
}

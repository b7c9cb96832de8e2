//! Reports of benchmarks as they are shown.

use super::exports::{SortOrder, TableForm, csv, table};
use super::*;
use insta::assert_snapshot;
use mallow_bench::BenchCommand;
use mallow_bench::{Allocations, EventCount, Machine, Order, Run, RunEnd, ShellCost, Stop};

/// Returns times around a median, the same in each test.
fn runs(count: usize, median_ms: f64) -> Vec<Run> {
    let wobble = [0.0, 0.4, -0.3, 0.1, -0.5, 0.2, 0.5, -0.2, -0.1, 0.3, -0.4, 0.05];
    let run = |at: usize| {
        let wall_ns = ((median_ms + wobble[at % wobble.len()]) * 1e6) as u64;
        Run {
            at,
            wall_ns,
            user_ns: wall_ns / 10 * 9,
            system_ns: wall_ns / 20,
            peak_rss_bytes: 12 << 20,
            minor_faults: 310 + at as u64 % 3,
            voluntary_switches: 1,
            involuntary_switches: 4,
            events: vec![Some(EventCount { value: wall_ns as f64 * 2.5, share: 1.0 }), None],
            ..Run::default()
        }
    };
    (0..count).map(run).collect()
}

fn command(name: &str, count: usize, median_ms: f64, allocations: &[u64]) -> BenchCommand {
    let one = |count: &u64| Allocations {
        allocations: *count,
        bytes: count * 48,
        peak_bytes: 1 << 20,
        leaked_bytes: 0,
    };
    BenchCommand {
        name: name.to_owned(),
        line: name.to_owned(),
        runs: runs(count, median_ms),
        allocations: allocations.iter().map(one).collect(),
        ..BenchCommand::default()
    }
}

fn session(commands: Vec<BenchCommand>) -> Session {
    Session {
        commands,
        events: vec!["cycles".to_owned(), "instructions".to_owned()],
        threshold: 0.01,
        error: 0.001,
        machine: Machine::default(),
        ..Session::default()
    }
}

fn page(session: &Session) -> String {
    let text = Page { session, unit: None, limits: &[], is_explained: false }.text(Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn of_a_faster_command() {
    let before = command("./before test.csv", 18, 361.0, &[37_450; 3]);
    let after = command("./after test.csv", 18, 180.5, &[12; 3]);
    assert_snapshot!(page(&session(vec![before, after])));
}

#[test]
fn of_one_command_whose_allocations_vary() {
    assert_snapshot!(page(&session(vec![command("./app", 10, 42.0, &[10, 12, 11])])));
}

#[test]
fn of_too_few_runs() {
    let commands = vec![command("./a", 3, 100.0, &[]), command("./b", 3, 101.0, &[])];
    let session = Session { stop: Stop::Time, ..session(commands) };
    assert_snapshot!(page(&session));
}

#[test]
fn of_what_was_disturbed() {
    let mut slow = command("./a | b", 24, 3.0, &[]);
    slow.runs[0].wall_ns *= 9;
    slow.runs[5].wall_ns *= 7;
    for run in &mut slow.runs {
        run.involuntary_switches = 90;
    }
    slow.runs[7].left = vec!["server".to_owned()];
    slow.runs[8].end = RunEnd::Status(3);
    slow.in_shell = true;
    slow.not_recorded = Some("it is a static program, which loads no libraries".to_owned());
    let shell = Some(ShellCost { shell: "sh".to_owned(), wall_ns: 812_345, user_ns: 0, system_ns: 0 });
    let session =
        Session { order: Order::Sequential, shell, ..session(vec![slow, command("./b", 24, 3.0, &[])]) };
    assert_snapshot!(page(&session));
}

#[test]
fn of_counters() {
    let mut session = session(vec![command("./app", 10, 42.0, &[])]);
    session.events = vec!["cycles".to_owned(), "branch-misses:u".to_owned()];
    let text = counters::page(&session, &session.commands[0], Style::PLAIN);
    assert_snapshot!(text);
}

#[test]
fn of_tables_in_hyperfines_forms() {
    let mut two = session(vec![command("a | b", 10, 50.0, &[]), command("c", 10, 25.0, &[])]);
    two.commands[1].parameters = vec![("n".to_owned(), "8".to_owned())];
    let of = |form| table(&two, form, None, false, SortOrder::Auto);
    assert_snapshot!(of(TableForm::Markdown));
    assert_snapshot!(of(TableForm::AsciiDoc));
    assert_snapshot!(of(TableForm::OrgMode));
    assert_snapshot!(csv(&two));
    let sorted = table(&two, TableForm::Markdown, Some(TimeUnit::Second), true, SortOrder::MeanTime);
    assert!(sorted.lines().nth(2).unwrap().starts_with("| `c (n = 8)` | 0.025"), "{sorted}");
}

#[test]
fn of_limits_in_junit_and_markdown() {
    let session = session(vec![command("./a", 12, 100.0, &[1; 3]), command("./b", 12, 110.0, &[2; 3])]);
    let row = |limit: &str, is_broken| LimitRow {
        limit: limit.to_owned(),
        metric: Metric::Wall,
        command: "2: ./b".to_owned(),
        against: Some("1: ./a".to_owned()),
        is_broken,
    };
    let limits = [row("wall>+3%", Some(true)), row("wall>+20%", Some(false)), row("cycles>+1%", None)];
    let page = Page { session: &session, unit: None, limits: &limits, is_explained: false };
    let junit = junit(&page).unwrap();
    assert!(
        junit.contains("tests=\"3\"") && junit.contains("failures=\"1\"") && junit.contains("errors=\"1\""),
        "{junit}"
    );
    assert!(
        markdown(&page).contains("- wall&gt;+3% is exceeded by 2: ./b against 1: ./a."),
        "{}",
        markdown(&page)
    );
}

#[test]
fn a_line_of_progress_has_the_estimate_with_its_interval() {
    let session = session(vec![command("./a", 12, 100.0, &[]), command("./b", 12, 90.0, &[])]);
    let line = sentences::progress(&session, 1, 12, 18, 2.6, false);
    assert_eq!(line, "2: run 13 of 18, 3 s, 2 is −10.0 % (−10.0 % … −10.0 %)");
}

//! Round trips, the published schema, damage, and that a baseline of a report is the baseline of the check.

use super::*;
use crate::schema_tests;
use mallow_gate::baseline::{Baseline, Machine};
use mallow_gate::judge::{Settings, judge};
use mallow_gate::limit::Limits;
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use mallow_gate::sample::{baseline, counts, environment, measurement, of_runs, run, site};
use proptest::prelude::*;
use serde_json::{Value, json};

fn check(tests: Vec<TestResult>) -> CheckResult {
    CheckResult {
        tests,
        environment: environment(),
        sentences: vec!["All is well.".to_owned()],
        update_command: "mallow check --update".to_owned(),
        folder: "/srv/demo/build".into(),
    }
}

/// A regression with a leak, a flaky test, a test that could not be built.
fn sample() -> CheckResult {
    let before = baseline(&counts(Some(1000), &[74_000; 10]));
    let regressed = measurement(Some(1000), &[(75_000, 10); 10]);
    let regressed = judge(&regressed, Some(&before), &Limits::default(), &Settings::default());
    let runs = (0..20).map(|index| run(vec![site("random", 2, 74_000 + index * 5, 0)]));
    let flaky =
        judge(&of_runs(Some(1000), runs.collect()), Some(&before), &Limits::default(), &Settings::default());
    let broken = TestResult {
        outcome: Outcome::Error,
        measurement: None,
        conclusions: Vec::new(),
        changes: Vec::new(),
        varying: Vec::new(),
        left: Vec::new(),
        sentences: vec!["cc said no.".to_owned()],
        ..regressed.clone()
    };
    assert_eq!((regressed.outcome, flaky.outcome), (Outcome::Regressed, Outcome::Flaky));
    check(vec![regressed, flaky, broken])
}

/// The result with sites in the judged run only, as a report keeps it.
fn thinned(mut check: CheckResult) -> CheckResult {
    for measurement in check.tests.iter_mut().filter_map(|test| test.measurement.as_mut()) {
        let judged = mallow_gate::measurement::judged_run(&measurement.runs).cloned();
        let at = measurement.runs.iter().position(|run| Some(run) == judged.as_ref());
        for (index, run) in measurement.runs.iter_mut().enumerate() {
            if Some(index) != at {
                run.sites.clear();
            }
        }
    }
    check
}

fn text(check: &CheckResult) -> String {
    serde_json::to_string_pretty(&ReportFile::from(check)).expect("it can be written")
}

#[test]
fn a_report_comes_back() {
    let file = ReportFile::from(&sample());
    let read = ReportFile::from_text(&text(&sample()), "report.json").expect("it can be read");
    assert_eq!(read, file);
    assert_eq!(read.to_result(), Ok(thinned(sample())));
}

#[test]
fn a_report_of_the_version_before_is_read() {
    let mut document: Value = serde_json::from_str(&text(&sample())).expect("it is JSON");
    document["schema"] = json!("mallow.check/1");
    for test in document["tests"].as_array_mut().into_iter().flatten() {
        test["outcome"] = json!(test["outcome"].as_str().unwrap_or_default().to_ascii_uppercase());
    }
    let read = ReportFile::from_text(&document.to_string(), "report.json").and_then(|file| file.to_result());
    assert_eq!(read, Ok(thinned(sample())));
}

#[test]
fn a_baseline_of_a_report_is_that_of_the_check() {
    let check = sample();
    let read = ReportFile::from(&check).to_result().expect("it can be used");
    for (before, after) in check.tests.iter().zip(&read.tests).take(2) {
        let of = |test: &TestResult| {
            test.measurement.as_ref().and_then(|measurement| Baseline::of(measurement, &Machine::default()))
        };
        assert!(of(before).is_some());
        assert_eq!(of(before), of(after));
    }
}

#[test]
fn frames_stand_there_once() {
    let file = ReportFile::from(&sample());
    let functions: Vec<&str> = file.frames.iter().map(|frame| frame.function.as_str()).collect();
    assert_eq!(functions.iter().filter(|name| **name == "main").count(), 1);
    assert_eq!(file.tests[0].changes[0].stack, [0, 1]);
}

#[test]
fn an_open_end_of_a_window_is_null() {
    let cap = mallow_gate::limit::Limit::Absolute { min: Some(5), max: None };
    let limits =
        Limits { by_metric: vec![(mallow_gate::measurement::Metric::Allocations, cap)], ..Limits::default() };
    let result = judge(&counts(None, &[7; 10]), None, &limits, &Settings::default());
    let file = ReportFile::from(&check(vec![result]));
    let window = file.tests[0].conclusions[0].window;
    assert_eq!(window, Some(WindowJson { min: 5, max: None }));
    assert_eq!(file.to_result().map(|back| ReportFile::from(&back)), Ok(file));
}

#[test]
fn only_so_many_sites_are_written_and_the_largest() {
    let sites = (0..1500).map(|line| site("f", line, 1000 + u64::from(line), u64::from(line == 3)));
    let now = of_runs(None, vec![run(sites.collect())]);
    let result = judge(&now, Some(&baseline(&now)), &Limits::default(), &Settings::default());
    let file = ReportFile::from(&check(vec![result]));
    let sites = file.tests[0].measurement.as_ref().map(|m| m.sites.clone()).unwrap_or_default();
    let counts: Vec<u64> = sites.iter().map(|site| site.metrics.allocations).collect();
    assert_eq!((counts.len(), counts[0], counts[1], counts[999]), (SITES_MAX, 1003, 1501, 2499));
}

type Change = fn(&mut ReportFile);

#[test]
fn damaged_reports_are_a_sentence() {
    let cases = [
        (
            "[",
            "r.json is not a report of `mallow check --json`: EOF while parsing a list (line 1, column 1).",
        ),
        (
            "{}",
            "r.json is not a report of `mallow check --json`: it does not say `\"schema\": \"mallow.check/2\"`.",
        ),
        (
            "{\"schema\":\"mallow.diff/1\"}",
            "r.json is not a report of `mallow check --json`: its schema is \"mallow.diff/1\", and this mallow reads \
             \"mallow.check/2\".",
        ),
        (
            "{\"schema\":\"mallow.check/2\"}",
            "r.json is not a report of `mallow check --json`: missing field `environment` (line 1, column 27).",
        ),
    ];
    for (text, sentence) in cases {
        let error = ReportFile::from_text(text, "r.json").map_err(|error| error.to_string());
        assert_eq!(error, Err(sentence.to_owned()));
    }
    let damaged = |change: Change| {
        let mut file = ReportFile::from(&sample());
        change(&mut file);
        file.to_result().map(|_| ()).map_err(|error| error.to_string())
    };
    let expected: [(Change, &str); 4] = [
        (|file| file.tests[0].outcome = "FINE".to_owned(), "the outcome \"FINE\" of encode is unknown"),
        (|file| file.frames.clear(), "there is no frame 0"),
        (|file| file.tests[0].conclusions[0].metric = "colour".to_owned(), "there is no metric \"colour\""),
        (
            |file| {
                if let Some(measurement) = &mut file.tests[0].measurement {
                    measurement.judged = 77;
                }
            },
            "encode has no run 77",
        ),
    ];
    for (change, what) in expected {
        assert_eq!(damaged(change), Err(format!("The report cannot be used: {what}.")));
    }
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/schema/check.json")).expect("the schema is JSON")
}

#[test]
fn it_has_the_published_shape() {
    let schema = schema();
    for check in [sample(), check(Vec::new()), thinned(sample())] {
        let document = serde_json::to_value(ReportFile::from(&check)).expect("it can be written");
        assert_eq!(schema_tests::check(&document, &schema, &schema, "$"), Ok(()));
    }
}

#[test]
fn the_schema_refuses_what_is_not_that_shape() {
    let schema = schema();
    let document = serde_json::to_value(ReportFile::from(&sample())).expect("it can be written");
    let changes = [
        ("/schema", json!("mallow.check/3")),
        ("/tests/0/outcome", json!("FINE")),
        ("/tests/0/measurement/runs/0/figures/bytes", json!(-1)),
        ("/tests/0/judgements/0/standing", json!("over")),
        ("/tests/0/changes/0/stack/0", json!("main")),
        ("/frames/0/line", json!("9")),
        ("/environment", json!({})),
    ];
    for (pointer, value) in changes {
        let mut document = document.clone();
        *document.pointer_mut(pointer).expect("it is there") = value;
        assert!(schema_tests::check(&document, &schema, &schema, "$").is_err(), "{pointer}");
    }
}

proptest! {
    #[test]
    fn any_measurement_comes_back(
        runs in prop::collection::vec((any::<u32>(), 0u32..5), 0..12), ops in prop::option::of(any::<u64>()),
    ) {
        let runs: Vec<(u64, u64)> = runs.iter().map(|(a, b)| (u64::from(*a), u64::from(*b))).collect();
        let before = baseline(&counts(ops, &[1000]));
        let result = judge(&measurement(ops, &runs), Some(&before), &Limits::default(), &Settings::default());
        let check = check(vec![result]);
        let back = ReportFile::from_text(&text(&check), "r.json").and_then(|file| file.to_result());
        prop_assert_eq!(back, Ok(thinned(check)));
    }
}

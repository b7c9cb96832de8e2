//! Each outcome with its exact sentences.

use super::*;
use crate::limit::{Limit, Tolerance};
use crate::sample::{baseline, counts, measurement, of_runs, run, site};
use mallow_base::grouped;

fn judged(now: &Measurement, before: &Measurement) -> TestResult {
    judge(now, Some(&baseline(before)), &Limits::default(), &Settings::default())
}

fn limits(metric: Metric, limit: Limit) -> Limits {
    Limits { by_metric: vec![(metric, limit)], ignore_sites: Vec::new() }
}

fn unlimited(now: &Measurement, limits: &Limits) -> TestResult {
    judge(now, None, limits, &Settings::default())
}

fn of(result: &TestResult, metric: Metric) -> &Conclusion {
    result.conclusions.iter().find(|conclusion| conclusion.metric == metric).expect("each metric is judged")
}

#[test]
fn an_unchanged_test_is_ok_without_a_sentence() {
    let now = counts(Some(1000), &[74_000; 10]);
    let result = judged(&now, &now);
    assert_eq!((result.outcome, result.sentences.len()), (Outcome::Ok, 0));
    assert_eq!(result.changes, []);
    let metrics: Vec<Metric> = result.conclusions.iter().map(|conclusion| conclusion.metric).collect();
    let known = Metric::ALL.into_iter().take_while(|metric| *metric != Metric::Objects);
    assert_eq!(metrics, known.collect::<Vec<_>>(), "what no runtime told is not judged");
    let allocations = of(&result, Metric::Allocations);
    assert_eq!(allocations.window.map(|w| (w.min, w.max)), Some((73_990, 74_010)));
    assert_eq!((allocations.reference, allocations.position), (Some(74_000), Position::Within));
    assert_eq!(of(&result, Metric::Bytes).position, Position::Free);
}

#[test]
fn more_allocations_are_a_regression_with_their_site() {
    let result = judged(&counts(Some(1000), &[75_000; 10]), &counts(Some(1000), &[74_000; 10]));
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(
        result.sentences,
        [
            "allocations: 75,000 per run, 1,000 more than the baseline's 74,000 (+1.000 per operation); 74,010 allowed."
        ]
    );
    assert_eq!(result.changes.len(), 1);
    assert_eq!(result.changes[0].frames[0].function, "grow");
    let metrics = |side: Option<crate::measurement::Metrics>| side.map(|metrics| metrics.allocations);
    assert_eq!(metrics(result.changes[0].before), Some(74_000));
    assert_eq!(metrics(result.changes[0].after), Some(75_000));
}

#[test]
fn fewer_allocations_are_an_improvement() {
    let result = judged(&counts(Some(1000), &[73_000; 10]), &counts(Some(1000), &[74_000; 10]));
    assert_eq!(result.outcome, Outcome::Improved);
    assert_eq!(
        result.sentences,
        ["allocations: 73,000 per run, 1,000 fewer than the baseline's 74,000 (-1.000 per operation); \
          keep the win with `--update --only encode`."]
    );
    assert_eq!(result.changes.len(), 1);
}

#[test]
fn all_failures_are_reported() {
    let result =
        judged(&measurement(Some(1000), &[(75_000, 10); 10]), &measurement(Some(1000), &[(74_000, 0); 10]));
    assert_eq!(
        result.sentences,
        [
            "allocations: 75,000 per run, 1,000 more than the baseline's 74,000 (+1.000 per operation); 74,010 allowed.",
            "remaining: 10 per run, 10 more than the baseline's 0 (+0.010 per operation); 0 allowed.",
        ]
    );
    assert_eq!(result.left.len(), 1);
}

#[test]
fn the_minimum_is_judged_when_a_run_was_disturbed() {
    let mut runs = [74_000; 20];
    runs[7] = 80_000;
    let result = judged(&counts(Some(1000), &runs), &counts(Some(1000), &[74_000; 10]));
    assert_eq!((result.outcome, result.sentences.len()), (Outcome::Ok, 0));
    let notes = result.measurement.map(|measurement| measurement.notes);
    let note =
        "allocations: the runs differ, from 74,000 to 80,000; 19 of 20 have the least, which is judged.";
    assert_eq!(notes, Some(vec![note.to_owned()]));
}

#[test]
fn runs_that_differ_across_the_window_are_flaky_with_the_guilty_site() {
    let runs =
        (0..20).map(|index| run(vec![site("steady", 1, 1000, 0), site("random", 2, (index * 37) % 101, 0)]));
    let now = of_runs(Some(1000), runs.collect());
    let before =
        of_runs(Some(1000), vec![run(vec![site("steady", 1, 1000, 0), site("random", 2, 30, 0)]); 10]);
    let result = judged(&now, &before);
    assert_eq!(result.outcome, Outcome::Flaky);
    assert_eq!(
        result.sentences,
        ["allocations: the runs differ too much to be judged, from 1,000 to 1,097, the least in 1 of 20; \
          the sites that vary are listed."]
    );
    let varying: Vec<&str> = result.varying.iter().map(|site| site.frames[0].function.as_str()).collect();
    assert_eq!(varying, ["random"]);
}

#[test]
fn runs_that_differ_within_the_window_are_fine() {
    let runs: Vec<u64> = (0..20).map(|index| 74_000 + index % 11).collect();
    let result = judged(&counts(Some(5000), &runs), &counts(Some(5000), &[74_000; 10]));
    assert_eq!(result.outcome, Outcome::Ok);
}

#[test]
fn runs_that_differ_but_are_all_far_above_have_regressed() {
    let runs: Vec<u64> = (0..20).map(|index| 75_000 + index * 10).collect();
    let result = judged(&counts(Some(1000), &runs), &counts(Some(1000), &[74_000; 10]));
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(result.varying.len(), 1);
    let runs: Vec<u64> = (0..20).map(|index| 74_050 + index * 10).collect();
    let result = judged(&counts(Some(1000), &runs), &counts(Some(1000), &[74_000; 10]));
    assert_eq!(result.outcome, Outcome::Flaky, "what lifts some by 190 may lift all by 40");
}

#[test]
fn every_second_run_dearer_is_flaky() {
    let runs: Vec<u64> = (0..20).map(|index| 1000 + index % 2 * 100).collect();
    let result = judged(&counts(Some(1000), &runs), &counts(Some(1000), &[1000; 10]));
    assert_eq!(result.outcome, Outcome::Flaky);
}

#[test]
fn bytes_do_not_make_a_test_flaky() {
    let mut now = counts(Some(1000), &[1000; 10]);
    for (index, run) in now.runs.iter_mut().enumerate() {
        run.metrics.bytes += index as u64 * 100_000;
        run.metrics.peak_bytes = index as u64 * 77;
    }
    assert!(!wants_more_runs(&now));
    assert_eq!(judged(&now, &counts(Some(1000), &[1000; 10])).outcome, Outcome::Ok);
    let cap = limits(Metric::Bytes, Limit::Absolute { min: None, max: Some(15_999) });
    let result = unlimited(&now, &cap);
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(
        result.sentences,
        [
            "bytes: 16,000 per run; its limit allows 15,999.",
            "There is no baseline and no limit for its allocations; `--update --only encode` makes the baseline.",
        ]
    );
}

#[test]
fn without_baseline_and_limit_it_is_missing() {
    let result = unlimited(&counts(Some(1000), &[1000; 10]), &Limits::default());
    assert_eq!(result.outcome, Outcome::Missing);
    let missing =
        "There is no baseline and no limit for its allocations; `--update --only encode` makes the baseline.";
    assert_eq!(result.sentences, [missing]);
    let leaking = unlimited(&measurement(Some(1000), &[(1000, 3); 10]), &Limits::default());
    assert_eq!(leaking.outcome, Outcome::Missing);
    assert_eq!(leaking.sentences, [missing, "remaining: 3 per run; 0 allowed."]);
    let relative = limits(Metric::Allocations, Limit::Relative(Tolerance::default()));
    assert_eq!(unlimited(&counts(Some(1000), &[1000; 10]), &relative).outcome, Outcome::Missing);
}

#[test]
fn a_limit_is_enough_without_a_baseline() {
    let cap = limits(Metric::Allocations, Limit::Absolute { min: Some(900), max: Some(1000) });
    assert_eq!(unlimited(&counts(None, &[1000; 10]), &cap).outcome, Outcome::Ok);
    let above = unlimited(&counts(None, &[1001; 10]), &cap);
    assert_eq!(above.outcome, Outcome::Regressed);
    assert_eq!(above.sentences, ["allocations: 1,001 per run; its limit allows 1,000."]);
    let below = unlimited(&counts(None, &[899; 10]), &cap);
    assert_eq!(below.outcome, Outcome::Improved);
    assert_eq!(
        below.sentences,
        ["allocations: 899 per run; its limit expects at least 900: lower it to keep the win."]
    );
    let leak = unlimited(&measurement(None, &[(1000, 1); 10]), &cap);
    assert_eq!(leak.outcome, Outcome::Regressed, "what remains has a limit of 0 by default");
}

#[test]
fn the_same_leak_in_every_run_is_a_leak_and_an_accepted_one_is_fine() {
    let leaking = measurement(Some(1000), &[(1000, 7); 10]);
    let result = judged(&leaking, &counts(Some(1000), &[1000; 10]));
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(judged(&leaking, &leaking).outcome, Outcome::Ok);
    let less = judged(&measurement(Some(1000), &[(1000, 6); 10]), &leaking);
    assert_eq!(less.outcome, Outcome::Improved);
    let mut some = [(1000, 7); 10];
    some[2].1 = 6;
    assert_eq!(judged(&measurement(Some(1000), &some), &leaking).outcome, Outcome::Ok, "one run is no win");
}

#[test]
fn what_only_some_runs_keep_is_a_note_where_a_leak_would_be_in_all() {
    let mut runs = vec![(1000, 0); 10];
    runs[3].1 = 5;
    let result = judged(&measurement(Some(1000), &runs), &counts(Some(1000), &[1000; 10]));
    assert_eq!(result.outcome, Outcome::Ok);
    let note = "remaining: the runs differ, from 0 to 5; 9 of 10 have the least, which is judged.";
    assert_eq!(result.measurement.map(|m| m.notes), Some(vec![note.to_owned()]));
}

#[test]
fn a_leak_rarer_than_runs_is_found_in_both_halves() {
    let mut runs = vec![(50, 0); 20];
    (runs[4].1, runs[14].1) = (1, 1);
    let result = judged(&measurement(Some(10), &runs), &counts(Some(10), &[50; 10]));
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(
        result.sentences,
        ["remaining: 2 in all, left in 2 of 20 runs, again and again; 0 allowed per run."]
    );
    assert_eq!(result.left[0].frames[0].function, "grow");
    runs[14].1 = 0;
    let result = judged(&measurement(Some(10), &runs), &counts(Some(10), &[50; 10]));
    assert_eq!(result.outcome, Outcome::Ok, "kept once");
}

#[test]
fn too_few_operations_to_tell_a_leak_are_flaky() {
    let mut runs = vec![(5, 0); 20];
    runs[4].1 = 1;
    let result = judged(&measurement(Some(1), &runs), &counts(Some(1), &[5; 10]));
    assert_eq!(result.outcome, Outcome::Flaky);
    assert_eq!(
        result.sentences,
        [
            "remaining: 1 of 20 runs left up to 1 behind, the others less. These are too few operations to tell a leak from \
          what is kept once: do at least 10 operations per run, or more runs."
        ]
    );
    assert_eq!(result.left.len(), 1);
}

#[test]
fn descriptors_are_judged_like_blocks() {
    let mut now = counts(Some(1000), &[1000; 10]);
    for run in &mut now.runs {
        run.metrics.descriptors = 1;
        run.sites[0].metrics.descriptors = 1;
    }
    let result = judged(&now, &counts(Some(1000), &[1000; 10]));
    assert_eq!(result.outcome, Outcome::Regressed);
    assert_eq!(
        result.sentences,
        ["descriptors: 1 per run, 1 more than the baseline's 0 (+0.001 per operation); 0 allowed."]
    );
    assert_eq!(result.left.len(), 1);
    assert_eq!(result.changes.len(), 1);
}

#[test]
fn another_environment_is_refused_unless_told() {
    let now = counts(Some(1000), &[1000; 10]);
    let mut other = baseline(&now);
    other.environment.libc = "glibc 2.41".to_owned();
    other.environment.processors = 8;
    let found = Found::OtherEnvironment(vec![other]);
    let refused = judge_found(&now, &found, &Limits::default(), &Settings::default());
    assert_eq!(refused.outcome, Outcome::Missing);
    assert_eq!(
        refused.sentences[1],
        "There is a baseline only for another environment: its libc is glibc 2.41, here it is glibc 2.36; it is for \
         8 processors, here are 2. Counts differ between environments; `--ignore-environment` compares nevertheless, \
         `--update` makes a baseline for this one."
    );
    let told = judge_found(&now, &found, &Limits::default(), &Settings { ignore_environment: true });
    assert_eq!((told.outcome, told.measurement.map(|m| m.notes.len())), (Outcome::Ok, Some(1)));
}

#[test]
fn a_baseline_for_other_operations_is_not_compared() {
    let result = judged(&counts(Some(2000), &[2000; 10]), &counts(Some(1000), &[1000; 10]));
    assert_eq!(result.outcome, Outcome::Missing);
    assert_eq!(
        result.sentences[1],
        "Its baseline is for 1,000 operations per run, and the test makes 2,000 operations per run, so they cannot be \
         compared; `--update --only encode` replaces the baseline."
    );
}

#[test]
fn without_runs_it_is_an_error() {
    let result = unlimited(&of_runs(None, Vec::new()), &Limits::default());
    assert_eq!((result.outcome, result.conclusions.len()), (Outcome::Error, 0));
}

#[test]
fn ignored_sites_are_left_out_on_both_sides() {
    let one = |more| {
        of_runs(Some(1000), vec![run(vec![site("ours", 1, 1000, 0), site("SSL_new", 2, more, more)]); 10])
    };
    let ignoring = Limits { ignore_sites: vec!["SSL_*".to_owned()], ..Limits::default() };
    let result = judge(&one(900), Some(&baseline(&one(5))), &ignoring, &Settings::default());
    assert_eq!((result.outcome, result.sentences.len()), (Outcome::Ok, 0));
    assert_eq!(of(&result, Metric::Allocations).spread.min, 1000);
    assert_eq!(of(&result, Metric::Allocations).reference, Some(1000));
    let notes = result.measurement.map(|measurement| measurement.notes);
    let note =
        "Left out by ignore_sites (SSL_*): up to 900 allocations, 14,400 bytes, 900 remaining per run.";
    assert_eq!(notes, Some(vec![note.to_owned()]));
    let typo = Limits { ignore_sites: vec!["SLL_*".to_owned()], ..Limits::default() };
    let result = judge(&one(5), Some(&baseline(&one(5))), &typo, &Settings::default());
    let notes = result.measurement.map(|measurement| measurement.notes);
    assert_eq!(notes, Some(vec!["No site matches ignore_sites (SLL_*).".to_owned()]));
}

#[test]
fn with_limits_a_baseline_that_cannot_be_used_is_a_note() {
    let cap = limits(Metric::Allocations, Limit::Absolute { min: None, max: Some(5000) });
    let before = baseline(&counts(Some(1000), &[1000; 10]));
    let result = judge(&counts(Some(2000), &[2000; 10]), Some(&before), &cap, &Settings::default());
    assert_eq!((result.outcome, result.sentences.len()), (Outcome::Ok, 0));
    assert_eq!(result.measurement.map(|measurement| measurement.notes.len()), Some(1));
}

#[test]
fn numbers_are_printed_with_all_digits() {
    let texts: Vec<String> = [0, 999, 1000, 75_001, 1_234_567].into_iter().map(grouped).collect();
    assert_eq!(texts, ["0", "999", "1,000", "75,001", "1,234,567"]);
    assert_eq!(per_operation(10, 12, 1000), "+0.002");
    assert_eq!(per_operation(12, 10, 0), "-2.000");
}

/// A thousand allocations in each run, and what a runtime told.
fn with_objects(objects: crate::measurement::Objects) -> Measurement {
    let mut measurement = counts(Some(1000), &[1000; 10]);
    measurement.runs.iter_mut().for_each(|run| run.objects = objects);
    measurement
}

#[test]
fn objects_are_judged_where_a_runtime_tells_them() {
    use crate::measurement::Objects;
    let ruby = |made, remaining| {
        with_objects(Objects { made: Some(made), remaining: Some(remaining), ..Objects::default() })
    };
    let node = |bytes, left| {
        with_objects(Objects { bytes: Some(bytes), remaining_bytes: Some(left), ..Objects::default() })
    };
    let outcome = |now: &Measurement, before: &Measurement| judged(now, before).outcome;
    assert_eq!(outcome(&ruby(5010, 0), &ruby(5000, 0)), Outcome::Ok);
    assert_eq!(outcome(&ruby(6000, 0), &ruby(5000, 0)), Outcome::Regressed);
    assert_eq!(outcome(&ruby(4000, 0), &ruby(5000, 0)), Outcome::Improved);
    assert_eq!(outcome(&ruby(5000, 10), &ruby(5000, 0)), Outcome::Regressed);
    assert_eq!(outcome(&node(58_000, 100), &node(50_000, 16)), Outcome::Ok);
    assert_eq!(outcome(&node(66_000, 16), &node(50_000, 16)), Outcome::Regressed);
    assert_eq!(outcome(&node(50_000, 336), &node(50_000, 16)), Outcome::Regressed);
    // A baseline from before the runtime told anything, or a limit for allocations, says nothing about objects.
    let old = judged(&ruby(5000, 0), &counts(Some(1000), &[1000; 10]));
    assert_eq!(old.outcome, Outcome::Missing);
    assert_eq!(
        old.sentences,
        ["There is no baseline and no limit for its objects; `--update --only encode` makes the baseline."]
    );
    let cap = limits(Metric::Allocations, Limit::Absolute { min: None, max: Some(1000) });
    assert_eq!(unlimited(&ruby(5000, 0), &cap).outcome, Outcome::Missing);
}

#[test]
fn what_is_not_seen_is_blind_whatever_the_metrics_are() {
    let mut now = counts(Some(1000), &[1000; 10]);
    now.unseen = vec!["Its objects are not seen.".to_owned()];
    let result = judged(&now, &counts(Some(1000), &[1000; 10]));
    assert_eq!((result.outcome, &result.sentences[..]), (Outcome::Blind, &now.unseen[..]));
    let worse = judged(&now, &counts(Some(1000), &[10; 10]));
    assert_eq!(worse.outcome, Outcome::Blind);
}

#[test]
fn more_runs_are_wanted_when_the_floor_is_not_known() {
    assert!(!wants_more_runs(&counts(Some(1000), &[5000; 10])));
    assert!(wants_more_runs(&counts(Some(1000), &[5000, 5000, 5000, 5000, 5007])));
    assert!(!wants_more_runs(&counts(Some(1000), &[])));
}

#[test]
fn more_runs_are_wanted_when_a_leak_may_be_rarer_than_runs() {
    let mut runs = vec![(50, 0); 10];
    runs[4].1 = 1;
    assert!(wants_more_runs(&measurement(Some(10), &runs)));
    assert!(wants_more_runs(&measurement(Some(99), &runs)));
    assert!(!wants_more_runs(&measurement(Some(100), &runs)), "with 100 operations each run would have one");
    assert!(!wants_more_runs(&measurement(None, &runs)));
    assert!(!wants_more_runs(&measurement(Some(10), &[(50, 3); 10])), "the same in every run is no question");
}

/// Sites of `encode` and of `decode`, with what of their allocations was temporary.
fn with_temporary(encode: (u64, u64), decode: (u64, u64)) -> Measurement {
    let of = |function: &str, line, (allocations, temporary): (u64, u64)| {
        let mut site = site(function, line, allocations, 0);
        site.metrics.temporary = Some(temporary);
        site
    };
    of_runs(Some(1000), vec![run(vec![of("encode", 40, encode), of("decode", 70, decode)]); 10])
}

#[test]
fn temporary_allocations_are_judged_with_a_limit_alone_and_their_lines_are_named() {
    let before = with_temporary((5000, 1000), (2000, 0));
    // As many allocations as before, of which more are temporary: one more per operation in `decode`.
    let now = with_temporary((5000, 1000), (2000, 1000));
    let free = judged(&now, &before);
    assert_eq!((free.outcome, of(&free, Metric::Temporary).position), (Outcome::Ok, Position::Free));
    let tolerance = Tolerance { abs: Some(10), ..Tolerance::default() };
    for limit in [Limit::Relative(tolerance), Limit::Absolute { min: None, max: Some(1010) }] {
        let result =
            judge(&now, Some(&baseline(&before)), &limits(Metric::Temporary, limit), &Settings::default());
        assert_eq!(result.outcome, Outcome::Regressed);
        assert_eq!(
            result.sentences,
            [
                "temporary: 2,000 per run, 1,000 more than the baseline's 1,000 (+1.000 per operation); its limit allows 1,010."
            ]
        );
        let functions: Vec<&str> =
            result.changes.iter().map(|change| change.frames[0].function.as_str()).collect();
        assert_eq!(functions, ["decode"]);
    }
}

#[test]
fn a_baseline_from_before_temporaries_were_counted_says_nothing_about_them() {
    let now = with_temporary((5000, 1000), (2000, 0));
    let mut old = baseline(&now);
    old.spreads.remove(&Metric::Temporary);
    old.sites.iter_mut().for_each(|site| site.metrics.temporary = None);
    assert_eq!(judge(&now, Some(&old), &Limits::default(), &Settings::default()).outcome, Outcome::Ok);
    // More allocations, so that changes are listed: those of temporaries are not among them.
    let more = with_temporary((6000, 1000), (2000, 0));
    let result = judge(&more, Some(&old), &Limits::default(), &Settings::default());
    assert_eq!((result.outcome, result.changes.len()), (Outcome::Regressed, 1));
    let tolerance = Limit::Relative(Tolerance { abs: Some(10), ..Tolerance::default() });
    let result = judge(&now, Some(&old), &limits(Metric::Temporary, tolerance), &Settings::default());
    assert_eq!(result.outcome, Outcome::Missing);
    assert_eq!(
        result.sentences,
        [
            "No baseline tells its temporary, from which a limit is to be counted; `--update --only encode` makes the baseline."
        ]
    );
}

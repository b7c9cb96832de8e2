//! Programs that are started behind a filter of system calls (seccomp): each ends as it ends without mallow, whatever the filter is against, and is recorded or named.

use e2e::program::build_text;
use e2e::run;
use e2e::{Exit, Session, Workshop};
use serde_json::Value;
use std::ffi::OsStr;

const STARTS: &str = include_str!("../../programs/hazards/filtered_starts.c");
const REASON: &str =
    "it was started behind a filter of system calls (seccomp) that does not let through what mallow needs";

/// One child for each system call, behind a filter against it, once bare and under `cpu`, `record` and `stat`. `is_told` judges how many children ended well, how
/// many allocations there are, and how many processes are named for the filter.
#[track_caller]
fn each_call(way: &str, is_told: impl Fn(u64, u64, u64) -> bool) {
    let workshop = Workshop::new("filters");
    let program = build_text(workshop.path(), "starts", STARTS);
    for action in ["kill", "refuse"] {
        of_session(&Session::new(workshop.path(), &[&program.to_string_lossy(), action, way]), &is_told);
    }
}

#[track_caller]
fn of_session(session: &Session, is_told: impl Fn(u64, u64, u64) -> bool) {
    let bare = session.bare();
    assert_eq!(bare.exit, Exit::Status(0), "{bare}");
    let well = bare.stdout.lines().filter(|line| line.ends_with(" 700")).count() as u64;
    assert!(well > 400, "{bare}");
    let profile = session.trace().with_extension("cpu");
    let sampled = session.under(
        run::mallow(),
        &[OsStr::new("cpu"), "--force".as_ref(), "-o".as_ref(), profile.as_os_str(), "--".as_ref()],
    );
    assert_eq!((sampled.exit, &sampled.stdout), (bare.exit, &bare.stdout), "{sampled}");

    let recorded = session.record();
    let report = session.report(&[]);
    let (counted, stat) = session.stat();
    for (observed, document, run) in [(&recorded, &report, &report), (&counted, &stat, &stat["runs"][0])] {
        assert_eq!((observed.exit, &observed.stdout), (bare.exit, &bare.stdout), "{observed}");
        assert!(!observed.stderr.contains("cannot be preloaded"), "{observed}");
        let allocations = run["totals"]["allocations"].as_u64().unwrap();
        let named = named(&document["warnings"]);
        assert!(
            is_told(well, allocations, named),
            "{well} ended well, {allocations} allocations, {named} named: {:#}",
            document["warnings"]
        );
    }
}

/// How many processes the warnings name for the filter.
fn named(warnings: &Value) -> u64 {
    let of = |text: &Value| match text.as_str().filter(|text| text.ends_with(REASON)) {
        None => 0,
        Some(text) => text.split_once(" processes (").map_or(1, |(count, _)| count.parse().unwrap()),
    };
    warnings.as_array().unwrap().iter().map(of).sum()
}

/// Each child makes a hundred allocations, and the others together the one of their output.
fn is_recorded_or_named(well: u64, allocations: u64, named: u64) -> bool {
    let recorded = allocations / 100;
    allocations % 100 == 1 && recorded > 400 && named > 10 && recorded + named >= well
}

#[test]
fn who_takes_its_own_place_behind_a_filter_ends_as_it_would() {
    each_call("at-once", is_recorded_or_named);
}

#[test]
fn who_forks_children_that_start_programs_behind_a_filter_is_told_of_them() {
    each_call("forked", is_recorded_or_named);
}

#[test]
fn who_spawns_programs_behind_a_filter_is_told_of_them() {
    each_call("spawned", is_recorded_or_named);
}

/// With a thread, and with a forked child, which is recorded like any other where the filter is against none of our calls.
#[test]
fn who_goes_on_behind_a_filter_is_recorded_there() {
    each_call("no", |well, allocations, named| allocations > well * 35_200 + 400 * 100 && named == 0);
}

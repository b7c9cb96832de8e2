//! The stored logs, each with the text that people see and the document that scripts read.

use super::*;
use crate::schema_tests::assert_fits;
use mallow_formats::gc_log::{self, Choice};
use mallow_growth::Verdict;
use mallow_query::gc_log::judged;
use mallow_text::gc_log as text;
use serde_json::Value;

const OBJECTS: &str = include_str!("../../../fixtures/gc-log/objects.tsv");
const NATIVE: &str = include_str!("../../../fixtures/gc-log/native.tsv");
const CLEAN: &str = include_str!("../../../fixtures/gc-log/clean.tsv");

fn report(text: &str) -> GcReport {
    judged("ruby.log", &gc_log::read(text.as_bytes(), &Choice::default()).expect("a log"))
}

/// The log without the columns of these names: their header is another one.
fn without(text: &str, names: &[&str]) -> String {
    let mut text = text.to_owned();
    for name in names {
        text = text.replacen(&format!("\t{name}\t"), &format!("\tx{name}\t"), 1);
    }
    text
}

#[test]
fn verdicts_of_the_stored_logs() {
    // The interpreter's own memory rises by 400 KiB in the beginning of the clean one.
    for (log, verdict, code) in
        [(OBJECTS, Verdict::Leaking, 1), (NATIVE, Verdict::Inconclusive, 3), (CLEAN, Verdict::Plateau, 0)]
    {
        let report = report(log);
        assert_eq!(report.conclusion.verdict, verdict, "{}", text::text(&report));
        assert_eq!(report.weight().exit_code(), code);
    }
}

#[test]
fn the_document_has_the_published_shape() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/schema/gc-log.json")).expect("a schema");
    for log in [OBJECTS, NATIVE, CLEAN] {
        assert_fits(&document(&report(log)), &schema);
        assert_fits(&document(&report(&without(log, &["access", "rss", "major_by"]))), &schema);
    }
}

#[test]
fn without_requests_it_runs_over_time_and_without_a_clock_over_collections() {
    let timed = report(&without(OBJECTS, &["access"]));
    assert_eq!(timed.axis, Axis::Seconds);
    // Requests took longer and longer while it was traced, so growth over time slows down.
    assert_eq!(timed.conclusion.verdict, Verdict::Inconclusive, "{}", text::text(&timed));
    assert!(text::text(&timed).contains("There is no column\nof requests, so they run over time"));
    let blind = without(OBJECTS, &["access"]).replace("\t1795", "\t5");
    let blind = report(&blind);
    assert_eq!(blind.axis, Axis::Collections);
}

#[test]
fn without_full_collections_growth_stays_open() {
    let report = report(&without(OBJECTS, &["major_by"]));
    assert_eq!(report.lines, JudgedLines::Swept);
    assert_eq!(report.conclusion.verdict, Verdict::Inconclusive, "{}", text::text(&report));
}

#[test]
fn lines_fit_the_terminal() {
    for log in [OBJECTS, NATIVE, CLEAN] {
        for names in [&[] as &[&str], &["access"], &["major_by", "rss"]] {
            let text = text::text(&report(&without(log, names)));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}

#[test]
fn the_drawing_has_both_scales() {
    let svg = text::svg(&report(NATIVE));
    for part in ["heap_live_slots", "rss", "objects", "resident memory", "requests (access)", "judged"] {
        assert!(svg.contains(part), "{part}");
    }
    let alone = text::svg(&report(&without(NATIVE, &["rss"])));
    assert!(!alone.contains("resident memory<"));
}

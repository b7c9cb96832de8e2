//! The pages as people see them.

use super::*;
use insta::assert_snapshot;
use mallow_samples::soak as sample;

#[track_caller]
fn page(report: &SoakReport) -> String {
    let profiles = ("before.mallow".into(), "after.mallow".into());
    let is_leak = report.conclusion.verdict == Verdict::Leaking;
    let page = Page { report, limit: 2, fail_on: &[], profiles: is_leak.then_some(&profiles) };
    let text = page.text(Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    text
}

#[test]
fn leaking() {
    assert_snapshot!(page(&sample::leaking()));
}

#[test]
fn plateau() {
    assert_snapshot!(page(&sample::plateau()));
}

#[test]
fn clean_with_findings_and_a_comparison() {
    assert_snapshot!(page(&sample::compared()));
}

#[test]
fn mappings() {
    assert_snapshot!(page(&sample::mappings()));
}

#[test]
fn a_program_whose_heap_is_not_mallocs() {
    assert_snapshot!(page(&sample::go(Verdict::Mappings)));
}

#[test]
fn verdicts_that_do_not_rest_on_the_live_heap() {
    let heads: Vec<String> = [sample::go(Verdict::Clean), sample::steady(), sample::managed()]
        .iter()
        .map(|report| page(report).split("\n\n").next().unwrap_or_default().to_owned())
        .collect();
    assert_snapshot!(heads.join("\n\n"));
}

#[test]
fn inconclusive() {
    assert_snapshot!(page(&sample::inconclusive()));
}

#[test]
fn invalid() {
    assert_snapshot!(page(&sample::invalid()));
}

#[test]
fn the_other_verdicts_begin_with_a_sentence() {
    let heads: Vec<String> = [sample::retention(), sample::fragmentation(), sample::grows_when_idle()]
        .iter()
        .map(|report| page(report).split("\n\n").next().unwrap_or_default().to_owned())
        .collect();
    assert_snapshot!(heads.join("\n\n"));
}

#[test]
fn emphasis_moves_nothing() {
    let report = sample::leaking();
    let page = Page { report: &report, limit: 2, fail_on: &[], profiles: None };
    let coloured = page.text(Style { colour: true, ..Style::PLAIN });
    let plain = coloured.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
    assert_eq!(plain, page.text(Style::PLAIN));
    assert!(coloured.starts_with("\x1b[1mLEAKING: "), "{coloured}");
}

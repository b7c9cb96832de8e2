//! The reports as they are shown.

use super::*;
use insta::assert_snapshot;
use mallow_evidence::HeapSnapshots;
use mallow_samples::soak as sample;
use mallow_view::heap::{FieldRow, HeldGrowth, ObjectId, ObjectReport, ObjectRow, Sum};

#[track_caller]
fn page(report: &SoakReport) -> String {
    let profiles = ("before.mallow".into(), "after.mallow".into());
    let is_leak = report.conclusion.verdict == Verdict::Leaking;
    let page = Page { limit: 2, profiles: is_leak.then_some(&profiles), ..Page::of(report) };
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
fn the_class_that_grows_on_a_managed_heap() {
    let mut report = sample::managed();
    report.snapshots = Some(HeapSnapshots {
        pid: 4242,
        runtime: "ruby".into(),
        before: "kept/4242/before.json".into(),
        after: "kept/4242/after.json".into(),
        requests: 6000,
    });
    let growth = HeldGrowth {
        class: "Session".into(),
        kind: "OBJECT".into(),
        holder: Some("Array".into()),
        before: Sum { objects: 10, bytes: 400, retained_bytes: 3210 },
        after: Sum { objects: 6010, bytes: 240_400, retained_bytes: 1_929_210 },
        example: ObjectId(7),
        site: Some(("/srv/app/models/session.rb:12".into(), 6000)),
    };
    let row = |label: &str| ObjectRow {
        id: "0x7efcab3d0d70".into(),
        label: label.into(),
        bytes: 40,
        retained_bytes: Some(321),
    };
    let field = |field: &str, label| FieldRow { field: field.into(), holds: true, object: row(label) };
    let example = ObjectReport {
        object: row("Session"),
        is_partial: false,
        kind: "OBJECT".into(),
        site: None,
        generation: None,
        roots: Vec::new(),
        references: Vec::new(),
        referrers: Vec::new(),
        path_root: Some("vm".into()),
        path: vec![field("", "Class Shop"), field(".@sessions", "Array"), field("", "Session")],
        dominators: Vec::new(),
        retained: Vec::new(),
    };
    let held = [HeldRow { growth, example }];
    let page = Page { limit: 2, held: &held, are_snapshots_kept: true, ..Page::of(&report) };
    let text = page.text(Style::PLAIN);
    let from = text.find("On the heap").unwrap();
    let to =
        text[from..].find("Where the leak").or(text[from..].find("                      first")).unwrap();
    assert_snapshot!(&text[from..from + to]);
    assert!(text.contains("next: mallow heap diff kept/4242/before.json kept/4242/after.json\n"), "{text}");
    assert!(!text.contains("--heapsnapshot-signal"), "nobody is sent for what was taken\n{text}");
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
    let page = Page { limit: 2, ..Page::of(&report) };
    let coloured = page.text(Style { colour: true, ..Style::PLAIN });
    let plain = coloured.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
    assert_eq!(plain, page.text(Style::PLAIN));
    assert!(coloured.starts_with("\x1b[1mLEAKING: "), "{coloured}");
}

//! The reports as they are shown.

use super::*;
use insta::assert_snapshot;
use mallow_samples::cpu::rows;
use mallow_view::{Direction, Filter, annotated as lines_of};

fn options(layout: CpuLayout) -> CpuOptions {
    CpuOptions {
        layout,
        by: CpuMetric::Time,
        limit: None,
        shown: FrameVisibility::WithoutStart,
        filter: Filter::default(),
        part: None,
    }
}

#[track_caller]
fn fits(text: String) -> String {
    assert!(text.lines().all(|line| line.columns() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

#[track_caller]
fn page(layout: CpuLayout) -> String {
    fits(report(&rows(), &options(layout), Style::PLAIN))
}

#[test]
fn of_a_recording() {
    assert_snapshot!(fits(summary(&rows(), "rows.7.cpu.pb.gz", Duration::from_micros(4321), Style::PLAIN)));
}

#[test]
fn of_nothing() {
    let mut nothing = rows();
    (nothing.sites, nothing.samples) = (Vec::new(), Vec::new());
    (nothing.processes, nothing.threads) = (Vec::new(), Vec::new());
    nothing.quality = Some(Quality::default());
    assert_snapshot!(fits(summary(&nothing, "rows.7.cpu.pb.gz", Duration::from_micros(4321), Style::PLAIN)));
}

#[test]
fn of_programs_without_the_timers() {
    let mut unseen = rows();
    (unseen.sites, unseen.samples) = (Vec::new(), Vec::new());
    (unseen.processes, unseen.threads) = (Vec::new(), Vec::new());
    let quality = |not_seen_ns| Some(Quality { not_seen_ns: Some(not_seen_ns), ..Quality::default() });
    unseen.quality = quality(301_000_000);
    let said = summary(&unseen, "rows.7.cpu.pb.gz", Duration::ZERO, Style::PLAIN);
    assert!(said.contains("the library with the timers was not in what took the time"), "{said}");
    fits(said);
    unseen.quality = quality(3_000_000);
    let said = summary(&unseen, "rows.7.cpu.pb.gz", Duration::ZERO, Style::PLAIN);
    assert!(said.contains("it took no time, or less"), "{said}");
}

#[test]
fn of_what_was_lost_and_not_seen() {
    let lossy = Quality { samples: 400, lost: 7, whole: 390, too_deep: 4, ..Quality::default() };
    assert_snapshot!(fits(trust(&lossy, false).join("\n")));
    let of_waits = trust(&lossy, true).join("\n");
    assert!(of_waits.contains("7 samples lost") && of_waits.contains("--stack-size"), "{of_waits}");
}

#[test]
fn of_waits() {
    let waits = mallow_samples::cpu::waits();
    assert_snapshot!(fits(summary(&waits, "rows.7.cpu.pb.gz", Duration::from_micros(4321), Style::PLAIN)));
    let page = |layout, by| fits(report(&waits, &CpuOptions { by, ..options(layout) }, Style::PLAIN));
    assert_snapshot!(page(CpuLayout::Stacks, CpuMetric::OffCpu));
    assert_snapshot!(page(CpuLayout::Functions(FunctionOrder::Under), CpuMetric::Switches));
    assert_snapshot!(page(CpuLayout::Threads, CpuMetric::Blocked));
    assert_snapshot!(page(CpuLayout::Timeline, CpuMetric::OffCpu));
}

#[test]
fn functions_by_themselves() {
    assert_snapshot!(page(CpuLayout::Functions(FunctionOrder::Own)));
}

#[test]
fn functions_with_their_callees() {
    assert_snapshot!(page(CpuLayout::Functions(FunctionOrder::Under)));
}

#[test]
fn a_filter_tells_its_share() {
    let filter = Filter { function: Some("parse_rows".into()), ..Filter::default() };
    let options = CpuOptions { filter, ..options(CpuLayout::Functions(FunctionOrder::Own)) };
    assert_snapshot!(fits(report(&rows(), &options, Style::PLAIN)));
}

#[test]
fn trees_of_both_directions() {
    let tree = |direction| page(CpuLayout::Tree { direction, threshold_ppm: 10_000, depth: 9 });
    assert_snapshot!(tree(Direction::Callees));
    assert_snapshot!(tree(Direction::Callers));
}

#[test]
fn stacks_threads_and_time() {
    assert_snapshot!(page(CpuLayout::Stacks));
    assert_snapshot!(page(CpuLayout::Threads));
    assert_snapshot!(page(CpuLayout::Timeline));
}

#[test]
fn the_lines_of_a_function() {
    let profile = rows();
    let by = CpuMetric::Time;
    let whole = by.of_site(&profile.totals());
    let shown = |wanted: &str, source: &dyn Fn() -> Result<Vec<String>, String>| {
        let functions = lines_of(&profile, wanted, by).into_iter().map(|function| (function, source()));
        fits(annotated(&functions.collect::<Vec<_>>(), by, whole, wanted, Style::PLAIN))
    };
    let source = || Ok((1..=30).map(|line| format!("\tline {line} of the source")).collect());
    assert_snapshot!(shown("parse_rows", &source));
    assert_snapshot!(shown("field", &|| Err("The source is not there.".to_owned())));
    assert_snapshot!(shown("nothing", &source), @"No function on any stack has \"nothing\" in its name.");
}

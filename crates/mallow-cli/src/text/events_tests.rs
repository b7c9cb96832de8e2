//! What events tell, as people see it at 80 columns, and as JSON against its schema.

use super::*;
use crate::json::ReportJson;
use crate::json::tests::assert_fits;
use crate::json_events::{EventsJson, WithEvents};
use crate::report_events::{Lines, OfProcess};
use crate::request::{Layout, ReportView};
use crate::sample;
use crate::suppressions::Applied;
use crate::text::leaks::freed_at_end;
use crate::text::report::{Subject, report};
use insta::assert_snapshot;
use mallow_formats::Format;
use mallow_profile::analysis::{Course, Findings, Pass, Plan, Slices, Window};
use mallow_profile::{LiveSample, Measure, ProcessIndex, Sample, StackId, Thread, ThreadIndex};
use mallow_view::brief::Brief;
use mallow_view::chains::Chains;
use mallow_view::histogram::Histograms;
use mallow_view::leaks::Leaks;
use mallow_view::threads::Threads;
use mallow_view::timeline::{OverTime, of_live_samples};
use mallow_view::window::WindowSites;
use mallow_view::{Filter, Shown};

const END_US: u64 = 1_230_000;

/// The leaky program with times: it loads rows for a second, then prints.
fn profile() -> Profile {
    let mut profile = sample::leaky_c();
    let process = &mut profile.processes[0];
    process.ended_us = END_US;
    let thread = |tid, name: &str| Thread { tid, name: name.into(), ..Thread::default() };
    process.threads = vec![thread(4242, "app"), thread(4243, "freeing in the background")];
    process.samples = (0..12).map(|i| Sample { time_us: i * 100_000, rss_bytes: (3 + i) << 20 }).collect();
    profile
}

/// Rows are forgotten, fields are freed at once or by the other thread, a buffer is resized, printing takes a buffer.
fn findings(profile: &Profile, plan: Plan) -> Findings {
    let stacks: Vec<StackId> = profile.sites.iter().filter_map(|site| site.stack).collect();
    let [rows, fields, buffer, print] = stacks[..] else { panic!("four sites") };
    let [main, other] = [ThreadIndex(0), ThreadIndex(1)];
    let mut pass = Pass::new(plan);
    let mut block = pass.alloc(main, buffer, 120, 900);
    for i in 0..1_000 {
        let time_us = 1_000 + i * 1_000;
        pass.alloc(main, rows, 300 + i % 100, time_us);
        let field = pass.alloc(main, fields, 16 + i % 5, time_us + 10);
        let by = if i % 10 == 0 { other } else { main };
        pass.free(by, field, time_us + 11 + i % 700);
        if i % 100 == 99 {
            block = pass.realloc(main, block, buffer, 120 << (i / 100), time_us + 20);
        }
    }
    pass.free(main, block, 1_005_000);
    pass.alloc(main, print, 1_024, 1_100_000);
    pass.finish()
}

fn everything(profile: &Profile, window: Window) -> Findings {
    let plan = Plan {
        window,
        window_sites: true,
        timeline: Some(Slices::new(window.from_us, window.to_us.min(END_US + 1), 70)),
        histogram: true,
        threads: true,
        chains: true,
        temporary_within: Some(2),
        shorter_than_us: Some(100),
        courses: Some(Course::slices(0, END_US)),
        ..Plan::default()
    };
    findings(profile, plan)
}

fn sites(filter: &Filter) -> SitesView<'_> {
    SitesView { shown: Shown::WithoutPlumbing, filter, limit: None }
}

#[track_caller]
fn shown(shows: &Shows<'_>) -> String {
    let filter = Filter::default();
    let text = text(shows, sites(&filter), Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

fn over_time<'a>(profile: &'a Profile, window: Window) -> OfProcess<'a> {
    let (process, filter) = (&profile.processes[0], Filter::default());
    let Some(timeline) = everything(profile, window).timeline else { panic!("no time line") };
    let lines = OverTime::of(profile, process, timeline, Shown::WithoutPlumbing, &filter);
    OfProcess { process, lines: Lines::Events(lines) }
}

const MIDDLE: Window = Window { from_us: 250_000, to_us: 500_000 };

#[test]
fn a_time_line() {
    let profile = profile();
    let timeline = Some(over_time(&profile, Window::ALL));
    assert_snapshot!(shown(&Shows { timeline, ..Shows::of(&profile) }));
}

#[test]
fn a_time_line_of_a_window() {
    let profile = profile();
    let timeline = Some(over_time(&profile, MIDDLE));
    assert_snapshot!(shown(&Shows { timeline, window: Some(MIDDLE), ..Shows::of(&profile) }));
}

#[test]
fn a_time_line_from_samples() {
    let mut profile = profile();
    profile.processes[0].live_samples = (0..40u64)
        .map(|i| LiveSample {
            time_us: i * 30_000,
            live_bytes: (i * (40 - i)) << 10,
            overhead_bytes: i << 6,
            stack_bytes: 0,
        })
        .collect();
    let process = &profile.processes[0];
    let time = Slices::new(0, END_US, 70);
    let lines = Lines::Samples { time, live: of_live_samples(process, &time) };
    let timeline = Some(OfProcess { process, lines });
    assert_snapshot!(shown(&Shows { timeline, ..Shows::of(&profile) }));
}

#[test]
fn a_window_and_a_moment() {
    let (profile, filter) = (profile(), Filter::default());
    let found = [everything(&profile, MIDDLE)];
    let sites = || Some(WindowSites::of(&profile, &found, Shown::WithoutPlumbing, &filter));
    let shows = Shows { window: Some(MIDDLE), window_sites: sites(), ..Shows::of(&profile) };
    assert_snapshot!("a_window", shown(&shows));
    assert_snapshot!("a_moment", shown(&Shows { at_only: true, ..shows }));
}

#[test]
fn sizes_and_lifetimes() {
    let profile = profile();
    let histograms = Some(Histograms::of(&[everything(&profile, Window::ALL)]));
    assert_snapshot!(shown(&Shows { histograms, ..Shows::of(&profile) }));
}

#[test]
fn threads_of_a_process() {
    let profile = profile();
    let found = [everything(&profile, Window::ALL)];
    let threads = Some(Threads::of(&profile, &[ProcessIndex(0)], &found));
    assert_snapshot!(shown(&Shows { threads, ..Shows::of(&profile) }));
}

#[test]
fn chains_of_reallocations() {
    let (profile, filter) = (profile(), Filter::default());
    let found = [everything(&profile, Window::ALL)];
    let chains = Some(Chains::of(&profile, &found, Shown::WithoutPlumbing, &filter));
    assert_snapshot!(shown(&Shows { chains, ..Shows::of(&profile) }));
}

#[test]
fn brief_blocks() {
    let (profile, filter) = (profile(), Filter::default());
    let found = everything(&profile, Window::ALL);
    let brief = |sites| Brief::of(&profile, sites, Shown::WithoutPlumbing, &filter);
    let temporary = Some((2, brief(&found.temporary)));
    let short_lived = Some((100, brief(&found.short_lived)));
    assert_snapshot!(shown(&Shows { temporary, short_lived, ..Shows::of(&profile) }));
}

#[test]
fn nothing_happened() {
    let profile = sample::nothing();
    let found = [Pass::new(Plan { histogram: true, ..Plan::default() }).finish()];
    let filter = Filter::default();
    let shows = Shows {
        window_sites: Some(WindowSites::of(&profile, &found, Shown::All, &filter)),
        histograms: Some(Histograms::of(&found)),
        threads: Some(Threads::of(&profile, &[ProcessIndex(0)], &found)),
        chains: Some(Chains::of(&profile, &found, Shown::All, &filter)),
        temporary: Some((1, Brief::of(&profile, [], Shown::All, &filter))),
        ..Shows::of(&profile)
    };
    assert_snapshot!(shown(&shows));
}

fn leaks(profile: &Profile) -> Leaks {
    let found = [everything(profile, Window::ALL)];
    Leaks::of(profile, &[ProcessIndex(0)], &found, Shown::WithoutPlumbing, &Filter::default())
}

fn leaked_view(layout: Layout) -> ReportView {
    let filter = Filter::default();
    ReportView { layout, limit: None, shown: Shown::WithoutPlumbing, filter, per: None }
}

#[test]
fn verdicts_beside_leaks() {
    let (profile, applied) = (profile(), Applied::default());
    let leaks = leaks(&profile);
    let subject =
        Subject { profile: &profile, format: Format::Mallow, applied: &applied, leaks: Some(&leaks) };
    let of = |layout| report(&subject, &leaked_view(layout), Style::PLAIN);
    assert_snapshot!("verdicts_with_stacks", of(Layout::Stacks(Measure::Leaked.into())));
    let tables = of(Layout::Tables);
    // Nothing was loaded in the last fifth of the run.
    assert!(tables.contains("from load_table, main\n                      levelled off\n"), "{tables}");
    assert_eq!(freed_at_end(&profile, &leaks, None, Style::PLAIN), "");
}

#[test]
fn what_grew_until_it_was_freed_at_the_end() {
    let mut profile = profile();
    profile.sites.iter_mut().for_each(|site| (site.totals.leaked_bytes, site.totals.leaked_blocks) = (0, 0));
    let Some(stack) = profile.sites[0].stack else { panic!("a stack") };
    let mut pass = Pass::new(Plan { courses: Some(Course::slices(0, END_US)), ..Plan::default() });
    let blocks: Vec<_> =
        (0..1_000).map(|i| pass.alloc(ThreadIndex(0), stack, 300, 1_000 + i * 1_200)).collect();
    blocks.into_iter().for_each(|block| pass.free(ThreadIndex(0), block, END_US - 10));
    let view = (Shown::WithoutPlumbing, Filter::default());
    let leaks = Leaks::of(&profile, &[ProcessIndex(0)], &[pass.finish()], view.0, &view.1);
    assert_eq!(leaks.judgement(Some(stack)), None);
    assert_snapshot!(freed_at_end(&profile, &leaks, None, Style::PLAIN));
}

#[test]
fn json_has_the_published_shape() {
    let schema = serde_json::from_str(include_str!("../../../../docs/schema/report.json")).unwrap();
    let (profile, applied, filter) = (profile(), Applied::default(), Filter::default());
    let found = [everything(&profile, MIDDLE)];
    let brief = |sites| Brief::of(&profile, sites, Shown::All, &filter);
    let shows = Shows {
        window: Some(MIDDLE),
        timeline: Some(over_time(&profile, MIDDLE)),
        window_sites: Some(WindowSites::of(&profile, &found, Shown::All, &filter)),
        histograms: Some(Histograms::of(&found)),
        threads: Some(Threads::of(&profile, &[ProcessIndex(0)], &found)),
        chains: Some(Chains::of(&profile, &found, Shown::All, &filter)),
        temporary: Some((2, brief(&found[0].temporary))),
        short_lived: Some((100, brief(&found[0].short_lived))),
        ..Shows::of(&profile)
    };
    let leaks = leaks(&profile);
    for (events, parts) in [
        (EventsJson::of(shows, 2), 7),
        (EventsJson::of_leaks(&profile, &leaks, 2), 1),
        (EventsJson::default(), 0),
    ] {
        let subject = Subject { profile: &profile, format: Format::Mallow, applied: &applied, leaks: None };
        let report = ReportJson::of(&subject, &leaked_view(Layout::Tables), true, &[]);
        let plain = serde_json::to_value(&report).unwrap();
        let document = serde_json::to_value(WithEvents { report, events }).unwrap();
        assert_fits(&document, &schema);
        let keys = |value: &serde_json::Value| value.as_object().map_or(0, |object| object.len());
        assert_eq!(keys(&document), keys(&plain) + parts);
        if parts == 7 {
            assert_eq!(document["window"]["totals"]["allocations"], 502);
            assert_eq!(document["window"]["sites"].as_array().map(Vec::len), Some(2));
            assert_eq!(document["timeline"]["slices"].as_array().map(Vec::len), Some(70));
        }
        if parts == 1 {
            assert_eq!(document["leaks"]["leaked"][0]["judgement"], "levelled_off");
        }
    }
}

#[test]
fn bars_rise_in_eighths() {
    assert_eq!(bars(&[0, 1, 8, 9, 16], 16, 2), ["   ▁█", " ▁███"]);
    assert_eq!(bars(&[1, 1_000_000], 1_000_000, 1), ["▁█"]);
    assert_eq!(bars(&[0, 0], 0, 2), ["", ""]);
    assert_eq!(bars(&[u64::MAX], u64::MAX, 3), ["█", "█", "█"]);
}

#[test]
fn a_bar_is_as_long_as_its_share() {
    assert_eq!(bar(1, 2, 4), "██");
    assert_eq!(bar(1, 1_000, 4), "▏");
    assert_eq!(bar(0, 5, 4), "");
    assert_eq!(bar(5, 0, 3), "███");
}

//! Reports of events as they are shown, in 80 columns.

use super::*;
use crate::report::leaks::freed_at_end;
use crate::report::report;
use insta::assert_snapshot;
use mallow_profile::analysis::{Pass, Plan, Slices, Trend, Window};
use mallow_profile::{LiveSample, Measure, ProcessIndex, ThreadIndex};
use mallow_samples::events::{END_US, MIDDLE, everything, leaks, over_time, profile};
use mallow_samples::profile as sample;
use mallow_view::chains::Chains;
use mallow_view::histogram::Histograms;
use mallow_view::leaks::Leaks;
use mallow_view::short_lived::ShortLived;
use mallow_view::threads::Threads;
use mallow_view::timeline::of_live_samples;
use mallow_view::window::WindowSites;
use mallow_view::{
    AppliedSuppressions, Filter, FrameVisibility, Layout, ProcessTimeline, ReportOptions, Subject,
    TimelineRows,
};
use std::path::Path;

fn sites(filter: &Filter) -> SiteOptions<'_> {
    SiteOptions { shown: FrameVisibility::WithoutPlumbing, filter, limit: None }
}

#[track_caller]
fn shown(shows: &EventReport<'_>) -> String {
    let filter = Filter::default();
    let text = text(shows, sites(&filter), Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

#[test]
fn a_time_line() {
    let profile = profile();
    let timeline = Some(over_time(&profile, Window::ALL));
    assert_snapshot!(shown(&EventReport { timeline, ..EventReport::of(&profile) }));
}

#[test]
fn a_time_line_of_a_window() {
    let profile = profile();
    let timeline = Some(over_time(&profile, MIDDLE));
    assert_snapshot!(shown(&EventReport { timeline, window: Some(MIDDLE), ..EventReport::of(&profile) }));
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
    let rows = TimelineRows::Samples { time, live: of_live_samples(process, &time) };
    let timeline = Some(ProcessTimeline { process, rows });
    assert_snapshot!(shown(&EventReport { timeline, ..EventReport::of(&profile) }));
}

#[test]
fn a_window_and_a_moment() {
    let (profile, filter) = (profile(), Filter::default());
    let found = [everything(&profile, MIDDLE)];
    let sites = || Some(WindowSites::of(&profile, &found, FrameVisibility::WithoutPlumbing, &filter));
    let shows = EventReport { window: Some(MIDDLE), window_sites: sites(), ..EventReport::of(&profile) };
    assert_snapshot!("a_window", shown(&shows));
    assert_snapshot!("a_moment", shown(&EventReport { at_only: true, ..shows }));
}

#[test]
fn sizes_and_lifetimes() {
    let profile = profile();
    let histograms = Some(Histograms::of(&[everything(&profile, Window::ALL)], true));
    assert_snapshot!(shown(&EventReport { histograms, ..EventReport::of(&profile) }));
}

#[test]
fn threads_of_a_process() {
    let profile = profile();
    let found = [everything(&profile, Window::ALL)];
    let threads = Some(Threads::of(&profile, &[ProcessIndex(0)], &found));
    assert_snapshot!(shown(&EventReport { threads, ..EventReport::of(&profile) }));
}

#[test]
fn chains_of_reallocations() {
    let (profile, filter) = (profile(), Filter::default());
    let found = [everything(&profile, Window::ALL)];
    let chains = Some(Chains::of(&profile, &found, FrameVisibility::WithoutPlumbing, &filter));
    assert_snapshot!(shown(&EventReport { chains, ..EventReport::of(&profile) }));
}

#[test]
fn short_lived_blocks() {
    let (profile, filter) = (profile(), Filter::default());
    let found = everything(&profile, Window::ALL);
    let short_lived = |sites| ShortLived::of(&profile, sites, FrameVisibility::WithoutPlumbing, &filter);
    let temporary = Some((2, short_lived(&found.temporary)));
    let short_lived = Some((100, short_lived(&found.short_lived)));
    assert_snapshot!(shown(&EventReport { temporary, short_lived, ..EventReport::of(&profile) }));
}

#[test]
fn nothing_happened() {
    let profile = sample::nothing();
    let found = [Pass::new(Plan { histogram: true, ..Plan::default() }).finish()];
    let filter = Filter::default();
    let shows = EventReport {
        window_sites: Some(WindowSites::of(&profile, &found, FrameVisibility::All, &filter)),
        histograms: Some(Histograms::of(&found, true)),
        threads: Some(Threads::of(&profile, &[ProcessIndex(0)], &found)),
        chains: Some(Chains::of(&profile, &found, FrameVisibility::All, &filter)),
        temporary: Some((1, ShortLived::of(&profile, [], FrameVisibility::All, &filter))),
        ..EventReport::of(&profile)
    };
    assert_snapshot!(shown(&shows));
}

fn leaked_view(layout: Layout) -> ReportOptions {
    let filter = Filter::default();
    ReportOptions { layout, limit: None, shown: FrameVisibility::WithoutPlumbing, filter, per: None }
}

#[test]
fn verdicts_beside_leaks() {
    let (profile, applied) = (profile(), AppliedSuppressions::default());
    let leaks = leaks(&profile);
    let subject = Subject {
        profile: &profile,
        file: Path::new("app.mallow"),
        origin: sample::TRACE,
        suppressions: &applied,
        leaks: Some(&leaks),
        part: None,
    };
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
    let mut pass = Pass::new(Plan { trends: Some(Trend::slices(0, END_US)), ..Plan::default() });
    let blocks: Vec<_> =
        (0..1_000).map(|i| pass.alloc(ThreadIndex(0), stack, 300, 1_000 + i * 1_200)).collect();
    blocks.into_iter().for_each(|block| pass.free(ThreadIndex(0), block, END_US - 10));
    let view = (FrameVisibility::WithoutPlumbing, Filter::default());
    let leaks = Leaks::of(&profile, &[ProcessIndex(0)], &[pass.finish()], view.0, &view.1);
    assert_eq!(leaks.conclusion(Some(stack)), None);
    assert_snapshot!(freed_at_end(&profile, &leaks, None, Style::PLAIN));
}

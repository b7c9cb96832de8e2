//! What only events tell: which processes, which window, one pass over each.
//!
//! What is found is told apart in `mallow-profile`, and made into rows in `mallow-view`.

mod options;

pub use options::{EventOptions, Moment};

use crate::failure::Failure;
use crate::passes::{Stop, all_processes, passes};
use crate::profile_file::ProfileFile;
use mallow_formats::Format;
use mallow_profile::analysis::{Findings, Plan, Slices, Window};
use mallow_profile::{Availability, Process, ProcessIndex, Profile};
use mallow_view::chains::Chains;
use mallow_view::histogram::Histograms;
use mallow_view::short_lived::ShortLived;
use mallow_view::threads::Threads;
use mallow_view::timeline::{OverTime, of_live_samples};
use mallow_view::window::WindowSites;
use mallow_view::{EventReport, ProcessTimeline, SiteOptions, TimelineRows};
use std::cmp::Reverse;

/// Returns the rows of all requested analyses. A time line has this number of slices.
pub(crate) fn event_report<'a>(
    document: &'a ProfileFile,
    asked: &EventOptions,
    sites: SiteOptions<'_>,
    slices: usize,
) -> Result<EventReport<'a>, Failure> {
    let profile = &document.profile;
    let typed = document.part.as_ref().and_then(|part| part.filter.as_deref());
    let processes: Vec<ProcessIndex> = all_processes(profile).collect();
    let window = asked.window(profile)?;
    let time_of = |process: &Process| time_of(process, window, slices);
    let longest = processes.iter().copied().max_by_key(|index| {
        let totals = &profile.processes[index.0 as usize].totals;
        (totals.allocations, Reverse(index.0))
    });
    let only_timeline = asked.timeline && asked.is_only_timeline();
    if only_timeline
        && !document.has_events()
        && let Some(lines) = of_samples(profile, &processes, window, slices)
    {
        return Ok(EventReport {
            timeline: Some(lines),
            window: asked.is_windowed().then_some(window),
            filter: typed,
            ..EventReport::of(profile)
        });
    }
    check_available(document, asked)?;
    let read: Vec<ProcessIndex> =
        if only_timeline { longest.into_iter().collect() } else { processes.clone() };
    let plan = |process: &Process| Plan {
        attribution: document.attribution,
        window,
        window_sites: asked.shows_window_sites(),
        timeline: asked.timeline.then(|| time_of(process)),
        histogram: asked.histogram,
        threads: asked.threads,
        chains: asked.chains,
        temporary_within: asked.temporary_within,
        shorter_than_us: asked.short_lived_us,
        ..Plan::default()
    };
    let mut findings = passes(document, &read, plan).map_err(|stop| match stop {
        Stop::NoEvents => without_events(document),
        Stop::Failed(failure) => failure,
    })?;
    for (index, findings) in read.iter().zip(&mut findings) {
        // At the recording's end every process has ended; then what each left behind is requested.
        if window.to_us < u64::MAX && profile.processes[index.0 as usize].ended_us < window.to_us {
            findings.end_before_window();
        }
    }
    let timeline = longest.and_then(|longest| {
        let at = read.iter().position(|&index| index == longest)?;
        let process = &profile.processes[longest.0 as usize];
        let timeline = findings[at].timeline.take()?;
        let rows = TimelineRows::Events(OverTime::of(profile, process, timeline, sites.shown, sites.filter));
        Some(ProcessTimeline { process, rows })
    });
    let findings = &findings[..];
    let SiteOptions { shown, filter, .. } = sites;
    let short_lived = |of: fn(&Findings) -> &[mallow_profile::analysis::ShortLivedSite]| {
        ShortLived::of(profile, findings.iter().flat_map(of), shown, filter)
    };
    Ok(EventReport {
        profile,
        window: asked.is_windowed().then_some(window),
        filter: typed,
        timeline,
        at_only: asked.at.is_some(),
        window_sites: asked.shows_window_sites().then(|| WindowSites::of(profile, findings, shown, filter)),
        histograms: asked.histogram.then(|| Histograms::of(findings, profile.known.lifetimes)),
        threads: asked.threads.then(|| Threads::of(profile, &read, findings)),
        chains: asked.chains.then(|| Chains::of(profile, findings, shown, filter)),
        temporary: asked.temporary_within.map(|within| (within, short_lived(|findings| &findings.temporary))),
        short_lived: asked.short_lived_us.map(|us| (us, short_lived(|findings| &findings.short_lived))),
    })
}

/// Returns the period of a process's time line.
pub(crate) fn time_of(process: &Process, window: Window, slices: usize) -> Slices {
    let start_us = process.started_us.max(window.from_us);
    // One more, because the last event may carry the time of the end.
    let end_us = process.ended_us.saturating_add(1).min(window.to_us);
    Slices::new(start_us, end_us, slices)
}

/// A time line from samples, where the source kept those and no events.
fn of_samples<'a>(
    profile: &'a Profile,
    processes: &[ProcessIndex],
    window: Window,
    slices: usize,
) -> Option<ProcessTimeline<'a>> {
    let sampled = processes.iter().map(|index| &profile.processes[index.0 as usize]);
    let process = sampled.max_by_key(|process| process.live_samples.len())?;
    let last_us = process.live_samples.last()?.time_us;
    let whole = Process { ended_us: process.ended_us.max(last_us), ..Process::default() };
    let time = time_of(&Process { started_us: process.started_us, ..whole }, window, slices);
    let live = of_live_samples(process, &time);
    Some(ProcessTimeline { process, rows: TimelineRows::Samples { time, live } })
}

/// Returns an error unless there are events that contain what is requested: heaptrack has no threads, does not
/// distinguish `realloc`, and samples the clock every ten milliseconds.
fn check_available(document: &ProfileFile, asked: &EventOptions) -> Result<(), Failure> {
    if !document.has_events() {
        return Err(without_events(document));
    }
    // A trace that was imported has what its file had.
    if document.format == Format::Mallow && document.profile.recording.counting_version > 0 {
        return Ok(());
    }
    let refused = |what: &str| {
        let path = document.path.display();
        let format = match document.format {
            Format::Mallow => "trace of another tool's file",
            format => format.name(),
        };
        Err(Failure::new(format!(
            "{path} is a {format}, which does not contain {what}; record the program with mallow record."
        )))
    };
    match asked {
        EventOptions { threads: true, .. } => refused("threads"),
        EventOptions { chains: true, .. } => refused("which blocks realloc resized"),
        EventOptions { temporary_within: Some(_), .. } => refused("which thread freed a block"),
        EventOptions { short_lived_us: Some(_), .. } => refused("lifetimes"),
        _ => Ok(()),
    }
}

/// Returns the error for a query that needs events.
pub(crate) fn without_events(document: &ProfileFile) -> Failure {
    let path = document.path.display();
    let imported = document.profile.recording.counting_version == 0;
    Failure::new(match document.format {
        Format::Mallow if document.profile.known == Availability::NOTHING => {
            format!("{path} ends or is damaged before its first events, so this is unknown.")
        }
        Format::Mallow if !imported => format!(
            "{path} has no events, only their sums, so this is unknown; record again without --summary-only."
        ),
        Format::Mallow => format!(
            "{path} came from another tool's file, which has no events, so this is unknown; record the program with \
             mallow record."
        ),
        format => format!(
            "{path} is a {format} without events, so this is unknown; record the program with mallow record."
        ),
    })
}

//! The part of `mallow report` that reads events: which processes, which window, one pass over each, then text or JSON.
//!
//! What events tell is found in `mallow-profile`, and made into rows in `mallow-view`.

mod request;

pub(crate) use request::EventsView;

use crate::failure::{Failure, reason};
use crate::json_events::EventsJson;
use crate::request::{Form, Layout, Report};
use crate::text::Style;
use crate::text::events;
use mallow_formats::Format;
use mallow_profile::ReallocBooking;
use mallow_profile::analysis::{Course, Findings, Pass, Plan, Slices, Window};
use mallow_profile::{Known, Measure, Process, ProcessIndex, Profile};
use mallow_trace::{Trace, TraceError};
use mallow_view::brief::Brief;
use mallow_view::chains::Chains;
use mallow_view::histogram::Histograms;
use mallow_view::leaks::Leaks;
use mallow_view::threads::Threads;
use mallow_view::timeline::{OverTime, of_live_samples};
use mallow_view::window::WindowSites;
use mallow_view::{Filter, Shown};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Slices of a time line in JSON.
const JSON_SLICES: usize = 100;

/// A profile, and where its events are.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) format: Format,
    pub(crate) profile: &'a Profile,
    pub(crate) booking: ReallocBooking,
}

/// What is shown of sites.
#[derive(Clone, Copy)]
pub(crate) struct SitesView<'a> {
    pub(crate) shown: Shown,
    pub(crate) filter: &'a Filter,
    pub(crate) limit: Option<usize>,
}

impl<'a> SitesView<'a> {
    fn of(report: &'a Report) -> SitesView<'a> {
        let view = &report.view;
        SitesView { shown: view.shown, filter: &view.filter, limit: view.limit }
    }
}

/// What was found, as rows.
pub(crate) struct Shows<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) window: Option<Window>,
    pub(crate) timeline: Option<OfProcess<'a>>,
    /// Whether the window's tables show only what was live at its end.
    pub(crate) at_only: bool,
    pub(crate) window_sites: Option<WindowSites>,
    pub(crate) histograms: Option<Histograms>,
    pub(crate) threads: Option<Threads<'a>>,
    pub(crate) chains: Option<Chains>,
    pub(crate) temporary: Option<(u64, Brief)>,
    pub(crate) short_lived: Option<(u64, Brief)>,
}

/// A time line and its process.
pub(crate) struct OfProcess<'a> {
    pub(crate) process: &'a Process,
    pub(crate) lines: Lines,
}

/// Where a time line comes from.
pub(crate) enum Lines {
    Events(OverTime),
    Samples { time: Slices, live: Vec<Option<mallow_profile::LiveSample>> },
}

/// The text of all that was asked for.
pub(crate) fn text(source: Source<'_>, report: &Report, style: Style) -> Result<String, Failure> {
    let sites = SitesView::of(report);
    let shows = shows(source, &report.events, sites, style.width.saturating_sub(events::GUTTER))?;
    Ok(events::text(&shows, sites, style))
}

/// The JSON of all that was asked for.
pub(crate) fn json<'a>(
    source: Source<'a>,
    report: &Report,
    leaks: Option<&Leaks>,
) -> Result<EventsJson<'a>, Failure> {
    let sites = SitesView { shown: Shown::All, ..SitesView::of(report) };
    let limit = sites.limit.unwrap_or(usize::MAX);
    if report.events.is_asked() {
        return Ok(EventsJson::of(shows(source, &report.events, sites, JSON_SLICES)?, limit));
    }
    Ok(leaks.map(|leaks| EventsJson::of_leaks(source.profile, leaks, limit)).unwrap_or_default())
}

/// What stands below a table of leaks.
pub(crate) fn tail(source: Source<'_>, report: &Report, leaks: Option<&Leaks>, style: Style) -> String {
    match leaks {
        Some(leaks) if report.view.layout.key().is_some() => {
            crate::text::leaks::freed_at_end(source.profile, leaks, report.view.limit, style)
        }
        _ => String::new(),
    }
}

/// Verdicts for a report that shows leaks. What leaks is shown without a verdict where there are no events, so this never
/// fails for want of them.
pub(crate) fn leaks_of(source: Source<'_>, report: &Report) -> Result<Option<Leaks>, Failure> {
    let shows_leaks = match report.view.layout.key() {
        None => report.form == Form::Text,
        Some(key) => key.weight() == Measure::Leaked && !matches!(report.view.layout, Layout::Tree(_)),
    };
    if !shows_leaks || report.events.is_asked() {
        return Ok(None);
    }
    let mut sites = SitesView::of(report);
    if report.form == Form::Json {
        sites.shown = Shown::All;
    }
    leaks(source, sites)
}

fn leaks(source: Source<'_>, sites: SitesView<'_>) -> Result<Option<Leaks>, Failure> {
    let profile = source.profile;
    let concerns = |process: ProcessIndex| {
        let mut own = profile.sites.iter().filter(|site| site.process == process);
        own.any(|site| Measure::Leaked.concerns(&site.totals))
    };
    let leaking: Vec<ProcessIndex> = all_processes(profile).filter(|&process| concerns(process)).collect();
    if source.format != Format::Mallow || leaking.is_empty() {
        return Ok(None);
    }
    let plan = |process: &Process| Plan {
        booking: source.booking,
        courses: Some(Course::slices(process.started_us, process.ended_us)),
        ..Plan::default()
    };
    match passes(source, &leaking, plan) {
        Ok(findings) => Ok(Some(Leaks::of(profile, &leaking, &findings, sites.shown, sites.filter))),
        Err(Stop::NoEvents) => Ok(None),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

fn all_processes(profile: &Profile) -> impl Iterator<Item = ProcessIndex> {
    (0..profile.processes.len() as u32).map(ProcessIndex)
}

/// Why there are no findings.
enum Stop {
    NoEvents,
    Failed(Failure),
}

/// One pass over each process.
fn passes(
    source: Source<'_>,
    processes: &[ProcessIndex],
    plan: impl Fn(&Process) -> Plan,
) -> Result<Vec<Findings>, Stop> {
    let refused = |error: TraceError| match error {
        TraceError::NoEvents => Stop::NoEvents,
        TraceError::Io(error) => {
            Stop::Failed(Failure::new(format!("cannot read {}: {}.", source.path.display(), reason(&error))))
        }
        other => Stop::Failed(Failure::new(format!("cannot read {}: {other}.", source.path.display()))),
    };
    let file = File::open(source.path).map_err(|error| refused(TraceError::Io(error)))?;
    let mut trace = Trace::open(BufReader::new(file)).map_err(refused)?;
    let mut found = Vec::with_capacity(processes.len());
    for &index in processes {
        let mut pass = Pass::new(plan(&source.profile.processes[index.0 as usize]));
        trace.analyse(index, &mut pass).map_err(refused)?;
        found.push(pass.finish());
    }
    Ok(found)
}

fn shows<'a>(
    source: Source<'a>,
    asked: &EventsView,
    sites: SitesView<'_>,
    slices: usize,
) -> Result<Shows<'a>, Failure> {
    let profile = source.profile;
    let processes = chosen(profile, asked.pid)?;
    let window = asked.window(profile)?;
    let time_of = |process: &Process| time_of(process, window, slices);
    let longest = processes.iter().copied().max_by_key(|index| {
        let totals = &profile.processes[index.0 as usize].totals;
        (totals.allocations, std::cmp::Reverse(index.0))
    });
    let only_timeline = asked.timeline && asked.is_only_timeline();
    if only_timeline && let Some(lines) = of_samples(profile, &processes, window, slices) {
        return Ok(Shows {
            timeline: Some(lines),
            window: asked.is_windowed().then_some(window),
            ..Shows::of(profile)
        });
    }
    if source.format != Format::Mallow || profile.known == Known::NOTHING {
        return Err(without_events(source));
    }
    let read: Vec<ProcessIndex> =
        if only_timeline { longest.into_iter().collect() } else { processes.clone() };
    let plan = |process: &Process| Plan {
        booking: source.booking,
        window,
        window_sites: asked.shows_window_sites(),
        timeline: asked.timeline.then(|| time_of(process)),
        histogram: asked.histogram,
        threads: asked.threads,
        chains: asked.chains,
        temporary_within: asked.temporary_within,
        shorter_than_us: asked.short_lived_us,
        courses: None,
    };
    let mut findings = passes(source, &read, plan).map_err(|stop| match stop {
        Stop::NoEvents => without_events(source),
        Stop::Failed(failure) => failure,
    })?;
    for (index, findings) in read.iter().zip(&mut findings) {
        // At the recording's end every process is gone; what each left behind is what is asked for then.
        if window.to_us < u64::MAX && profile.processes[index.0 as usize].ended_us < window.to_us {
            findings.end_before_window();
        }
    }
    let timeline = longest.and_then(|longest| {
        let at = read.iter().position(|&index| index == longest)?;
        let process = &profile.processes[longest.0 as usize];
        let timeline = findings[at].timeline.take()?;
        let lines = Lines::Events(OverTime::of(profile, process, timeline, sites.shown, sites.filter));
        Some(OfProcess { process, lines })
    });
    let findings = &findings[..];
    let SitesView { shown, filter, .. } = sites;
    let brief = |of: fn(&Findings) -> &[mallow_profile::analysis::BriefSite]| {
        Brief::of(profile, findings.iter().flat_map(of), shown, filter)
    };
    Ok(Shows {
        profile,
        window: asked.is_windowed().then_some(window),
        timeline,
        at_only: asked.at.is_some(),
        window_sites: asked.shows_window_sites().then(|| WindowSites::of(profile, findings, shown, filter)),
        histograms: asked.histogram.then(|| Histograms::of(findings)),
        threads: asked.threads.then(|| Threads::of(profile, &read, findings)),
        chains: asked.chains.then(|| Chains::of(profile, findings, shown, filter)),
        temporary: asked.temporary_within.map(|within| (within, brief(|findings| &findings.temporary))),
        short_lived: asked.short_lived_us.map(|us| (us, brief(|findings| &findings.short_lived))),
    })
}

impl<'a> Shows<'a> {
    /// Nothing yet.
    pub(crate) fn of(profile: &'a Profile) -> Shows<'a> {
        Shows {
            profile,
            window: None,
            timeline: None,
            at_only: false,
            window_sites: None,
            histograms: None,
            threads: None,
            chains: None,
            temporary: None,
            short_lived: None,
        }
    }
}

/// The stretch of time that a process's time line shows.
fn time_of(process: &Process, window: Window, slices: usize) -> Slices {
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
) -> Option<OfProcess<'a>> {
    let sampled = processes.iter().map(|index| &profile.processes[index.0 as usize]);
    let process = sampled.max_by_key(|process| process.live_samples.len())?;
    let last_us = process.live_samples.last()?.time_us;
    let whole = Process { ended_us: process.ended_us.max(last_us), ..Process::default() };
    let time = time_of(&Process { started_us: process.started_us, ..whole }, window, slices);
    let live = of_live_samples(process, &time);
    Some(OfProcess { process, lines: Lines::Samples { time, live } })
}

/// The processes with this id, or all of them.
fn chosen(profile: &Profile, pid: Option<u32>) -> Result<Vec<ProcessIndex>, Failure> {
    let has_pid = |index: &ProcessIndex| pid.is_none_or(|pid| profile.processes[index.0 as usize].pid == pid);
    let chosen: Vec<ProcessIndex> = all_processes(profile).filter(has_pid).collect();
    match pid {
        Some(pid) if chosen.is_empty() => {
            let mut pids: Vec<String> =
                profile.processes.iter().map(|process| process.pid.to_string()).collect();
            pids.dedup();
            pids.truncate(10);
            Err(Failure::new(format!("no process {pid} was recorded, only {}.", pids.join(", "))))
        }
        _ => Ok(chosen),
    }
}

/// One sentence for what only events could tell.
fn without_events(source: Source<'_>) -> Failure {
    let path = source.path.display();
    let imported = source.profile.recording.counting_version == 0;
    Failure::new(match source.format {
        Format::Mallow if source.profile.known == Known::NOTHING => {
            format!("{path} ends or is damaged before its first events, so this cannot be told.")
        }
        Format::Mallow if !imported => format!(
            "{path} holds no events, only their sums, so this cannot be told; record again without --summary-only."
        ),
        Format::Mallow => format!(
            "{path} came from another tool's file, which holds no events, so this cannot be told; record the program with \
             mallow record."
        ),
        format => format!(
            "{path} is a {format} without events, so this cannot be told; record the program with mallow record."
        ),
    })
}

//! What the events of a trace tell, put together for a report: one field for each question that was asked.

use crate::chains::Chains;
use crate::histogram::Histograms;
use crate::short_lived::ShortLived;
use crate::threads::Threads;
use crate::timeline::OverTime;
use crate::window::WindowSites;
use crate::{Filter, FrameVisibility};
use mallow_profile::analysis::{Slices, Window};
use mallow_profile::{LiveSample, Process, Profile};

/// How sites are shown.
#[derive(Clone, Copy, Debug)]
pub struct SiteOptions<'a> {
    /// Which frames of a stack are shown.
    pub shown: FrameVisibility,
    /// Which sites are shown.
    pub filter: &'a Filter,
    /// How many of them; `None` for the front end's default.
    pub limit: Option<usize>,
}

/// The results of analyses, as rows.
#[derive(Debug)]
pub struct EventReport<'a> {
    /// The profile that the events belong to.
    pub profile: &'a Profile,
    /// The window, if one was requested.
    pub window: Option<Window>,
    /// Its filter, if it has one.
    pub filter: Option<&'a str>,
    /// Live memory over time.
    pub timeline: Option<ProcessTimeline<'a>>,
    /// Whether the window's tables show only what was live at its end.
    pub at_only: bool,
    /// Sites in the window.
    pub window_sites: Option<WindowSites>,
    /// Sizes and lifetimes.
    pub histograms: Option<Histograms>,
    /// Which threads allocated and which freed.
    pub threads: Option<Threads<'a>>,
    /// Blocks that were resized again and again.
    pub chains: Option<Chains>,
    /// Blocks freed within so many allocations of their thread.
    pub temporary: Option<(u64, ShortLived)>,
    /// Blocks that lived for less than so many microseconds.
    pub short_lived: Option<(u64, ShortLived)>,
}

/// A time line and its process.
#[derive(Debug)]
pub struct ProcessTimeline<'a> {
    /// The process.
    pub process: &'a Process,
    /// Its time line.
    pub rows: TimelineRows,
}

/// The source of a time line.
#[derive(Debug)]
pub enum TimelineRows {
    /// From every event.
    Events(OverTime),
    /// From samples that the profile's source took.
    Samples {
        /// The stretch of time.
        time: Slices,
        /// A sample for each slice that has one.
        live: Vec<Option<LiveSample>>,
    },
}

impl<'a> EventReport<'a> {
    /// Nothing yet.
    pub fn of(profile: &'a Profile) -> EventReport<'a> {
        EventReport {
            profile,
            window: None,
            filter: None,
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

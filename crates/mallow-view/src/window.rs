//! What sites did in a window of time.

use crate::places::places;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_profile::Profile;
use mallow_profile::analysis::{Findings, WindowMetrics};

/// The subject of a table of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowMeasure {
    /// Allocated in the window.
    Allocated,
    /// Live at its end.
    Live,
    /// Allocated in the window and live at its end.
    Kept,
}

impl WindowMeasure {
    /// All of them, in the order in which they are shown.
    pub const ALL: [WindowMeasure; 3] = [WindowMeasure::Allocated, WindowMeasure::Live, WindowMeasure::Kept];

    /// Bytes, then blocks.
    pub fn of(self, metrics: &WindowMetrics) -> (u64, u64) {
        match self {
            WindowMeasure::Allocated => (metrics.bytes, metrics.allocations),
            WindowMeasure::Live => (metrics.live_bytes, metrics.live_blocks),
            WindowMeasure::Kept => (metrics.kept_bytes, metrics.kept_blocks),
        }
    }
}

/// Sites in a window.
#[derive(Clone, Debug)]
pub struct WindowSites {
    /// Over all sites, whatever the filter.
    pub totals: WindowMetrics,
    /// The rows that passed the filter, in the order of the last sort.
    pub rows: Vec<PlaceRow<WindowMetrics>>,
}

impl WindowSites {
    /// The sites of all processes.
    pub fn of(
        profile: &Profile,
        findings: &[Findings],
        shown: FrameVisibility,
        filter: &Filter,
    ) -> WindowSites {
        let mut totals = WindowMetrics::default();
        let sites = findings.iter().flat_map(|findings| &findings.window_sites);
        let sites = sites.map(|site| {
            totals.add(&site.metrics);
            (site.stack, &site.metrics)
        });
        let rows = places(profile, shown, filter, sites, WindowMetrics::add);
        let mut sites = WindowSites { totals, rows };
        sites.sort(WindowMeasure::Allocated);
        sites
    }

    /// Most bytes first, then most blocks.
    pub fn sort(&mut self, by: WindowMeasure) {
        self.rows.sort_by_key(|row| std::cmp::Reverse(by.of(&row.metrics)));
    }
}

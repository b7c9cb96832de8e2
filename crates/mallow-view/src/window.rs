//! What sites did in a window of time.

use crate::places::places;
use crate::{Filter, PlaceRow, Shown};
use mallow_profile::Profile;
use mallow_profile::analysis::{Findings, WindowFigures};

/// What a table of a window is about.
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
    pub fn of(self, figures: &WindowFigures) -> (u64, u64) {
        match self {
            WindowMeasure::Allocated => (figures.bytes, figures.allocations),
            WindowMeasure::Live => (figures.live_bytes, figures.live_blocks),
            WindowMeasure::Kept => (figures.kept_bytes, figures.kept_blocks),
        }
    }
}

/// Sites in a window.
#[derive(Clone, Debug)]
pub struct WindowSites {
    /// Over all sites, whatever the filter.
    pub totals: WindowFigures,
    /// The rows that passed the filter, in the order of the last sort.
    pub rows: Vec<PlaceRow<WindowFigures>>,
}

impl WindowSites {
    /// The sites of all processes.
    pub fn of(profile: &Profile, findings: &[Findings], shown: Shown, filter: &Filter) -> WindowSites {
        let mut totals = WindowFigures::default();
        let sites = findings.iter().flat_map(|findings| &findings.window_sites);
        let sites = sites.map(|site| {
            totals.add(&site.figures);
            (site.stack, &site.figures)
        });
        let rows = places(profile, shown, filter, sites, WindowFigures::add);
        let mut sites = WindowSites { totals, rows };
        sites.sort(WindowMeasure::Allocated);
        sites
    }

    /// Most bytes first, then most blocks.
    pub fn sort(&mut self, by: WindowMeasure) {
        self.rows.sort_by_key(|row| std::cmp::Reverse(by.of(&row.figures)));
    }
}

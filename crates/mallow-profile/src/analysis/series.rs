//! The live bytes of each site over time.
//!
//! Only slices in which a site changed are kept, 24 bytes for each: most sites are still most of the time.

use super::block::{SiteIndex, entry};
use super::slices::Slices;
use mallow_base::add_fields;

/// Live bytes in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// At the slice's end.
    pub live: u64,
    /// The least within the slice.
    pub low: u64,
}

/// Live bytes of one site by slice; slices without a change are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Slice and level, in the order of time.
    pub changes: Vec<(u32, Level)>,
}

impl Series {
    /// Adds the level of each slice to `levels`. What was live stays so until the next change. Of several series the
    /// sum of the lows may be lower than the low of their sum.
    pub fn add_to(&self, levels: &mut [Level]) {
        let (mut live, mut changes) = (0, self.changes.iter().peekable());
        for (slice, level) in levels.iter_mut().enumerate() {
            let mut own = Level { live, low: live };
            if let Some((_, changed)) = changes.next_if(|(at, _)| *at as usize == slice) {
                (own, live) = (*changed, changed.live);
            }
            add_fields!(level, own; live, low);
        }
    }

    /// The levels by slice.
    pub fn levels(&self, slices: &Slices) -> Vec<Level> {
        let mut levels = vec![Level::default(); slices.count()];
        self.add_to(&mut levels);
        levels
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    live: u64,
    low: u64,
    slice: u32,
    touched: bool,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    level: Level,
    site: u32,
    slice: u32,
}

/// The series of all sites, while events pass.
#[derive(Debug, Default)]
pub(super) struct SeriesAggregator {
    states: Vec<State>,
    points: Vec<Point>,
}

impl SeriesAggregator {
    #[inline]
    pub(super) fn grow(&mut self, site: SiteIndex, slice: usize, bytes: u64) {
        let state = self.touch(site, slice);
        state.live = state.live.wrapping_add(bytes);
    }

    #[inline]
    pub(super) fn shrink(&mut self, site: SiteIndex, slice: usize, bytes: u64) {
        let state = self.touch(site, slice);
        state.live = state.live.wrapping_sub(bytes);
        state.low = state.low.min(state.live);
    }

    /// Returns the site's live bytes now.
    #[inline]
    pub(super) fn live(&self, site: SiteIndex) -> u64 {
        self.states.get(site).map_or(0, |state| state.live)
    }

    #[inline]
    fn touch(&mut self, site: SiteIndex, slice: usize) -> &mut State {
        let state = entry(&mut self.states, site);
        let slice = slice as u32;
        if state.slice != slice {
            if state.touched {
                let level = Level { live: state.live, low: state.low };
                self.points.push(Point { level, site: site as u32, slice: state.slice });
            }
            (state.slice, state.low) = (slice, state.live);
        }
        state.touched = true;
        state
    }

    /// The series by site.
    pub(super) fn finish(self) -> Vec<Series> {
        // Most sites change in one slice, and a list that grows begins with room for four.
        let mut lengths: Vec<u32> = self.states.iter().map(|state| u32::from(state.touched)).collect();
        self.points.iter().for_each(|point| lengths[point.site as usize] += 1);
        let of_length = |length: &u32| Series { changes: Vec::with_capacity(*length as usize) };
        let mut series: Vec<Series> = lengths.iter().map(of_length).collect();
        drop(lengths);
        for point in &self.points {
            series[point.site as usize].changes.push((point.slice, point.level));
        }
        for (series, state) in series.iter_mut().zip(&self.states).filter(|(_, state)| state.touched) {
            series.changes.push((state.slice, Level { live: state.live, low: state.low }));
        }
        series
    }
}

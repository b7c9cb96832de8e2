//! Memory over time: slices of a window, and what each site held in them.

use super::block::{Block, Death, entry};
use super::series::{Series, SeriesAggregator};
use super::slices::{Cursor, Slices, Window};
use crate::StackId;

/// The events in a slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Bytes live at the slice's end.
    pub live_bytes: u64,
    /// Blocks live at the slice's end.
    pub live_blocks: u64,
    /// The most bytes that were live at a moment of it.
    pub live_bytes_max: u64,
    /// The most blocks that were live at a moment of it.
    pub live_blocks_max: u64,
}

/// Memory over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The period that is sliced.
    pub time: Slices,
    /// By slice.
    pub slices: Vec<Slice>,
    /// When most bytes were live; of equal moments the last.
    pub peak_us: u64,
    /// How many.
    pub peak_bytes: u64,
    /// The live blocks of sites.
    pub sites: Vec<TimelineSite>,
}

/// The live blocks of a site over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineSite {
    /// The stack; none when none was taken.
    pub stack: Option<StackId>,
    /// Its bytes when most bytes of the process were live.
    pub peak_bytes: u64,
    /// Its bytes by slice.
    pub series: Series,
}

/// The live blocks of a site at the latest peak, computed as in the aggregator: a peak only increments a number, and
/// a site stores its live blocks when it changes for the first time after it.
#[derive(Clone, Copy, Debug, Default)]
struct AtPeak {
    serial: u64,
    bytes: u64,
}

/// The timeline, while events pass.
#[derive(Debug)]
pub(super) struct TimelineAggregator {
    window: Window,
    time: Slices,
    cursor: Cursor,
    at: usize,
    slices: Vec<Slice>,
    live_bytes: u64,
    live_blocks: u64,
    series: SeriesAggregator,
    peak_us: u64,
    peak_bytes: u64,
    peak_serial: u64,
    at_peak: Vec<AtPeak>,
    /// Whether anything happened in the window yet.
    begun: bool,
}

impl TimelineAggregator {
    pub(super) fn new(window: Window, time: Slices) -> TimelineAggregator {
        TimelineAggregator {
            window,
            time,
            cursor: Cursor::new(time),
            at: 0,
            slices: vec![Slice::default(); time.count()],
            live_bytes: 0,
            live_blocks: 0,
            series: SeriesAggregator::default(),
            peak_us: window.from_us,
            peak_bytes: 0,
            peak_serial: 0,
            at_peak: Vec::new(),
            begun: false,
        }
    }

    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        if block.born_us >= self.window.to_us {
            return;
        }
        let inside = self.begin(block.born_us);
        self.keep_peak(block.site());
        self.live_bytes = self.live_bytes.wrapping_add(block.size);
        self.live_blocks += 1;
        self.series.grow(block.site(), self.at, block.size);
        if inside {
            let slice = &mut self.slices[self.at];
            slice.allocations += 1;
            slice.bytes = slice.bytes.wrapping_add(block.size);
            slice.live_bytes_max = slice.live_bytes_max.max(self.live_bytes);
            slice.live_blocks_max = slice.live_blocks_max.max(self.live_blocks);
            self.peak(block.born_us);
        }
    }

    #[inline]
    pub(super) fn died(&mut self, block: &Block, death: &Death) {
        if death.time_us >= self.window.to_us || block.born_us >= self.window.to_us {
            return;
        }
        let inside = self.begin(death.time_us);
        self.keep_peak(block.site());
        self.live_bytes = self.live_bytes.wrapping_sub(block.size);
        self.live_blocks -= 1;
        self.series.shrink(block.site(), self.at, block.size);
        self.slices[self.at].frees += u64::from(inside);
    }

    /// Goes to the slice of an event; whether it is in the window.
    #[inline]
    fn begin(&mut self, time_us: u64) -> bool {
        if time_us < self.window.from_us {
            return false;
        }
        if !self.begun {
            self.start();
        }
        let at = self.cursor.at(time_us);
        if at != self.at {
            self.pass_to(at);
        }
        true
    }

    /// What was live when the window began is its first level.
    #[cold]
    fn start(&mut self) {
        self.begun = true;
        let first = &mut self.slices[0];
        (first.live_bytes_max, first.live_blocks_max) = (self.live_bytes, self.live_blocks);
        self.peak(self.window.from_us);
    }

    /// Closes the slices before `at`.
    #[cold]
    fn pass_to(&mut self, at: usize) {
        for slice in &mut self.slices[self.at..at] {
            (slice.live_bytes, slice.live_blocks) = (self.live_bytes, self.live_blocks);
        }
        for slice in &mut self.slices[self.at + 1..=at] {
            (slice.live_bytes_max, slice.live_blocks_max) = (self.live_bytes, self.live_blocks);
        }
        self.at = at;
    }

    #[inline]
    fn peak(&mut self, time_us: u64) {
        if self.live_bytes >= self.peak_bytes {
            (self.peak_bytes, self.peak_us) = (self.live_bytes, time_us);
            self.peak_serial += 1;
        }
    }

    /// Before a site changes: what it holds is what it held at the latest peak, unless it changed since.
    #[inline]
    fn keep_peak(&mut self, site: usize) {
        let kept = entry(&mut self.at_peak, site);
        if kept.serial != self.peak_serial {
            *kept = AtPeak { serial: self.peak_serial, bytes: self.series.live(site) };
        }
    }

    /// The sites that ever held anything in the window.
    pub(super) fn finish(mut self, stack_of: impl Fn(usize) -> Option<StackId>) -> Timeline {
        if !self.begun {
            self.start();
        }
        let last = self.slices.len() - 1;
        self.pass_to(last);
        (self.slices[last].live_bytes, self.slices[last].live_blocks) = (self.live_bytes, self.live_blocks);
        for site in 0..self.at_peak.len() {
            self.keep_peak(site);
        }
        let sites = self.series.finish().into_iter().zip(&self.at_peak).enumerate();
        let held = |series: &Series| series.changes.iter().any(|(_, level)| level.live > 0);
        let sites = sites
            .filter(|(_, (series, at_peak))| at_peak.bytes > 0 || held(series))
            .map(|(site, (series, at_peak))| TimelineSite {
                stack: stack_of(site),
                peak_bytes: at_peak.bytes,
                series,
            })
            .collect();
        let (time, slices) = (self.time, self.slices);
        Timeline { time, slices, peak_us: self.peak_us, peak_bytes: self.peak_bytes, sites }
    }
}

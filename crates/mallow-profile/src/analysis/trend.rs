//! How a site's live set went over the run, and what that says about what it leaked.
//!
//! That a block is live at the end says little: a cache that is full, a table made once at start and a leak all look the
//! same then. How the live set came there tells them apart.
//!
//! Everything is decided on the *floor*: the live bytes that are never undercut again, `floor(t)` = the least that is live at any
//! moment from `t` up to the last 2 % of the run. What comes and goes on top of it, however much, does not touch it. It never
//! falls, so growth of the floor is memory that the run never got back. The last 2 % are left out because a program that
//! tidies up before it ends would pull the floor down. A block of no bytes counts as one byte.
//!
//! The rule, in this order; `run` is the process's time, `tenths` are tenths of the second half of the first 98 %:
//!
//! 1. nothing freed before the last 2 % (at most 1 in 100 blocks), then at least half of what was live: [`Verdict::FreedAtEnd`];
//! 2. no allocation after the first tenth of the run: [`Verdict::AtStart`];
//! 3. no allocation before its last tenth: [`Verdict::AtEnd`];
//! 4. fewer than [`ALLOCATIONS_MIN`] allocations, or a run below [`RUN_US_MIN`]: [`Verdict::TooFew`];
//! 5. the floor rose by at most 1/50 in the second half: [`Verdict::LevelledOff`];
//! 6. the floor rose in at least four of the five parts of the second half by more than half of an even share, and
//!    in the last two of them by at least half of what it rose in the first two: [`Verdict::Growing`]. But where
//!    as much had been live in the first half already, at least eight of the ten parts of the whole run must have risen
//!    so: what goes up and down may look like growth for half a run;
//! 7. as much had been live before the last quarter already, and fewer than five of the ten parts have risen; or the floor
//!    rose by at most a tenth of its rise in the last two parts, or there by less than a quarter of what it did in the
//!    first two: [`Verdict::LevelledOff`];
//! 8. nine tenths of the rise are in the last part, and less than half as much was live before: [`Verdict::AtEnd`];
//! 9. else [`Verdict::Irregular`].

use super::block::{Block, Death, entry};
use super::series::{Level, Series, SeriesAggregator};
use super::slices::{Cursor, Slices};
use crate::StackId;
use crate::metrics::first_us;
use mallow_base::{add_fields, words};

/// The share of a run, at its end, in which programs tidy up.
pub const SHARE_AT_END_PERCENT: usize = 2;
/// Below this many allocations a trend is a matter of chance.
const ALLOCATIONS_MIN: u64 = 20;
/// Below this many microseconds, a run has no trend.
const RUN_US_MIN: u64 = 1_000;
/// Slices of a run that is judged: each is a hundredth.
const SLICES: usize = 100;
/// The slices before the end.
const JUDGED: usize = SLICES - SHARE_AT_END_PERCENT;
/// Parts of the judged time, of which five are the second half.
const PARTS: usize = 10;

/// The trend of a site's live set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The floor rose all the time up to the end: a leak, or a cache without a bound.
    Growing,
    /// It rose and then stayed, or goes up and down: a cache, a pool.
    LevelledOff,
    /// Everything was allocated in the first tenth of the run.
    AtStart,
    /// Everything, or nearly, was allocated in the last tenth of the run.
    AtEnd,
    /// Nothing was freed before the last 2 % of the run, and then most: it was held all along, but not forgotten.
    FreedAtEnd,
    /// Too few allocations, or too short a run.
    TooFew,
    /// None of these.
    Irregular,
}

words! {
    Verdict {
        Growing = "growing",
        LevelledOff = "levelled_off",
        AtStart = "at_start",
        AtEnd = "at_end",
        FreedAtEnd = "freed_at_end",
        TooFew = "too_few",
        Irregular = "irregular",
    }
}

impl Verdict {
    /// Returns it in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Verdict::Growing => "growing steadily",
            Verdict::LevelledOff => "levelled off",
            Verdict::AtStart => "one-time at start",
            Verdict::AtEnd => "allocated only near the end",
            Verdict::FreedAtEnd => "freed only in the last 2 % of the run",
            Verdict::TooFew => "too few to say",
            Verdict::Irregular => "irregular",
        }
    }
}

/// The data of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trend {
    run: Slices,
    levels: Vec<Level>,
    counts: Counts,
}

/// A site and its trend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrendSite {
    /// The stack; none when none was taken.
    pub stack: Option<StackId>,
    /// Its live bytes by slice.
    pub series: Series,
    /// The rest that a trend is made from.
    pub counts: Counts,
}

/// Counts of a site, beside its levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations.
    pub allocations: u64,
    /// When the first was.
    pub first_us: u64,
    /// When the last was.
    pub last_us: u64,
    /// Blocks freed before the last 2 % of the run.
    pub frees_before_end: u64,
    /// Blocks freed in the last 2 % of the run.
    pub frees_at_end: u64,
    /// Bytes live when the last 2 % began.
    pub live_bytes_before_end: u64,
    /// Bytes of those that were freed afterwards.
    pub freed_bytes_at_end: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.first_us = first_us((self.allocations, self.first_us), (other.allocations, other.first_us));
        self.last_us = self.last_us.max(other.last_us);
        add_fields!(
            self, other; allocations, frees_before_end, frees_at_end, live_bytes_before_end,
            freed_bytes_at_end
        );
    }
}

impl Trend {
    /// Returns the slices of a run from its first to its last moment.
    pub fn slices(started_us: u64, ended_us: u64) -> Slices {
        Slices::new(started_us, ended_us, SLICES)
    }

    /// Nothing yet, in slices that [`Trend::slices`] made.
    pub fn new(run: Slices) -> Trend {
        Trend { run, levels: vec![Level::default(); run.count()], counts: Counts::default() }
    }

    /// Back to nothing, in the same slices.
    pub fn clear(&mut self) {
        self.levels.fill(Level::default());
        self.counts = Counts::default();
    }

    /// Adds a site, as sites that look the same are judged together.
    pub fn add(&mut self, site: &TrendSite) {
        site.series.add_to(&mut self.levels);
        self.counts.add(&site.counts);
    }

    /// Returns the counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The verdict, by the rule that this module opens with.
    pub fn verdict(&self) -> Verdict {
        let counts = &self.counts;
        let tenth_us = self.run.length_us() / 10;
        if self.was_freed_at_end() {
            Verdict::FreedAtEnd
        } else if counts.last_us <= self.run.start_us().saturating_add(tenth_us) {
            Verdict::AtStart
        } else if counts.first_us >= self.run.start_us().saturating_add(self.run.length_us() - tenth_us) {
            Verdict::AtEnd
        } else if counts.allocations < ALLOCATIONS_MIN || self.run.length_us() < RUN_US_MIN {
            Verdict::TooFew
        } else {
            self.by_floor()
        }
    }

    /// Returns whether what was freed only in the last 2 % had been growing up to then: it would be called a leak if the program
    /// had been killed.
    pub fn grew_until_freed_at_end(&self) -> bool {
        let enough = self.counts.allocations >= ALLOCATIONS_MIN && self.run.length_us() >= RUN_US_MIN;
        enough && self.was_freed_at_end() && self.by_floor() == Verdict::Growing
    }

    fn was_freed_at_end(&self) -> bool {
        let Counts { frees_before_end, frees_at_end, live_bytes_before_end, freed_bytes_at_end, .. } =
            self.counts;
        frees_at_end > 0
            && frees_before_end.saturating_mul(100) <= frees_at_end
            && freed_bytes_at_end.saturating_mul(2) >= live_bytes_before_end
    }

    /// Steps 5 to 9.
    fn by_floor(&self) -> Verdict {
        let levels = &self.levels[..JUDGED.min(self.levels.len())];
        let floor = floor_of(levels);
        let half = PARTS / 2;
        // The floor at the end of each part, the start's before them.
        let ends: Vec<u64> =
            (0..=PARTS).map(|part| floor_after(&floor, levels.len() * part / PARTS)).collect();
        let (end, rise) = (ends[PARTS], ends[PARTS] - ends[half]);
        if rise <= end / 50 {
            return Verdict::LevelledOff;
        }
        let risen = |from: usize, to: usize| ends[to] - ends[from];
        let (early, late) = (risen(half, half + 2), risen(PARTS - 2, PARTS));
        let highest = |until: usize| levels[..until].iter().map(|level| level.live).max().unwrap_or(0);
        let slower_by = |factor: u64| late.saturating_mul(factor) < early;
        let rising = |from: usize| {
            let least = risen(from, PARTS) / (2 * (PARTS - from) as u64);
            (from..PARTS).filter(|&part| risen(part, part + 1) > least).count()
        };
        let was_as_high = highest(levels.len() / 2) >= end;
        if rising(half) >= 4 && !slower_by(2) && (!was_as_high || rising(0) >= 8) {
            Verdict::Growing
        } else if highest(levels.len() * 3 / 4) >= end && rising(0) < 5 || late <= rise / 10 || slower_by(4) {
            Verdict::LevelledOff
        } else if risen(PARTS - 1, PARTS) >= rise - rise / 10
            && highest(levels.len() * (PARTS - 1) / PARTS) < end / 2
        {
            Verdict::AtEnd
        } else {
            Verdict::Irregular
        }
    }
}

/// By slice: the minimum of live bytes at any moment from the slice's end on; in the last slice, the live bytes at
/// its end.
fn floor_of(levels: &[Level]) -> Vec<u64> {
    let mut least = levels.last().map_or(0, |level| level.live);
    let mut floor = vec![least; levels.len()];
    for at in (1..levels.len()).rev() {
        least = least.min(levels[at].low).min(levels[at - 1].live);
        floor[at - 1] = least;
    }
    floor
}

fn floor_after(floor: &[u64], slices: usize) -> u64 {
    // Before the first slice nothing was live.
    slices.checked_sub(1).map_or(0, |at| floor[at])
}

/// The trends of all sites, while events pass.
#[derive(Debug)]
pub(super) struct TrendsAggregator {
    cursor: Cursor,
    /// The first moment of the last 2 %.
    end_us: u64,
    series: SeriesAggregator,
    counts: Vec<Counts>,
}

/// Returns the weight of a block: one of no bytes still counts as one.
fn weight(block: &Block) -> u64 {
    block.size.max(1)
}

impl TrendsAggregator {
    pub(super) fn new(run: Slices) -> TrendsAggregator {
        let end = run.count() * (100 - SHARE_AT_END_PERCENT) / 100;
        TrendsAggregator {
            cursor: Cursor::new(run),
            end_us: run.begin_us(end),
            series: SeriesAggregator::default(),
            counts: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn born(&mut self, block: &Block) {
        let slice = self.cursor.at(block.born_us);
        self.series.grow(block.site(), slice, weight(block));
        let counts = entry(&mut self.counts, block.site());
        if counts.allocations == 0 {
            counts.first_us = block.born_us;
        }
        counts.allocations += 1;
        counts.last_us = counts.last_us.max(block.born_us);
        if block.born_us < self.end_us {
            counts.live_bytes_before_end = counts.live_bytes_before_end.wrapping_add(weight(block));
        }
    }

    #[inline]
    pub(super) fn died(&mut self, block: &Block, death: &Death) {
        let slice = self.cursor.at(death.time_us);
        self.series.shrink(block.site(), slice, weight(block));
        let counts = entry(&mut self.counts, block.site());
        if death.time_us < self.end_us {
            counts.frees_before_end += 1;
            counts.live_bytes_before_end = counts.live_bytes_before_end.wrapping_sub(weight(block));
        } else if block.born_us < self.end_us {
            counts.frees_at_end += 1;
            counts.freed_bytes_at_end = counts.freed_bytes_at_end.wrapping_add(weight(block));
        }
    }

    pub(super) fn finish(self, stack_of: impl Fn(usize) -> Option<StackId>) -> Vec<TrendSite> {
        let sites = self.series.finish().into_iter().zip(self.counts).enumerate();
        let sites = sites.filter(|(_, (_, counts))| counts.allocations > 0);
        sites.map(|(site, (series, counts))| TrendSite { stack: stack_of(site), series, counts }).collect()
    }
}

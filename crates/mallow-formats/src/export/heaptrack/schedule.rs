//! The order of events: blocks that were live at neither moment are allocated and freed first, then all blocks of the
//! peak are allocated, then all but the leaked blocks are freed.
//!
//! heaptrack takes the first of equal peaks, so everything before must stay below the peak. It counts a block as
//! temporary if its free is the next event, and it compares pairs of size and stack, not blocks: if a block must not
//! count, an event of another pair has to be in between. The allocation of another block serves for that; if no block
//! fits below the peak, it is a free of [`Pair::NONE`], which changes no metric.

use super::blocks::{Blocks, Sum};
use super::tables::{Pair, Pairs};
use mallow_profile::{Profile, Site};
use std::io::{self, Write};

/// Equal blocks.
#[derive(Clone, Copy, Debug)]
struct Run {
    pair: Pair,
    size: u64,
    count: u64,
}

/// All events.
#[derive(Default)]
pub(super) struct Schedule {
    /// Freed at once, smallest first.
    temporary: Vec<Run>,
    /// Freed later, largest first.
    passing: Vec<Run>,
    /// As large as the peak: before it, they would become the peak.
    late_temporary: Vec<Run>,
    late_passing: Vec<Run>,
    /// Live at the peak and at the end, at the peak only, at the end only.
    both: Vec<Run>,
    peak: Vec<Run>,
    end: Vec<Run>,
    /// A temporary block among those of the peak: it is allocated last and freed first.
    last_of_peak: Option<Run>,
    /// The maximum of live bytes before the peak.
    budget: u64,
    allocations: u64,
    forced_sites: u64,
    temporary_lost: u64,
}

impl Schedule {
    pub(super) fn of(profile: &Profile, pairs: &mut Pairs) -> Schedule {
        let mut schedule = Schedule::default();
        let (mut peak_bytes, mut end_bytes, mut both_bytes) = (0u64, 0u64, 0u64);
        for site in &profile.sites {
            let blocks = Blocks::of(&site.totals, &profile.known);
            both_bytes = both_bytes.saturating_add(blocks.both.bytes);
            peak_bytes = peak_bytes.saturating_add(blocks.peak.bytes);
            end_bytes = end_bytes.saturating_add(blocks.end.bytes);
            schedule.add(site, blocks, profile.known.temporary, pairs);
        }
        let highest = both_bytes.saturating_add(peak_bytes.max(end_bytes));
        schedule.budget = highest.saturating_sub(1);
        // If a block is never freed, there is no room after the peak either.
        if both_bytes == 0 {
            schedule.set_late_aside(highest);
        }
        schedule.temporary.sort_by_key(|run| run.size);
        schedule.passing.sort_by_key(|run| std::cmp::Reverse(run.size));
        schedule
    }

    fn add(&mut self, site: &Site, mut blocks: Blocks, has_temporary: bool, pairs: &mut Pairs) {
        self.allocations = self.allocations.saturating_add(blocks.allocations());
        self.forced_sites += u64::from(blocks.is_forced);
        let mut runs = |sum: Sum| runs(sum, |size| pairs.number(size, site.stack));
        let wanted = if has_temporary { site.totals.temporary } else { 0 };
        let mut lost = wanted.saturating_sub(blocks.neither.blocks);
        if lost > 0 && blocks.peak.blocks > 0 && self.last_of_peak.is_none() {
            let size = blocks.peak.bytes / blocks.peak.blocks;
            self.last_of_peak = runs(Sum { blocks: 1, bytes: size }).first().copied();
            blocks.peak = Sum { blocks: blocks.peak.blocks - 1, bytes: blocks.peak.bytes - size };
            lost -= 1;
        }
        self.temporary_lost = self.temporary_lost.saturating_add(lost);
        self.both.extend(runs(blocks.both));
        self.peak.extend(runs(blocks.peak));
        self.end.extend(runs(blocks.end));
        let mut temporary = wanted;
        for run in runs(blocks.neither) {
            let count = run.count.min(temporary);
            temporary -= count;
            self.temporary.extend(Some(Run { count, ..run }).filter(|run| run.count > 0));
            self.passing.extend(Some(Run { count: run.count - count, ..run }).filter(|run| run.count > 0));
        }
    }

    fn set_late_aside(&mut self, peak_bytes: u64) {
        let is_late = |run: &mut Run| run.size > 0 && run.size == peak_bytes;
        self.late_temporary = self.temporary.extract_if(.., is_late).collect();
        self.late_passing = self.passing.extract_if(.., is_late).collect();
    }

    pub(super) fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Writes the blocks that are live neither at the peak nor at the end.
    pub(super) fn write_before_peak(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut temporary = self.temporary.clone();
        let mut passing = self.passing.clone();
        let mut next = 0;
        while next < passing.len() {
            let run = passing[next];
            let is_other = |other: &Run| other.count > 0 && other.pair != run.pair;
            let fits = |other: &Run| run.size.saturating_add(other.size) <= self.budget;
            // The smallest block of another pair; else a temporary one, whose own free is in between.
            let other = passing[next + 1..].iter().rposition(|other| is_other(other) && fits(other));
            let short_lived = temporary.iter().position(|other| other.count > 0 && fits(other));
            let count = if let Some(other) = other {
                let other = &mut passing[next + 1 + other];
                other.count -= 1;
                let count = self.fitting(run, other.size);
                write_passing(Run { count, ..run }, &Between::Block(other.pair), out)?;
                count
            } else if let Some(short_lived) = short_lived {
                temporary[short_lived].count -= 1;
                let count = self.fitting(run, temporary[short_lived].size);
                write_passing(Run { count, ..run }, &Between::Temporary(temporary[short_lived].pair), out)?;
                count
            } else {
                let count = self.fitting(run, 0);
                write_passing(Run { count, ..run }, &Between::Nothing, out)?;
                count
            };
            passing[next].count -= count;
            while passing.get(next).is_some_and(|run| run.count == 0) {
                next += 1;
            }
        }
        temporary.iter().try_for_each(|run| write_temporary(run, out))
    }

    /// Returns how many blocks of a run fit below the peak beside another block; at least one.
    fn fitting(&self, run: Run, beside: u64) -> u64 {
        let room = self.budget.saturating_sub(beside);
        room.checked_div(run.size).map_or(run.count, |count| count.clamp(1, run.count))
    }

    /// Writes the peak, and what follows it.
    pub(super) fn write_from_peak(&self, out: &mut dyn Write) -> io::Result<()> {
        let first_to_leave = self.last_of_peak.as_ref().or(self.peak.first()).map(|run| run.pair);
        let arriving = || self.both.iter().chain(&self.peak);
        // The last to be allocated must not be of the pair that is freed first, or it would count as temporary.
        let (early, later): (Vec<&Run>, Vec<&Run>) =
            arriving().partition(|run| Some(run.pair) == first_to_leave);
        for run in early.into_iter().chain(later.iter().copied()) {
            repeat('+', run.pair, run.count, out)?;
        }
        if let Some(run) = self.last_of_peak {
            repeat('+', run.pair, 1, out)?;
            repeat('-', run.pair, 1, out)?;
        } else if later.is_empty() && first_to_leave.is_some() {
            repeat('-', Pair::NONE, 1, out)?;
        }
        for run in &self.peak {
            repeat('-', run.pair, run.count, out)?;
        }
        self.late_temporary.iter().try_for_each(|run| write_temporary(run, out))?;
        for run in &self.late_passing {
            for _ in 0..run.count {
                write_passing(Run { count: 1, ..*run }, &Between::Nothing, out)?;
            }
        }
        self.end.iter().try_for_each(|run| repeat('+', run.pair, run.count, out))
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.forced_sites > 0 {
            warnings.push(format!(
                "sites whose metrics contradict each other: {}; the file gives them the allocations that what they held needs",
                self.forced_sites
            ));
        }
        if self.temporary_lost > 0 {
            warnings.push(format!(
                "of the temporary blocks that were live at the peak only one can be the last there: the file has {} too few",
                self.temporary_lost
            ));
        }
        warnings
    }
}

/// Returns blocks that are as equal as the sum allows: of two sizes at most.
fn runs(sum: Sum, mut pair: impl FnMut(u64) -> Pair) -> Vec<Run> {
    let size = sum.bytes.checked_div(sum.blocks).unwrap_or(0);
    let larger = sum.bytes.checked_rem(sum.blocks).unwrap_or(0);
    let counts = [(size.saturating_add(1), larger), (size, sum.blocks - larger)];
    let runs = counts.map(|(size, count)| (count > 0).then(|| Run { pair: pair(size), size, count }));
    runs.into_iter().flatten().collect()
}

/// The event between an allocation and its free.
enum Between {
    Block(Pair),
    Temporary(Pair),
    Nothing,
}

/// Writes blocks of one pair that are allocated and freed without counting as temporary.
fn write_passing(run: Run, between: &Between, out: &mut dyn Write) -> io::Result<()> {
    repeat('+', run.pair, run.count, out)?;
    match *between {
        Between::Block(other) => repeat('+', other, 1, out)?,
        Between::Temporary(other) => {
            repeat('+', other, 1, out)?;
            repeat('-', other, 1, out)?;
        }
        Between::Nothing => repeat('-', Pair::NONE, 1, out)?,
    }
    repeat('-', run.pair, run.count, out)?;
    if let Between::Block(other) = *between { repeat('-', other, 1, out) } else { Ok(()) }
}

fn write_temporary(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let events = format!("+ {0:x}\n- {0:x}\n", run.pair.0);
    (0..run.count).try_for_each(|_| out.write_all(events.as_bytes()))
}

fn repeat(event: char, pair: Pair, count: u64, out: &mut dyn Write) -> io::Result<()> {
    let event = format!("{event} {:x}\n", pair.0);
    (0..count).try_for_each(|_| out.write_all(event.as_bytes()))
}

//! One of the two profiles of a diff: its sites as they are compared.

use super::{DiffOptions, DiffSide};
use crate::Filter;
use crate::lines::Lines;
use crate::looks::Appearances;
use crate::sites::Wanted;
use mallow_base::Frame;
use mallow_stacks::{DiffSites, Metric, Module, Site, StackId, StackProfile, Stacks, Weights};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// Frames from the leaf that count at most, recursion once: deeper stacks are the same site below so many calls.
pub(super) const DEPTH_MAX: usize = 512;

/// A profile with its rows of sites that look the same. Half a million of them would not fit into memory apart, so their frames are numbered, and
/// the totals of a row that is a single site stay where they are.
pub(super) struct Side<'a, W> {
    /// Every frame once.
    frames: Vec<&'a Frame>,
    /// The stacks of all rows, one behind the other, leaf first.
    numbers: Vec<u32>,
    /// Where each ends.
    ends: Vec<u32>,
    sites: &'a [Site<W>],
    /// The totals of rows that are several sites, and of what no site has.
    sums: Vec<W>,
    rows: Vec<Row>,
    /// For each row whether the filter wants it.
    wanted: Vec<bool>,
}

/// Sites that look the same.
struct Row {
    totals: Totals,
    /// The stack that it is shown with.
    stack: Option<StackId>,
    /// How many frames of that stack are hidden on its leaf side.
    folded: u32,
}

/// Where the totals of a row are.
#[derive(Clone, Copy)]
enum Totals {
    /// Of the profile's sites.
    Site(u32),
    /// Of the sums.
    Sum(u32),
}

impl<'a, W: Weights> Side<'a, W> {
    pub(super) fn of(profile: &'a impl StackProfile<Weights = W>, options: &DiffOptions<W::Metric>) -> Self {
        let mut side = Self {
            frames: Vec::new(),
            numbers: Vec::new(),
            ends: Vec::new(),
            sites: profile.sites(),
            sums: Vec::new(),
            rows: Vec::new(),
            wanted: Vec::new(),
        };
        side.add_rows(profile.stacks(), options);
        let depth = options.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let (mut known, mut lines) = (FxHashMap::default(), Lines::default());
        let mut told = W::default();
        side.ends.reserve(side.rows.len() + 1);
        for row in 0..side.rows.len() {
            told.add(side.totals_of(row));
            let Row { stack, folded, .. } = side.rows[row];
            let frames = profile.stacks().frames(stack).skip(folded as usize);
            side.add(&mut known, lines.of(frames, options.shown).iter().take(depth).map(|line| line.frame));
        }
        side.numbers.shrink_to_fit();
        side.add_rest(profile.beyond(&told), options);
        side
    }

    /// Adds the rows: what the filter does not want, and then what it wants, even where they look the same.
    fn add_rows(&mut self, stacks: &Stacks, options: &DiffOptions<W::Metric>) {
        let filter = Filter { expression: options.filter.clone(), ..Filter::default() };
        let wanted = Wanted::of(stacks, &filter);
        let mut looks = Appearances::of_all(stacks, options.shown);
        for is_wanted in [false, true] {
            // Small keys, because there may be half a million sites.
            let mut by_look: FxHashMap<u32, u32> = FxHashMap::default();
            let sites = self.sites.iter().zip(0..);
            for (site, at) in sites.filter(|(site, _)| wanted.includes(site.stack) == is_wanted) {
                let (look, folded) = looks.of_stack(site.stack);
                match by_look.entry(look.unwrap_or(u32::MAX)) {
                    Entry::Occupied(row) => self.add_to_row(*row.get() as usize, &site.totals),
                    Entry::Vacant(entry) => {
                        entry.insert(self.rows.len() as u32);
                        self.rows.push(Row {
                            totals: Totals::Site(at),
                            stack: site.stack,
                            folded: folded as u32,
                        });
                    }
                }
            }
            self.wanted.resize(self.rows.len(), is_wanted);
        }
    }

    fn add_to_row(&mut self, row: usize, totals: &W) {
        let sum = match self.rows[row].totals {
            Totals::Sum(sum) => sum,
            Totals::Site(site) => {
                self.sums.push(self.sites[site as usize].totals);
                self.sums.len() as u32 - 1
            }
        };
        self.rows[row].totals = Totals::Sum(sum);
        self.sums[sum as usize].add(totals);
    }

    fn totals_of(&self, row: usize) -> &W {
        match self.rows[row].totals {
            Totals::Site(site) => &self.sites[site as usize].totals,
            Totals::Sum(sum) => &self.sums[sum as usize],
        }
    }

    fn add(&mut self, known: &mut FxHashMap<*const Frame, u32>, frames: impl Iterator<Item = &'a Frame>) {
        for frame in frames {
            let number = *known.entry(std::ptr::from_ref(frame)).or_insert_with(|| {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            });
            self.numbers.push(number);
        }
        self.ends.push(self.numbers.len() as u32);
    }

    /// Adds the part of the totals that no site has, as a site without a stack: some tools write only the largest
    /// sites.
    fn add_rest(&mut self, rest: W, options: &DiffOptions<W::Metric>) {
        if W::Metric::ALL.iter().any(|metric| metric.of_site(&rest) > 0) {
            self.ends.push(self.numbers.len() as u32);
            self.rows.push(Row { totals: Totals::Sum(self.sums.len() as u32), stack: None, folded: 0 });
            self.sums.push(rest);
            self.wanted.push(options.filter.is_none());
        }
    }

    fn frames_of(&self, site: usize) -> impl Iterator<Item = &'a Frame> {
        let begin = site.checked_sub(1).map_or(0, |before| self.ends[before]);
        let numbers = &self.numbers[begin as usize..self.ends[site] as usize];
        numbers.iter().map(|number| self.frames[*number as usize])
    }

    /// The metric of all sites.
    pub(super) fn total(&self, measure: W::Metric) -> u64 {
        let values = (0..self.rows.len()).map(|row| measure.of_site(self.totals_of(row)));
        values.fold(0, u64::saturating_add)
    }

    /// Returns whether the filter wants one of the sites.
    pub(super) fn wants(&self, sites: &[usize]) -> bool {
        sites.iter().any(|site| self.wanted[*site])
    }

    /// Some sites as part of a row; none if there are none.
    pub(super) fn part(&self, sites: &[usize], totals: W, by: W::Metric) -> Option<DiffSide<'a, W>> {
        let metric = |site: &usize| by.of_site(self.totals_of(*site));
        let heaviest = *sites.iter().max_by_key(|site| (metric(site), std::cmp::Reverse(**site)))?;
        Some(DiffSide {
            totals,
            stacks: sites.len(),
            stack: self.rows[heaviest].stack,
            frames: self.frames_of(heaviest).collect(),
        })
    }
}

impl<W: Weights> DiffSites for Side<'_, W> {
    type Weights = W;

    fn count(&self) -> usize {
        self.rows.len()
    }

    fn frames(&self, site: usize) -> impl Iterator<Item = &Frame> {
        self.frames_of(site)
    }

    fn totals(&self, site: usize) -> &W {
        self.totals_of(site)
    }
}

/// Paths of modules that are the very same file on both sides, by their build ids.
pub(super) fn same_modules<'a>(one: &'a Stacks, other: &Stacks) -> Vec<&'a str> {
    let has_id = |module: &&Module| !module.build_id.is_empty();
    let others: FxHashSet<&Module> = other.modules.iter().filter(has_id).collect();
    let same = one.modules.iter().filter(|module| others.contains(module));
    same.map(|module| module.path.as_str()).collect()
}

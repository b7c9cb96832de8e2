//! One of the two profiles of a diff: its sites as they are compared.

use super::{DiffOptions, DiffSide};
use crate::lines::Lines;
use crate::sites::{SiteRow, Wanted};
use crate::{Filter, Sites};
use mallow_base::Frame;
use mallow_stacks::{DiffSites, Metric, Module, StackProfile, Stacks, Weights};
use rustc_hash::{FxHashMap, FxHashSet};

/// Frames from the leaf that count at most, recursion once: deeper stacks are the same site below so many calls.
pub(super) const DEPTH_MAX: usize = 512;

/// A profile with its sites. Their frames are numbered, because half a million stacks would not fit into memory apart.
pub(super) struct Side<'a, W> {
    /// Every frame once.
    frames: Vec<&'a Frame>,
    /// The stacks of all sites, one behind the other, leaf first.
    numbers: Vec<u32>,
    /// Where each ends.
    ends: Vec<u32>,
    /// Each with the stack that it is shown with.
    sites: Vec<SiteRow<W>>,
    /// For each site whether the filter wants it.
    wanted: Vec<bool>,
}

impl<'a, W: Weights> Side<'a, W> {
    pub(super) fn of(profile: &'a impl StackProfile<Weights = W>, options: &DiffOptions<W::Metric>) -> Self {
        let filter = Filter { expression: options.filter.clone(), ..Filter::default() };
        let wanted = Wanted::of(profile.stacks(), &filter);
        // Matching and other sites are rows of their own, even if they look the same.
        let sites = profile.sites().iter().map(|site| (usize::from(wanted.includes(site.stack)), site));
        let groups = Sites::of_groups(profile.stacks(), options.shown, &Filter::default(), 2, sites);
        let depth = options.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let mut side = Self {
            frames: Vec::new(),
            numbers: Vec::new(),
            ends: Vec::new(),
            sites: Vec::new(),
            wanted: Vec::new(),
        };
        let (mut known, mut lines) = (FxHashMap::default(), Lines::default());
        let mut told = W::default();
        for (group, mut sites) in groups.into_iter().enumerate() {
            side.ends.reserve(sites.rows.len() + 1);
            for row in &sites.rows {
                let frames = lines.of(sites.frames(row), options.shown);
                told.add(&row.totals);
                side.add(&mut known, frames.iter().take(depth).map(|line| line.frame));
            }
            side.wanted.resize(side.ends.len(), group == 1);
            // Mostly all are in one group, and half a million rows stay where they are.
            if side.sites.is_empty() {
                side.sites = sites.rows;
            } else {
                side.sites.append(&mut sites.rows);
            }
        }
        side.numbers.shrink_to_fit();
        side.add_rest(profile.beyond(&told), options);
        side
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
            self.sites.push(SiteRow { totals: rest, stack: None, folded: 0 });
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
        self.sites.iter().map(|site| measure.of_site(&site.totals)).fold(0, u64::saturating_add)
    }

    /// Returns whether the filter wants one of the sites.
    pub(super) fn wants(&self, sites: &[usize]) -> bool {
        sites.iter().any(|site| self.wanted[*site])
    }

    /// Some sites as part of a row; none if there are none.
    pub(super) fn part(&self, sites: &[usize], totals: W, by: W::Metric) -> Option<DiffSide<'a, W>> {
        let metric = |site: &usize| by.of_site(&self.sites[*site].totals);
        let heaviest = *sites.iter().max_by_key(|site| (metric(site), std::cmp::Reverse(**site)))?;
        Some(DiffSide {
            totals,
            stacks: sites.len(),
            stack: self.sites[heaviest].stack,
            frames: self.frames_of(heaviest).collect(),
        })
    }
}

impl<W: Weights> DiffSites for Side<'_, W> {
    type Weights = W;

    fn count(&self) -> usize {
        self.sites.len()
    }

    fn frames(&self, site: usize) -> impl Iterator<Item = &Frame> {
        self.frames_of(site)
    }

    fn totals(&self, site: usize) -> &W {
        &self.sites[site].totals
    }
}

/// Paths of modules that are the very same file on both sides, by their build ids.
pub(super) fn same_modules<'a>(one: &'a Stacks, other: &Stacks) -> Vec<&'a str> {
    let has_id = |module: &&Module| !module.build_id.is_empty();
    let others: FxHashSet<&Module> = other.modules.iter().filter(has_id).collect();
    let same = one.modules.iter().filter(|module| others.contains(module));
    same.map(|module| module.path.as_str()).collect()
}

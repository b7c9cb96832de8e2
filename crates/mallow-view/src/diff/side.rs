//! One of the two profiles of a diff: its sites as they are compared.

use super::{DiffOptions, DiffSide};
use crate::sites::Wanted;
use crate::{Filter, Sites, lines};
use mallow_base::Frame;
use mallow_stacks::{DiffSite, Metric, Module, StackId, StackProfile, Stacks, Weights};
use rustc_hash::FxHashSet;

/// Frames from the leaf that count at most, recursion once: deeper stacks are the same site below so many calls.
pub(super) const DEPTH_MAX: usize = 512;

/// A profile with its sites.
pub(super) struct Side<'a, W> {
    pub(super) sites: Vec<DiffSite<'a, W>>,
    stacks: Vec<Option<StackId>>,
    /// For each site whether the filter wants it.
    wanted: Vec<bool>,
}

impl<'a, W: Weights> Side<'a, W> {
    pub(super) fn of(profile: &'a impl StackProfile<Weights = W>, options: &DiffOptions<W::Metric>) -> Self {
        let filter = Filter { expression: options.filter.clone(), ..Filter::default() };
        let wanted = Wanted::of(profile.stacks(), &filter);
        // Matching and other sites are rows of their own, even if they look the same.
        let sites = profile.sites().iter().map(|site| (usize::from(wanted.includes(site.stack)), site));
        let rows = Sites::of_groups(profile.stacks(), options.shown, &Filter::default(), 2, sites);
        let depth = options.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let mut side = Self { sites: Vec::new(), stacks: Vec::new(), wanted: Vec::new() };
        let mut told = W::default();
        for (group, sites) in rows.iter().enumerate() {
            for row in &sites.rows {
                let frames = lines(sites.frames(row), options.shown);
                let frames: Vec<&Frame> = frames.iter().take(depth).map(|line| line.frame).collect();
                told.add(&row.totals);
                side.sites.push(DiffSite { frames, totals: row.totals });
                side.stacks.push(row.stack);
                side.wanted.push(group == 1);
            }
        }
        side.add_rest(profile.beyond(&told), options);
        side
    }

    /// Adds the part of the totals that no site has, as a site without a stack: some tools write only the largest
    /// sites.
    fn add_rest(&mut self, rest: W, options: &DiffOptions<W::Metric>) {
        if W::Metric::ALL.iter().any(|metric| metric.of_site(&rest) > 0) {
            self.sites.push(DiffSite { frames: Vec::new(), totals: rest });
            self.stacks.push(None);
            self.wanted.push(options.filter.is_none());
        }
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
            stack: self.stacks[heaviest],
            frames: self.sites[heaviest].frames.clone(),
        })
    }
}

/// Paths of modules that are the very same file on both sides, by their build ids.
pub(super) fn same_modules<'a>(one: &'a Stacks, other: &Stacks) -> Vec<&'a str> {
    let has_id = |module: &&Module| !module.build_id.is_empty();
    let others: FxHashSet<&Module> = other.modules.iter().filter(has_id).collect();
    let same = one.modules.iter().filter(|module| others.contains(module));
    same.map(|module| module.path.as_str()).collect()
}

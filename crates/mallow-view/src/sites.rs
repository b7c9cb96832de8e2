//! What allocated: sites merged by the frames that are shown, filtered, sorted.
//!
//! Two sites are one row when their visible frames are the same, whatever process or address they come from, and whatever was inlined.

use crate::looks::Looks;
use crate::{Shown, SortKey, short_name};
use mallow_base::{Frame, SourceLine};
use mallow_profile::{Profile, Site, SiteTotals, StackId};
use rustc_hash::FxHashMap;

/// Which sites are wanted. Each part that is given must hold for some frame of the stack, folded ones included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of a function's name, whole or as shown.
    pub function: Option<String>,
    /// A part of a module's path.
    pub module: Option<String>,
}

/// One row: all allocations of stacks that look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRow {
    /// The figures, added over sites and processes.
    pub totals: SiteTotals,
    /// One of the stacks; none when no stack was taken.
    pub stack: Option<StackId>,
    /// How many frames of that stack are folded away on its leaf side.
    pub folded: usize,
}

/// The sites of a profile.
#[derive(Clone, Debug)]
pub struct Sites<'a> {
    profile: &'a Profile,
    /// The rows, in the order of the last sort.
    pub rows: Vec<SiteRow>,
}

impl Filter {
    /// Whether every site is wanted.
    pub fn is_empty(&self) -> bool {
        self.function.is_none() && self.module.is_none()
    }

    fn function_matches(&self, frame: &Frame) -> bool {
        self.function.as_ref().is_none_or(|part| {
            frame.function.contains(part.as_str()) || short_name(&frame.function).contains(part.as_str())
        })
    }

    fn module_matches(&self, frame: &Frame) -> bool {
        self.module
            .as_ref()
            .is_none_or(|part| frame.module.as_ref().is_some_and(|module| module.contains(part.as_str())))
    }
}

impl<'a> Sites<'a> {
    /// The wanted sites, in the profile's order.
    pub fn of(profile: &'a Profile, shown: Shown, filter: &Filter) -> Self {
        let sites = profile.sites.iter().map(|site| (0, site));
        let rows = rows(profile, shown, filter, 1, sites).swap_remove(0);
        Self { profile, rows }
    }

    /// The wanted sites of each process, by [`mallow_profile::ProcessIndex`].
    pub fn of_each_process(profile: &'a Profile, shown: Shown, filter: &Filter) -> Vec<Self> {
        let sites = profile.sites.iter().map(|site| (site.process.0 as usize, site));
        Self::of_groups(profile, shown, filter, profile.processes.len(), sites)
    }

    /// The wanted ones of some sites whose stacks are the profile's, apart by the number before each, which is below
    /// `groups`.
    pub(crate) fn of_groups<'s>(
        profile: &'a Profile,
        shown: Shown,
        filter: &Filter,
        groups: usize,
        sites: impl Iterator<Item = (usize, &'s Site)>,
    ) -> Vec<Self> {
        let rows = rows(profile, shown, filter, groups, sites);
        rows.into_iter().map(|rows| Self { profile, rows }).collect()
    }

    /// Highest first. Of equal figures the one with more bytes, then more calls, then the earlier in the profile.
    pub fn sort(&mut self, by: impl Into<SortKey>) {
        let by = by.into();
        self.rows.sort_by_key(|row| {
            let totals = &row.totals;
            std::cmp::Reverse((by.rank(totals), totals.bytes, totals.allocations))
        });
    }

    /// The figures of all rows together.
    pub fn totals(&self) -> SiteTotals {
        let mut totals = SiteTotals::default();
        for row in &self.rows {
            totals.add(&row.totals);
        }
        totals
    }

    /// The visible frames of a row, leaf first.
    pub fn frames(&self, row: &SiteRow) -> impl Iterator<Item = &'a Frame> + use<'a> {
        self.profile.frames(row.stack).skip(row.folded)
    }

    /// The modules of which some frame has only an address for a name, in order of first sight.
    pub fn modules_without_names(&self) -> Vec<&'a str> {
        let mut modules: Vec<&str> = Vec::new();
        let mut seen = vec![false; self.profile.stacks.nodes.len()];
        for row in &self.rows {
            let mut next = row.stack;
            // Where one stack was before, its callers were too.
            while let Some(id) = next
                && !std::mem::replace(&mut seen[id.0 as usize], true)
            {
                let node = self.profile.stacks.node(id);
                let frames = &self.profile.stacks.locations[node.location.0 as usize].frames;
                let unnamed = frames.iter().filter(|frame| frame.function.starts_with("0x"));
                for module in unnamed.filter_map(|frame| frame.module.as_deref()) {
                    if !modules.contains(&module) {
                        modules.push(module);
                    }
                }
                next = node.parent;
            }
        }
        modules
    }

    /// The rows merged further by the frame that names them, their first visible one. The stack kept is that of the
    /// row that comes first, so sort before.
    pub fn by_naming_frame(&self) -> Sites<'a> {
        let mut rows: Vec<SiteRow> = Vec::new();
        let mut by_frame: FxHashMap<Option<SourceLine<'_>>, usize> = FxHashMap::default();
        for row in &self.rows {
            let at = *by_frame.entry(self.frames(row).next().map(Frame::source_line)).or_insert_with(|| {
                rows.push(SiteRow { totals: SiteTotals::default(), ..*row });
                rows.len() - 1
            });
            rows[at].totals.add(&row.totals);
        }
        Sites { profile: self.profile, rows }
    }
}

/// The rows of the wanted sites, apart by a group.
fn rows<'s>(
    profile: &Profile,
    shown: Shown,
    filter: &Filter,
    groups: usize,
    sites: impl Iterator<Item = (usize, &'s Site)>,
) -> Vec<Vec<SiteRow>> {
    let mut looks = Looks::of(profile, shown);
    let wanted = Wanted::of(profile, filter);
    let mut rows: Vec<Vec<SiteRow>> = vec![Vec::new(); groups];
    let mut by_look = FxHashMap::default();
    for (group, site) in sites.filter(|(_, site)| wanted.includes(site.stack)) {
        let (look, folded) = looks.of_stack(site.stack);
        let rows = &mut rows[group];
        let row = *by_look.entry((group, look)).or_insert_with(|| {
            rows.push(SiteRow { totals: SiteTotals::default(), stack: site.stack, folded });
            rows.len() - 1
        });
        rows[row].totals.add(&site.totals);
    }
    rows
}

/// Which stacks a filter wants.
pub(crate) struct Wanted {
    /// For each stack node whether function and module were met at it or outwards of it; none when all are wanted.
    met: Option<Vec<(bool, bool)>>,
}

impl Wanted {
    pub(crate) fn of(profile: &Profile, filter: &Filter) -> Self {
        if filter.is_empty() {
            return Self { met: None };
        }
        let locations: Vec<(bool, bool)> = profile
            .stacks
            .locations
            .iter()
            .map(|location| {
                let function = location.frames.iter().any(|frame| filter.function_matches(frame));
                (function, location.frames.iter().any(|frame| filter.module_matches(frame)))
            })
            .collect();
        let mut met: Vec<(bool, bool)> = Vec::with_capacity(profile.stacks.nodes.len());
        for node in &profile.stacks.nodes {
            let outer = node.parent.map_or((false, false), |parent| met[parent.0 as usize]);
            let here = locations[node.location.0 as usize];
            met.push((outer.0 || here.0, outer.1 || here.1));
        }
        Self { met: Some(met) }
    }

    pub(crate) fn includes(&self, stack: Option<StackId>) -> bool {
        match (&self.met, stack) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(met), Some(stack)) => met[stack.0 as usize] == (true, true),
        }
    }
}

#[cfg(test)]
#[path = "sites_tests.rs"]
mod tests;

//! The sites of a profile, merged by the frames that are shown, filtered, sorted.
//!
//! Two sites are one row when their visible frames are the same, whatever process or address they come from, and whatever was inlined.

use crate::filter::{Expression, Matching};
use crate::looks::Appearances;
use crate::{FrameVisibility, Key, short_name};
use mallow_base::{Frame, SourceLine};
use mallow_profile::SiteTotals;
use mallow_stacks::{ProcessIndex, Site, StackId, StackProfile, Stacks, Weights};
use rustc_hash::FxHashMap;

/// Which sites are selected. Each part that is set must match some frame of the stack, hidden ones included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of a function's name, whole or as shown.
    pub function: Option<String>,
    /// A part of a module's path.
    pub module: Option<String>,
    /// The allocator domain, if Python's own allocator was recorded.
    pub domain: Option<Domain>,
    /// A filter on stacks. Filters on other things are for [`crate::filter::Matching`].
    pub expression: Option<Expression>,
}

/// Python's domains of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Its objects.
    Objects,
    /// Other memory of the interpreter.
    Memory,
    /// Blocks directly from `malloc`.
    Raw,
}

impl Domain {
    /// All of them.
    pub const ALL: [Domain; 3] = [Domain::Objects, Domain::Memory, Domain::Raw];

    /// Returns the word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Domain::Objects => "objects",
            Domain::Memory => "memory",
            Domain::Raw => "raw",
        }
    }

    /// Returns the domain of a block by its innermost frame: the recorder's own function for a domain.
    fn of(innermost: &Frame) -> Domain {
        match innermost.function.strip_prefix("mallow_preload::python::") {
            Some(of_domain) if of_domain.starts_with("object::") => Domain::Objects,
            Some(of_domain) if of_domain.starts_with("memory::") => Domain::Memory,
            _ => Domain::Raw,
        }
    }
}

/// One row: all sites whose stacks look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRow<W = SiteTotals> {
    /// The metrics, added over sites and processes.
    pub totals: W,
    /// One of the stacks; none when no stack was taken.
    pub stack: Option<StackId>,
    /// How many frames of that stack are hidden on its leaf side.
    pub folded: usize,
}

/// The sites of a profile.
#[derive(Clone, Debug)]
pub struct Sites<'a, W = SiteTotals> {
    stacks: &'a Stacks,
    /// The rows, in the order of the last sort.
    pub rows: Vec<SiteRow<W>>,
}

impl Filter {
    /// Returns whether every site is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
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

impl<'a, W: Weights> Sites<'a, W> {
    /// The wanted sites, in the profile's order.
    pub fn of(profile: &'a impl StackProfile<Weights = W>, shown: FrameVisibility, filter: &Filter) -> Self {
        let sites = profile.sites().iter().map(|site| (0, site));
        let rows = rows(profile.stacks(), shown, filter, 1, sites).swap_remove(0);
        Self { stacks: profile.stacks(), rows }
    }

    /// The wanted sites of each process, by [`mallow_profile::ProcessIndex`].
    pub fn of_each_process(
        profile: &'a impl StackProfile<Weights = W>,
        shown: FrameVisibility,
        filter: &Filter,
    ) -> Vec<Self> {
        let sites = profile.sites().iter().map(|site| (site.process.0 as usize, site));
        Self::of_groups(profile.stacks(), shown, filter, profile.processes(), sites)
    }

    /// The wanted ones of some sites whose stacks are these, apart by the number before each, which is below
    /// `groups`.
    pub(crate) fn of_groups<'s>(
        stacks: &'a Stacks,
        shown: FrameVisibility,
        filter: &Filter,
        groups: usize,
        sites: impl Iterator<Item = (usize, &'s Site<W>)>,
    ) -> Vec<Self>
    where
        W: 's,
    {
        let rows = rows(stacks, shown, filter, groups, sites);
        rows.into_iter().map(|rows| Self { stacks, rows }).collect()
    }

    /// Highest first. Between equal metrics [`Weights::tie`] decides, then the place in the profile.
    pub fn sort(&mut self, by: impl Key<Weights = W>) {
        // Rows are large, so the keys are sorted and each row is moved once.
        self.rows.sort_by_cached_key(|row| std::cmp::Reverse((by.rank(&row.totals), row.totals.tie())));
    }

    /// The metrics of all rows together.
    pub fn totals(&self) -> W {
        let mut totals = W::default();
        for row in &self.rows {
            totals.add(&row.totals);
        }
        totals
    }

    /// The visible frames of a row, leaf first.
    pub fn frames(&self, row: &SiteRow<W>) -> impl Iterator<Item = &'a Frame> + use<'a, W> {
        self.stacks.frames(row.stack).skip(row.folded)
    }

    /// The modules of which some frame has only an address for a name, in order of first sight.
    pub fn modules_without_names(&self) -> Vec<&'a str> {
        let mut modules: Vec<&str> = Vec::new();
        let mut seen = vec![false; self.stacks.nodes.len()];
        for row in &self.rows {
            let mut next = row.stack;
            // Where one stack was before, its callers were too.
            while let Some(id) = next
                && !std::mem::replace(&mut seen[id.0 as usize], true)
            {
                let node = self.stacks.node(id);
                let frames = &self.stacks.locations[node.location.0 as usize].frames;
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

    /// Merges rows further by the frame that names them, their first visible one. The stack that is kept is that of
    /// the first row, so sort before.
    pub fn by_naming_frame(&self) -> Self {
        let mut rows: Vec<SiteRow<W>> = Vec::new();
        let mut by_frame: FxHashMap<Option<SourceLine<'_>>, usize> = FxHashMap::default();
        for row in &self.rows {
            let at = *by_frame.entry(self.frames(row).next().map(Frame::source_line)).or_insert_with(|| {
                rows.push(SiteRow { totals: W::default(), ..*row });
                rows.len() - 1
            });
            rows[at].totals.add(&row.totals);
        }
        Self { stacks: self.stacks, rows }
    }
}

/// The rows of the wanted sites, apart by a group.
fn rows<'s, W: Weights + 's>(
    stacks: &Stacks,
    shown: FrameVisibility,
    filter: &Filter,
    groups: usize,
    sites: impl Iterator<Item = (usize, &'s Site<W>)>,
) -> Vec<Vec<SiteRow<W>>> {
    let mut looks = Appearances::of_all(stacks, shown);
    let wanted = Wanted::of(stacks, filter);
    let mut rows: Vec<Vec<SiteRow<W>>> = vec![Vec::new(); groups];
    // Small keys, because there may be half a million sites.
    let mut by_look: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (group, site) in sites.filter(|(_, site)| wanted.includes(site.stack)) {
        let (look, folded) = looks.of_stack(site.stack);
        let rows = &mut rows[group];
        let row = *by_look.entry((group as u32, look.unwrap_or(u32::MAX))).or_insert_with(|| {
            rows.push(SiteRow { totals: W::default(), stack: site.stack, folded });
            rows.len() as u32 - 1
        });
        rows[row as usize].totals.add(&site.totals);
    }
    rows
}

/// Which stacks a filter matches.
pub(crate) struct Wanted {
    /// For each stack node whether function and module were matched at it or outwards of it; `None` if all match.
    met: Option<Vec<(bool, bool)>>,
    /// For each stack node whether it is one of the domain; none when all domains are wanted.
    of_domain: Option<Vec<bool>>,
    matching: Option<Matching>,
}

impl Wanted {
    pub(crate) fn of(stacks: &Stacks, filter: &Filter) -> Self {
        let matching = filter.expression.as_ref().map(|expression| Matching::of(expression, stacks, []));
        if (Filter { expression: None, ..filter.clone() }).is_empty() {
            return Self { met: None, of_domain: None, matching };
        }
        let locations: Vec<(bool, bool)> = stacks
            .locations
            .iter()
            .map(|location| {
                let function = location.frames.iter().any(|frame| filter.function_matches(frame));
                (function, location.frames.iter().any(|frame| filter.module_matches(frame)))
            })
            .collect();
        let mut met: Vec<(bool, bool)> = Vec::with_capacity(stacks.nodes.len());
        for node in &stacks.nodes {
            let outer = node.parent.map_or((false, false), |parent| met[parent.0 as usize]);
            let here = locations[node.location.0 as usize];
            met.push((outer.0 || here.0, outer.1 || here.1));
        }
        let of_domain = filter.domain.map(|domain| {
            let innermost = |location: &mallow_stacks::Location| location.frames.first().map(Domain::of);
            let is_of = |location| innermost(location).unwrap_or(Domain::Raw) == domain;
            let locations: Vec<bool> = stacks.locations.iter().map(is_of).collect();
            stacks.nodes.iter().map(|node| locations[node.location.0 as usize]).collect()
        });
        Self { met: Some(met), of_domain, matching }
    }

    pub(crate) fn includes(&self, stack: Option<StackId>) -> bool {
        if let Some(matching) = &self.matching
            && !matching.wants(ProcessIndex(u32::MAX), stack, 0, 0)
        {
            return false;
        }
        match (&self.met, stack) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(met), Some(stack)) => {
                let stack = stack.0 as usize;
                met[stack] == (true, true) && self.of_domain.as_ref().is_none_or(|is_of| is_of[stack])
            }
        }
    }
}

#[cfg(test)]
#[path = "sites_tests.rs"]
mod tests;

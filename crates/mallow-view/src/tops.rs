//! The top sites of a summary, found without sorting or naming the others.
//!
//! A large recording has a hundred thousand sites on half a million stack nodes, and a summary shows fifteen of them. So sites are
//! added up by the frame that names them, which takes a few steps from the leaf, and whole stacks are compared only where that
//! decides what is shown: between equal figures, and to find the caller of a frame without a line. What comes out is what
//! [`crate::Sites`], sorted and merged by [`crate::Sites::by_naming_frame`], would show; a test holds it to that.

use crate::{Measure, Top, TopRow, plumbing};
use mallow_base::Frame;
use mallow_profile::{Profile, SiteTotals, StackId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Sites for each measure.
const ROWS_MAX: usize = 3;

/// The top sites by each measure that has any.
pub(crate) fn tops(profile: &Profile) -> Vec<Top<'_>> {
    let mut groups = Groups::of(profile);
    Measure::ALL.iter().filter_map(|&measure| groups.top(measure)).collect()
}

/// The number of a group: sites with the same naming frame.
type GroupId = u32;

const UNKNOWN: u32 = u32::MAX;

/// Sites by the frame that names them.
struct Groups<'a> {
    profile: &'a Profile,
    groups: Vec<Group<'a>>,
    /// The group of each site of the profile.
    of_sites: Vec<GroupId>,
    stacks: Stacks<'a>,
    /// For each stack node whether a frame with a line is at it or outwards of it, once that is asked.
    lined: Option<Vec<bool>>,
}

struct Group<'a> {
    /// None when no stack was taken.
    frame: Option<&'a Frame>,
    totals: SiteTotals,
    /// Once they are asked for.
    rows: Option<Vec<Row>>,
}

/// Sites of a group that look the same.
#[derive(Clone, Copy)]
struct Row {
    totals: SiteTotals,
    /// The place in the profile's sites of the first of them.
    first: usize,
}

/// By what groups are sorted: the highest first.
type Rank = (u64, u64, u64);

fn rank(measure: Measure, totals: &SiteTotals) -> Rank {
    (measure.of_site(totals), totals.bytes, totals.allocations)
}

/// By what rows are sorted: of equals those come first that did so by the measures shown before, then the earliest in the profile.
fn row_rank(measure: Measure, row: &Row) -> (Rank, [u64; Measure::ALL.len()], Reverse<usize>) {
    let mut before = [0; Measure::ALL.len()];
    let shown =
        Measure::ALL.iter().take_while(|other| **other != measure).map(|other| other.of_site(&row.totals));
    shown.enumerate().for_each(|(at, value)| before[Measure::ALL.len() - 1 - at] = value);
    (rank(measure, &row.totals), before, Reverse(row.first))
}

impl<'a> Groups<'a> {
    fn of(profile: &'a Profile) -> Groups<'a> {
        let mut stacks = Stacks::of(profile);
        let (mut groups, mut of_sites) = (Vec::new(), Vec::with_capacity(profile.sites.len()));
        let mut by_frame: FxHashMap<Option<&Frame>, GroupId> = FxHashMap::default();
        let mut by_location = vec![UNKNOWN; profile.locations.len()];
        for site in &profile.sites {
            let named = stacks.naming(site.stack);
            let known = named.map_or(UNKNOWN, |named| by_location[named.location]);
            let group = if known != UNKNOWN {
                known
            } else {
                let frame = stacks.visible(named).next();
                let group = *by_frame.entry(frame).or_insert_with(|| {
                    groups.push(Group { frame, totals: SiteTotals::default(), rows: None });
                    groups.len() as GroupId - 1
                });
                if let Some(named) = named {
                    by_location[named.location] = group;
                }
                group
            };
            groups[group as usize].totals.add(&site.totals);
            of_sites.push(group);
        }
        Groups { profile, groups, of_sites, stacks, lined: None }
    }

    fn top(&mut self, measure: Measure) -> Option<Top<'a>> {
        let concerned = (0..self.groups.len()).filter(|at| measure.concerns(&self.groups[*at].totals));
        let mut order: Vec<(Rank, usize)> =
            concerned.map(|at| (rank(measure, &self.groups[at].totals), at)).collect();
        order.sort_unstable_by_key(|(rank, at)| (Reverse(*rank), *at));
        self.settle_equals(measure, &mut order);
        let rows: Vec<TopRow<'a>> =
            order.iter().take(ROWS_MAX).map(|(rank, at)| self.row(measure, rank.0, *at)).collect();
        (!rows.is_empty()).then_some(Top { measure, rows })
    }

    /// Puts groups of equal figures in the order of their best rows, as far as they may be shown.
    fn settle_equals(&mut self, measure: Measure, order: &mut [(Rank, usize)]) {
        let mut begin = 0;
        while begin < order.len().min(ROWS_MAX) {
            let equal = order[begin..].iter().take_while(|(rank, _)| *rank == order[begin].0).count();
            if equal > 1 {
                order[begin..begin + equal]
                    .sort_by_cached_key(|(_, at)| Reverse(row_rank(measure, &self.best_row(measure, *at))));
            }
            begin += equal;
        }
    }

    fn row(&mut self, measure: Measure, value: u64, group: usize) -> TopRow<'a> {
        let frame = self.groups[group].frame;
        let caller = match frame {
            Some(frame) if !has_line(frame) && self.has_lines(group) => {
                let stack = self.profile.sites[self.best_row(measure, group).first].stack;
                let named = self.stacks.naming(stack);
                self.stacks.visible(named).find(|frame| has_line(frame))
            }
            _ => None,
        };
        TopRow { value, frame, caller }
    }

    /// Whether some stack of a group has a frame with a line.
    fn has_lines(&mut self, group: usize) -> bool {
        let profile = self.profile;
        let lined = self.lined.get_or_insert_with(|| lined(profile));
        let mut sites = profile.sites.iter().zip(&self.of_sites);
        sites.any(|(site, of)| {
            *of as usize == group && site.stack.is_some_and(|stack| lined[stack.0 as usize])
        })
    }

    /// The row of a group that comes first by a measure.
    fn best_row(&mut self, measure: Measure, group: usize) -> Row {
        let (stacks, of_sites, sites) = (&mut self.stacks, &self.of_sites, &self.profile.sites);
        let rows = self.groups[group].rows.get_or_insert_with(|| {
            let (mut rows, mut by_look) = (Vec::new(), FxHashMap::default());
            for (first, site) in sites.iter().enumerate().filter(|(at, _)| of_sites[*at] as usize == group) {
                let row = *by_look.entry(stacks.look(site.stack)).or_insert_with(|| {
                    rows.push(Row { totals: SiteTotals::default(), first });
                    rows.len() - 1
                });
                rows[row].totals.add(&site.totals);
            }
            rows
        });
        let best = rows.iter().max_by_key(|row| row_rank(measure, row));
        // A group without rows is none: it was made for a site.
        best.copied().unwrap_or(Row { totals: SiteTotals::default(), first: 0 })
    }
}

/// Whether a frame leads to a line of the program. The C library's start has lines too where its debug files are installed.
fn has_line(frame: &Frame) -> bool {
    frame.file.is_some() && frame.line.is_some() && plumbing::root_rule(frame).is_none()
}

fn lined(profile: &Profile) -> Vec<bool> {
    let locations: Vec<bool> =
        profile.locations.iter().map(|location| location.frames.iter().any(has_line)).collect();
    let mut lined: Vec<bool> = Vec::with_capacity(profile.stacks.len());
    for node in &profile.stacks {
        let outer = node.parent.is_some_and(|parent| lined[parent.0 as usize]);
        lined.push(outer || locations[node.location.0 as usize]);
    }
    lined
}

/// Where the visible part of a stack begins.
#[derive(Clone, Copy)]
struct Named {
    node: StackId,
    location: usize,
    /// How many frames of the location are folded away.
    skip: usize,
}

/// The stacks of a profile; what they look like is found out for those that are asked about.
struct Stacks<'a> {
    profile: &'a Profile,
    /// For each location: how many frames on its leaf side are plumbing.
    plumbing: Vec<u32>,
    runs: FxHashMap<&'a [Frame], u32>,
    location_runs: Vec<u32>,
    /// For each stack node: the number of the whole stack from it outwards.
    numbers: Vec<u32>,
    by_parent: FxHashMap<(u32, u32), u32>,
}

impl<'a> Stacks<'a> {
    fn of(profile: &'a Profile) -> Stacks<'a> {
        Stacks {
            profile,
            plumbing: vec![UNKNOWN; profile.locations.len()],
            runs: FxHashMap::default(),
            location_runs: Vec::new(),
            numbers: Vec::new(),
            by_parent: FxHashMap::default(),
        }
    }

    /// Passes over the plumbing on the leaf side. The outermost frame stays, whatever it is.
    fn naming(&mut self, stack: Option<StackId>) -> Option<Named> {
        let mut node = stack?;
        loop {
            let at = self.profile.stacks[node.0 as usize];
            let location = at.location.0 as usize;
            let count = self.profile.locations[location].frames.len();
            let plumbing = self.plumbing_of(location);
            match at.parent {
                Some(parent) if plumbing == count => node = parent,
                _ => return Some(Named { node, location, skip: plumbing.min(count.saturating_sub(1)) }),
            }
        }
    }

    fn plumbing_of(&mut self, location: usize) -> usize {
        if self.plumbing[location] == UNKNOWN {
            let frames = &self.profile.locations[location].frames;
            let leading = frames.iter().take_while(|frame| plumbing::leaf_rule(frame).is_some());
            self.plumbing[location] = leading.count() as u32;
        }
        self.plumbing[location] as usize
    }

    /// The frames that are shown, leaf first.
    fn visible(&self, named: Option<Named>) -> impl Iterator<Item = &'a Frame> + use<'a> {
        let (stack, skip) = named.map_or((None, 0), |named| (Some(named.node), named.skip));
        self.profile.frames(stack).skip(skip)
    }

    /// Equal where the visible frames are equal.
    fn look(&mut self, stack: Option<StackId>) -> Option<(u32, u32)> {
        let named = self.naming(stack)?;
        let callers = self.number(self.profile.stacks[named.node.0 as usize].parent);
        let frames = &self.profile.locations[named.location].frames;
        Some((callers, run_of(&mut self.runs, &frames[named.skip..])))
    }

    /// The number of a whole stack.
    fn number(&mut self, stack: Option<StackId>) -> u32 {
        let profile = self.profile;
        self.numbers.resize(profile.stacks.len(), UNKNOWN);
        self.location_runs.resize(profile.locations.len(), UNKNOWN);
        let (mut chain, mut at) = (Vec::new(), stack);
        let mut number = loop {
            match at {
                None => break UNKNOWN,
                Some(id) if self.numbers[id.0 as usize] != UNKNOWN => break self.numbers[id.0 as usize],
                Some(id) => {
                    chain.push(id);
                    at = profile.stacks[id.0 as usize].parent;
                }
            }
        };
        for id in chain.into_iter().rev() {
            let location = profile.stacks[id.0 as usize].location.0 as usize;
            if self.location_runs[location] == UNKNOWN {
                self.location_runs[location] = run_of(&mut self.runs, &profile.locations[location].frames);
            }
            let next = self.by_parent.len() as u32;
            number = *self.by_parent.entry((number, self.location_runs[location])).or_insert(next);
            self.numbers[id.0 as usize] = number;
        }
        number
    }
}

fn run_of<'a>(runs: &mut FxHashMap<&'a [Frame], u32>, frames: &'a [Frame]) -> u32 {
    let next = runs.len() as u32;
    *runs.entry(frames).or_insert(next)
}

#[cfg(test)]
#[path = "tops_tests.rs"]
mod tests;

//! The top sites of a summary, found without sorting or naming the others.
//!
//! A large recording has a hundred thousand sites on half a million stack nodes, and a summary shows fifteen of them. So sites are
//! added up by the frame that names them, which takes a few steps from the leaf, and whole stacks are compared only where that
//! decides what is shown: between equal figures, and to find the caller of a frame without a line. What comes out is what
//! [`crate::Sites`], sorted and merged by [`crate::Sites::by_naming_frame`], would show; a test holds it to that.

use crate::looks::Looks;
use crate::{Measure, Shown, plumbing};
use mallow_base::{Frame, SourceLine};
use mallow_profile::{Profile, SiteTotals};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Sites for each measure.
const ROWS_MAX: usize = 3;

/// The top sites by one measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top<'a> {
    /// The measure.
    pub measure: Measure,
    /// At most three, highest first.
    pub rows: Vec<TopRow<'a>>,
}

/// One of the top sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow<'a> {
    /// The measure's figure.
    pub value: u64,
    /// The frame that names it; none when no stack was taken.
    pub frame: Option<&'a Frame>,
    /// Where that frame has no line: the nearest caller that has one, on the stack with the highest figure.
    pub caller: Option<&'a Frame>,
}

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
    looks: Looks<'a>,
    /// For each stack node whether a frame with a line is at it or outwards of it, once that is asked.
    lined: Option<Vec<bool>>,
}

struct Group<'a> {
    /// None when no stack was taken.
    frame: Option<&'a Frame>,
    /// Whether its frames have several names, of which the best row's is shown.
    has_names: bool,
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
        let mut looks = Looks::of(profile, Shown::WithoutPlumbing);
        let (mut groups, mut of_sites) = (Vec::new(), Vec::with_capacity(profile.sites.len()));
        let mut by_line: FxHashMap<Option<SourceLine<'_>>, GroupId> = FxHashMap::default();
        let mut by_location = vec![UNKNOWN; profile.stacks.locations.len()];
        for site in &profile.sites {
            let named = looks.naming(site.stack);
            let known = named.map_or(UNKNOWN, |named| by_location[named.location]);
            let group = if known != UNKNOWN {
                known
            } else {
                let frame = looks.visible(named).next();
                let group = *by_line.entry(frame.map(Frame::source_line)).or_insert_with(|| {
                    groups.push(Group { frame, has_names: false, totals: SiteTotals::default(), rows: None });
                    groups.len() as GroupId - 1
                });
                groups[group as usize].has_names |=
                    groups[group as usize].frame.map(Frame::place) != frame.map(Frame::place);
                if let Some(named) = named {
                    by_location[named.location] = group;
                }
                group
            };
            groups[group as usize].totals.add(&site.totals);
            of_sites.push(group);
        }
        Groups { profile, groups, of_sites, looks, lined: None }
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

    /// The frame that names a group's best row.
    fn best_frame(&mut self, measure: Measure, group: usize) -> Option<&'a Frame> {
        let stack = self.profile.sites[self.best_row(measure, group).first].stack;
        let named = self.looks.naming(stack);
        self.looks.visible(named).next()
    }

    fn row(&mut self, measure: Measure, value: u64, group: usize) -> TopRow<'a> {
        let frame = match self.groups[group].has_names {
            true => self.best_frame(measure, group),
            false => self.groups[group].frame,
        };
        let caller = match frame {
            Some(frame) if !has_line(frame) && self.has_lines(group) => {
                let stack = self.profile.sites[self.best_row(measure, group).first].stack;
                let named = self.looks.naming(stack);
                self.looks.visible(named).find(|frame| has_line(frame))
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
        let (looks, of_sites, sites) = (&mut self.looks, &self.of_sites, &self.profile.sites);
        let rows = self.groups[group].rows.get_or_insert_with(|| {
            let (mut rows, mut by_look) = (Vec::new(), FxHashMap::default());
            for (first, site) in sites.iter().enumerate().filter(|(at, _)| of_sites[*at] as usize == group) {
                let row = *by_look.entry(looks.of_stack(site.stack).0).or_insert_with(|| {
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
        profile.stacks.locations.iter().map(|location| location.frames.iter().any(has_line)).collect();
    let mut lined: Vec<bool> = Vec::with_capacity(profile.stacks.nodes.len());
    for node in &profile.stacks.nodes {
        let outer = node.parent.is_some_and(|parent| lined[parent.0 as usize]);
        lined.push(outer || locations[node.location.0 as usize]);
    }
    lined
}

#[cfg(test)]
#[path = "tops_tests.rs"]
mod tests;

//! The top sites by each metric, found without sorting or naming the others.
//!
//! A large recording has a hundred thousand sites on half a million stack nodes, and a summary shows fifteen of them. So sites are
//! added up by the frame that names them, which takes a few steps from the leaf, and whole stacks are compared only where that
//! decides what is shown: between equal metrics, and to find the caller of a frame without a line. What comes out is what
//! [`crate::Sites`], sorted and merged by [`crate::Sites::by_naming_frame`], would show; a test holds it to that.

use crate::looks::Appearances;
use crate::{FrameVisibility, plumbing};
use mallow_base::{Frame, SourceLine};
use mallow_profile::SiteTotals;
use mallow_stacks::{Metric, SiteList, StackId, Stacks, Weights};
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};

/// Sites for each metric.
const ROWS_MAX: usize = 3;

/// The top sites by one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top<'a, W: Weights = SiteTotals> {
    /// The metric.
    pub measure: W::Metric,
    /// At most three, highest first.
    pub rows: Vec<TopRow<'a>>,
}

/// One of the top sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow<'a> {
    /// The metric's value.
    pub value: u64,
    /// The frame that names it; none when no stack was taken.
    pub frame: Option<&'a Frame>,
    /// If that frame has no line: the nearest caller that has one, on the stack with the highest metric.
    pub caller: Option<&'a Frame>,
}

/// The top sites by each metric that has any, and what lacks names.
pub(crate) fn tops<'a, W: Weights>(
    stacks: &'a Stacks,
    sites: &(impl SiteList<W> + ?Sized),
) -> (Vec<Top<'a, W>>, Option<&'a str>) {
    let mut groups = Groups::of(stacks, sites);
    let nameless = groups.nameless();
    let tops = W::Metric::ALL.iter().filter_map(|&metric| groups.top(metric));
    (tops.collect(), nameless)
}

/// The share of the first metric from which a module's missing names are worth a word.
const NAMELESS_SHARE_MIN: f64 = 0.25;

/// The number of a group: sites with the same naming frame.
type GroupId = u32;

const UNKNOWN: u32 = u32::MAX;

/// Sites by the frame that names them.
struct Groups<'a, 's, W, S: ?Sized> {
    stacks: &'a Stacks,
    sites: &'s S,
    groups: Vec<Group<'a, W>>,
    /// The group of each site of the profile.
    of_sites: Vec<GroupId>,
    looks: Appearances<'a>,
    /// Computed on demand.
    lined: Option<Lined<'a>>,
}

struct Group<'a, W> {
    /// None when no stack was taken.
    frame: Option<&'a Frame>,
    /// Whether its frames have several names, of which the best row's is shown.
    has_names: bool,
    totals: W,
    /// Whether some stack of it has a frame with a line; computed on demand.
    has_lines: Option<bool>,
    /// Computed on demand.
    rows: Option<Vec<Row<W>>>,
}

/// Sites of a group that look the same.
#[derive(Clone, Copy)]
struct Row<W> {
    totals: W,
    /// The place in the profile's sites of the first of them.
    first: usize,
}

/// By what groups are sorted: the highest first.
type Rank = (u64, [u64; 2]);

fn rank<M: Metric>(metric: M, totals: &M::Weights) -> Rank {
    (metric.of_site(totals), totals.tie())
}

/// Returns which row is higher: equal ones are ordered by the metrics shown before, then by their order in the
/// profile.
fn compare<M: Metric>(metric: M, one: &Row<M::Weights>, other: &Row<M::Weights>) -> Ordering {
    let shown_before = M::ALL.iter().take_while(|before| **before != metric).count();
    let by = |metric: &M| metric.of_site(&one.totals).cmp(&metric.of_site(&other.totals));
    let by_earlier = || M::ALL[..shown_before].iter().rev().map(by).find(|order| order.is_ne());
    rank(metric, &one.totals)
        .cmp(&rank(metric, &other.totals))
        .then_with(|| by_earlier().unwrap_or(Ordering::Equal))
        .then(other.first.cmp(&one.first))
}

impl<'a, 's, W: Weights, S: SiteList<W> + ?Sized> Groups<'a, 's, W, S> {
    fn of(stacks: &'a Stacks, sites: &'s S) -> Self {
        let mut looks = Appearances::of(stacks, FrameVisibility::WithoutPlumbing);
        let (mut groups, mut of_sites) = (Vec::new(), Vec::with_capacity(sites.count()));
        let mut by_line: FxHashMap<Option<SourceLine<'_>>, GroupId> = FxHashMap::default();
        let mut by_location = vec![UNKNOWN; stacks.locations.len()];
        for site in (0..sites.count()).map(|at| sites.at(at)) {
            let named = looks.naming(site.stack);
            let known = named.map_or(UNKNOWN, |named| by_location[named.location]);
            let group = if known != UNKNOWN {
                known
            } else {
                let frame = looks.visible(named).next();
                let group = *by_line.entry(frame.map(Frame::source_line)).or_insert_with(|| {
                    groups.push(Group {
                        frame,
                        has_names: false,
                        totals: W::default(),
                        has_lines: None,
                        rows: None,
                    });
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
        Self { stacks, sites, groups, of_sites, looks, lined: None }
    }

    /// The path of the module in which most of what has no name happens, if that is much of all. What is no file is code made at run time.
    fn nameless(&self) -> Option<&'a str> {
        let metric = W::Metric::ALL.first()?;
        let (mut of_modules, mut all) = (FxHashMap::<&str, u64>::default(), 0_u64);
        for group in &self.groups {
            let value = metric.of_site(&group.totals);
            all += value;
            let bare = group.frame.filter(|frame| frame.function.starts_with("0x"));
            let file = bare.and_then(|frame| frame.module.as_deref()).filter(|path| path.starts_with('/'));
            file.into_iter().for_each(|path| *of_modules.entry(path).or_default() += value);
        }
        let most = of_modules.into_iter().max_by_key(|(path, value)| (*value, Reverse(*path)));
        most.filter(|(_, value)| *value as f64 >= all as f64 * NAMELESS_SHARE_MIN).map(|(path, _)| path)
    }

    fn top(&mut self, measure: W::Metric) -> Option<Top<'a, W>> {
        let concerned = (0..self.groups.len()).filter(|at| measure.concerns(&self.groups[*at].totals));
        let mut order: Vec<(Rank, usize)> =
            concerned.map(|at| (rank(measure, &self.groups[at].totals), at)).collect();
        order.sort_unstable_by_key(|(rank, at)| (Reverse(*rank), *at));
        self.settle_equals(measure, &mut order);
        let rows: Vec<TopRow<'a>> =
            order.iter().take(ROWS_MAX).map(|(rank, at)| self.row(measure, rank.0, *at)).collect();
        (!rows.is_empty()).then_some(Top { measure, rows })
    }

    /// Puts groups of equal metrics in the order of their best rows, as far as they may be shown.
    fn settle_equals(&mut self, measure: W::Metric, order: &mut [(Rank, usize)]) {
        let mut begin = 0;
        while begin < order.len().min(ROWS_MAX) {
            let equal = order[begin..].iter().take_while(|(rank, _)| *rank == order[begin].0).count();
            if equal > 1 {
                let equals = &mut order[begin..begin + equal];
                let mut rows: Vec<(Row<W>, (Rank, usize))> =
                    equals.iter().map(|group| (self.best_row(measure, group.1), *group)).collect();
                rows.sort_by(|(one, _), (other, _)| compare(measure, other, one));
                equals.iter_mut().zip(rows).for_each(|(at, (_, group))| *at = group);
            }
            begin += equal;
        }
    }

    /// The frame that names a group's best row.
    fn best_frame(&mut self, measure: W::Metric, group: usize) -> Option<&'a Frame> {
        let stack = self.stack_of_best(measure, group);
        let named = self.looks.naming(stack);
        self.looks.visible(named).next()
    }

    fn stack_of_best(&mut self, measure: W::Metric, group: usize) -> Option<StackId> {
        let first = self.best_row(measure, group).first;
        self.sites.at(first).stack
    }

    fn row(&mut self, measure: W::Metric, value: u64, group: usize) -> TopRow<'a> {
        let frame = match self.groups[group].has_names {
            true => self.best_frame(measure, group),
            false => self.groups[group].frame,
        };
        let caller = match frame {
            Some(frame) if !has_line(frame) && self.has_lines(group) => {
                let stack = self.stack_of_best(measure, group);
                let named = self.looks.naming(stack);
                self.looks.visible(named).find(|frame| has_line(frame))
            }
            _ => None,
        };
        TopRow { value, frame, caller }
    }

    /// Returns whether some stack of a group has a frame with a line.
    fn has_lines(&mut self, group: usize) -> bool {
        let (sites, of_sites) = (self.sites, &self.of_sites);
        let lined = self.lined.get_or_insert_with(|| Lined::of(self.stacks));
        *self.groups[group].has_lines.get_or_insert_with(|| {
            let mut of_group = (0..sites.count()).filter(|at| of_sites[*at] as usize == group);
            of_group.any(|at| sites.at(at).stack.is_some_and(|stack| lined.is_at_or_outwards(stack)))
        })
    }

    /// Returns the first row of a group by a measure.
    fn best_row(&mut self, measure: W::Metric, group: usize) -> Row<W> {
        let (looks, of_sites, sites) = (&mut self.looks, &self.of_sites, self.sites);
        let rows = self.groups[group].rows.get_or_insert_with(|| {
            let (mut rows, mut by_look) = (Vec::new(), FxHashMap::default());
            for first in (0..sites.count()).filter(|at| of_sites[*at] as usize == group) {
                let site = sites.at(first);
                let row = *by_look.entry(looks.of_stack(site.stack).0).or_insert_with(|| {
                    rows.push(Row { totals: W::default(), first });
                    rows.len() - 1
                });
                rows[row].totals.add(&site.totals);
            }
            rows
        });
        let best = rows.iter().max_by(|one, other| compare(measure, one, other));
        // A group without rows is none: it was made for a site.
        best.copied().unwrap_or(Row { totals: W::default(), first: 0 })
    }
}

/// Returns whether a frame leads to a line of the program. The C library's start has lines too where its debug files are installed.
fn has_line(frame: &Frame) -> bool {
    frame.file.is_some() && frame.line.is_some() && plumbing::root_rule(frame).is_none()
}

/// Which stacks have a frame with a line. Most groups need a look at one of theirs.
struct Lined<'a> {
    stacks: &'a Stacks,
    /// By location; computed on demand.
    locations: Vec<Option<bool>>,
    /// The nodes of stacks that have none.
    without: Vec<bool>,
}

impl<'a> Lined<'a> {
    fn of(stacks: &'a Stacks) -> Self {
        let (locations, without) = (vec![None; stacks.locations.len()], vec![false; stacks.nodes.len()]);
        Self { stacks, locations, without }
    }

    /// Returns whether a frame with a line is at a node or outwards of it.
    fn is_at_or_outwards(&mut self, stack: StackId) -> bool {
        let (mut at, mut is_lined) = (Some(stack), false);
        while let Some(id) = at.filter(|id| !is_lined && !self.without[id.0 as usize]) {
            let node = self.stacks.node(id);
            let location = node.location.0 as usize;
            let has_one = || self.stacks.locations[location].frames.iter().any(has_line);
            is_lined = *self.locations[location].get_or_insert_with(has_one);
            at = node.parent;
        }
        if !is_lined {
            let mut at = Some(stack);
            while let Some(id) = at.filter(|id| !self.without[id.0 as usize]) {
                self.without[id.0 as usize] = true;
                at = self.stacks.node(id).parent;
            }
        }
        is_lined
    }
}

#[cfg(test)]
#[path = "tops_tests.rs"]
mod tests;

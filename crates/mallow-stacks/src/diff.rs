//! What changed between two runs: which site of one is which site of the other.
//!
//! Two builds of a program never have the same stacks: lines move, functions are renamed, split, inlined,
//! built in another folder by another compiler. Sites are therefore matched in rounds, from the surest to the
//! least sure ([`Level`]), each over what the rounds before have left. Whatever is matched how, every site of
//! both sides stands in exactly one [`DiffEntry`], so sums over entries are always the totals of both sides.
//!
//! In the order of reading: [`name`] and [`place`] make names that two builds have in common, [`node`]
//! and [`sequences`] number them, [`rounds`] is the order of the rounds, [`lines`] pairs the calls of one function, [`group`]
//! those that are only roughly the same, [`rename`] finds renamed functions, [`moved`] those whose callers were rewritten, [`similar`] is the last
//! round, and [`split`] puts together what was split.

mod group;
mod likeness;
mod lines;
mod moved;
mod name;
mod node;
mod place;
mod rename;
mod rounds;
mod sequences;
mod similar;
mod spelling;
mod split;
mod state;

use crate::Weights;
use mallow_base::Frame;
use node::Sides;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A site of one side.
#[derive(Clone, Debug)]
pub struct DiffSite<'a, W> {
    /// The frames by which it is matched, leaf first. Frames of one profile should be borrowed from it, not copied:
    /// each is processed once.
    pub frames: Vec<&'a Frame>,
    /// Its metrics.
    pub totals: W,
}

/// The sites of one side. Large profiles have half a million, whose frames would not fit into memory apart.
pub trait DiffSites {
    /// The weights of its sites.
    type Weights: Weights;

    /// How many there are.
    fn count(&self) -> usize;

    /// The frames of one, as [`DiffSite::frames`].
    fn frames(&self, site: usize) -> impl Iterator<Item = &Frame>;

    /// The metrics of one.
    fn totals(&self, site: usize) -> &Self::Weights;
}

impl<W: Weights> DiffSites for Vec<DiffSite<'_, W>> {
    type Weights = W;

    fn count(&self) -> usize {
        self.len()
    }

    fn frames(&self, site: usize) -> impl Iterator<Item = &Frame> {
        self[site].frames.iter().copied()
    }

    fn totals(&self, site: usize) -> &W {
        &self[site].totals
    }
}

/// Indices of sites: of most entries one.
pub type SiteIndices = SmallVec<[usize; 2]>;

/// How certain it is that the sites of an entry are the same; the most certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The same functions and lines.
    Same,
    /// The same functions, inlined ones included, at other lines.
    Lines,
    /// The same functions in other source files or libraries.
    Files,
    /// The same functions without those that were inlined on one of the sides.
    Inlining,
    /// The same functions, some of them under another name.
    Renamed,
    /// The same functions, except those that only one of the profiles has: frames were added or removed in between.
    Frames,
    /// Stacks that are alike in so many per cent of their frames, by weight.
    Similar(u8),
}

/// Sites of both sides that are the same, or sites that the other side does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffEntry {
    /// Indices of sites of the side before; none for what is new.
    pub before: SiteIndices,
    /// Indices of sites of the side after; none for what is gone.
    pub after: SiteIndices,
    /// How they were matched; [`Level::Same`] if there was nothing to match.
    pub level: Level,
    /// Indices of the [`Diff::renames`] that were needed.
    pub renames: Vec<usize>,
}

/// A function that has another name on the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The normalised name before.
    pub before: String,
    /// The normalised name after.
    pub after: String,
}

/// The changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Every site once. In the order of the sites before, then those that only the side after has.
    pub entries: Vec<DiffEntry>,
    /// Renamed functions, by which some entry was matched.
    pub renames: Vec<Rename>,
    /// The [`common_name`] after of each function that has another one before.
    pub names: FxHashMap<String, String>,
}

/// A function's name without what differs between two builds of the same source.
pub fn common_name(function: &str) -> String {
    name::normalised(function)
}

impl Diff {
    /// Compares two sides. `known` says which metrics both sources have: similarity is judged by them. `same_modules`
    /// are paths of executables and libraries that are the very same file on both sides, so that an address without a
    /// name is the same place.
    pub fn of<S: DiffSites>(
        before: &S,
        after: &S,
        known: impl Fn(MetricOf<S>) -> bool,
        same_modules: &[&str],
    ) -> Self {
        let sides = Sides::of(before, after, known, same_modules);
        let outcome = rounds::run(&sides);
        let mut entries: Vec<DiffEntry> = outcome
            .matches
            .iter()
            .map(|found| DiffEntry {
                before: sites_of(&sides.before, &found.before),
                after: sites_of(&sides.after, &found.after),
                level: found.level,
                renames: outcome.renames_of(&sides, found),
            })
            .collect();
        // No two have the same sites.
        entries.sort_unstable_by_key(|entry| {
            (entry.before.first().copied().unwrap_or(usize::MAX), entry.after.first().copied())
        });
        let text = |id: u32| sides.names[id as usize].clone();
        let renames: Vec<Rename> =
            outcome.renames.iter().map(|&(b, a)| Rename { before: text(b), after: text(a) }).collect();
        let names = outcome.names.iter().map(|(before, after)| (text(*before), text(*after))).collect();
        let mut diff = Self { entries, renames, names };
        diff.drop_unused_renames();
        diff
    }

    fn drop_unused_renames(&mut self) {
        let mut places = vec![None; self.renames.len()];
        let mut kept = Vec::new();
        for entry in &mut self.entries {
            for rename in &mut entry.renames {
                let place = *places[*rename].get_or_insert_with(|| {
                    kept.push(self.renames[*rename].clone());
                    kept.len() - 1
                });
                *rename = place;
            }
        }
        self.renames = kept;
    }
}

fn sites_of(nodes: &[node::Node], indices: &[usize]) -> SiteIndices {
    let mut sites: SiteIndices = indices.iter().flat_map(|index| &nodes[*index].sites).copied().collect();
    sites.sort_unstable();
    sites
}

/// The metrics of several sites of a side together.
pub fn totals_of<S: DiffSites>(side: &S, sites: &[usize]) -> S::Weights {
    let mut totals = S::Weights::default();
    for site in sites {
        totals.add(side.totals(*site));
    }
    totals
}

/// One of the metrics of a side's sites.
type MetricOf<S> = <<S as DiffSites>::Weights as Weights>::Metric;

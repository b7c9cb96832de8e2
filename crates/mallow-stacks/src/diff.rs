//! What changed between two runs: which site of one is which site of the other.
//!
//! Two builds of a program never have the same stacks: lines move, functions are renamed, split, inlined,
//! built in another folder by another compiler. Sites are therefore matched in rounds, from the surest to the
//! least sure ([`Level`]), each over what the rounds before have left. Whatever is matched how, every site of
//! both sides stands in exactly one [`DiffEntry`], so sums over entries are always the totals of both sides.
//!
//! In the order of reading: [`name`] and [`place`] make names that two builds have in common, [`node`]
//! numbers them, [`rounds`] is the order of the rounds, [`lines`] pairs the calls of one function, [`group`]
//! those that are only roughly the same, [`rename`] finds renamed functions, [`similar`] is the last round,
//! and [`split`] puts together what was split.

mod group;
mod likeness;
mod lines;
mod name;
mod node;
mod place;
mod rename;
mod rounds;
mod similar;
mod spelling;
mod split;
mod state;

use crate::Weights;
use mallow_base::Frame;
use node::Sides;
use rustc_hash::FxHashMap;

/// A site of one side.
#[derive(Clone, Debug)]
pub struct DiffSite<'a, W> {
    /// The frames by which it is matched, leaf first. Frames of one profile should be borrowed from it, not copied:
    /// each is processed once.
    pub frames: Vec<&'a Frame>,
    /// Its metrics.
    pub totals: W,
}

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
pub struct DiffEntry<W> {
    /// Indices of sites of the side before; none for what is new.
    pub before: Vec<usize>,
    /// Indices of sites of the side after; none for what is gone.
    pub after: Vec<usize>,
    /// How they were matched; [`Level::Same`] if there was nothing to match.
    pub level: Level,
    /// Indices of the [`Diff::renames`] that were needed.
    pub renames: Vec<usize>,
    /// The metrics of the sites before.
    pub totals_before: W,
    /// The metrics of the sites after.
    pub totals_after: W,
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
pub struct Diff<W> {
    /// Every site once. In the order of the sites before, then those that only the side after has.
    pub entries: Vec<DiffEntry<W>>,
    /// Renamed functions, by which some entry was matched.
    pub renames: Vec<Rename>,
    /// The [`common_name`] after of each function that has another one before.
    pub names: FxHashMap<String, String>,
}

/// A function's name without what differs between two builds of the same source.
pub fn common_name(function: &str) -> String {
    name::normalised(function)
}

impl<W: Weights> Diff<W> {
    /// Compares two sides. `known` says which metrics both sources have: similarity is judged by them. `same_modules`
    /// are paths of executables and libraries that are the very same file on both sides, so that an address without a
    /// name is the same place.
    pub fn of(
        before: &[DiffSite<'_, W>],
        after: &[DiffSite<'_, W>],
        known: impl Fn(W::Metric) -> bool,
        same_modules: &[&str],
    ) -> Self {
        let sides = Sides::of(before, after, known, same_modules);
        let outcome = rounds::run(&sides);
        let mut entries: Vec<DiffEntry<W>> = outcome
            .matches
            .iter()
            .map(|found| {
                let before_sites = sites_of(&sides.before, &found.before);
                let after_sites = sites_of(&sides.after, &found.after);
                DiffEntry {
                    totals_before: sum(before, &before_sites),
                    totals_after: sum(after, &after_sites),
                    before: before_sites,
                    after: after_sites,
                    level: found.level,
                    renames: outcome.renames_of(&sides, found),
                }
            })
            .collect();
        entries.sort_by_key(|entry| {
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

fn sites_of(nodes: &[node::Node], indices: &[usize]) -> Vec<usize> {
    let mut sites: Vec<usize> = indices.iter().flat_map(|index| &nodes[*index].sites).copied().collect();
    sites.sort_unstable();
    sites
}

fn sum<W: Weights>(sites: &[DiffSite<'_, W>], indices: &[usize]) -> W {
    let mut totals = W::default();
    for index in indices {
        totals.add(&sites[*index].totals);
    }
    totals
}

//! The rounds of matching, from the surest to the least sure.

use super::likeness::Weights;
use super::node::{NameId, Node, Sides};
use super::sequences::Sequences;
use super::state::{Match, Rounds, Side};
use super::{Level, SiteIndices, group, lines, moved, rename, similar, spelling, split};
use rustc_hash::{FxHashMap, FxHashSet};

/// Rounds of looking for renamed functions: each one found makes the neighbours' neighbours known.
const RENAME_ROUNDS_MAX: usize = 4;

/// Everything, matched or not.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) matches: Vec<Match>,
    pub(super) renames: Vec<(NameId, NameId)>,
    /// Every name before that is another one after: renamed, or spelled otherwise.
    pub(super) names: FxHashMap<NameId, NameId>,
}

impl Outcome {
    /// Returns the renames between the nodes of a match.
    pub(super) fn renames_of(&self, sides: &Sides, found: &Match) -> Vec<usize> {
        if found.level < Level::Renamed || found.after.is_empty() {
            return Vec::new();
        }
        let frames = found.before.iter().flat_map(|index| sides.frames(&sides.before[*index]));
        let names: FxHashSet<NameId> = frames.map(|frame| frame.name).collect();
        (0..self.renames.len()).filter(|rename| names.contains(&self.renames[*rename].0)).collect()
    }
}

/// Matches what can be matched; the rest is unmatched.
pub(super) fn run(sides: &Sides) -> Outcome {
    let mut rounds = Rounds {
        sides,
        open_before: (0..sides.before.len()).collect(),
        open_after: (0..sides.after.len()).collect(),
        renamed: FxHashMap::default(),
        matches: Vec::new(),
    };
    rounds.by_lines(Level::Lines, |_, node, _, key| key.extend(sides.frames(node).map(|frame| frame.place)));
    let spellings = spelling::find(&rounds, &rounds.shared_names());
    rounds.renamed.extend(spellings);
    if rounds.open_before.is_empty() && rounds.open_after.is_empty() {
        return Outcome { matches: rounds.matches, renames: Vec::new(), names: rounds.renamed };
    }
    rounds.by_lines(Level::Files, Rounds::every_name);
    let weights = Weights::of(rounds.all_names().iter());
    rounds.by_group(Level::Inlining, &weights, Rounds::physical);
    let mut renames = Vec::new();
    for _ in 0..RENAME_ROUNDS_MAX {
        let found = rename::find(&rounds);
        if found.is_empty() {
            break;
        }
        rounds.renamed.extend(found.iter().copied());
        renames.extend(found);
        rounds.by_lines(Level::Renamed, Rounds::every_name);
        rounds.by_group(Level::Renamed, &weights, Rounds::physical);
    }
    let shared = rounds.shared_names();
    rounds
        .by_group(Level::Frames, &weights, |rounds, node, side, key| rounds.shared(node, side, &shared, key));
    rounds.by_group(Level::Frames, &weights, |rounds, node, side, key| {
        rounds.shared_own(node, side, &shared, key);
    });
    moved::pair(&mut rounds, &shared, &weights);
    similar::pair(&mut rounds, &weights);
    split::join(&mut rounds, &shared);
    rounds.rest();
    Outcome { matches: rounds.matches, renames, names: rounds.renamed }
}

impl Rounds<'_> {
    /// A round over nodes whose functions are the same: only lines may differ.
    fn by_lines(&mut self, level: Level, key: impl Fn(&Self, &Node, Side, &mut Vec<u32>)) {
        for (before, after) in self.groups(key) {
            for (before, after) in lines::pair(self.sides, &before, &after) {
                let is_same = level == Level::Lines
                    && before.len() == 1
                    && after.len() == 1
                    && self.sides.have_same_lines(&self.sides.before[before[0]], &self.sides.after[after[0]]);
                self.matches.push(Match { before, after, level: if is_same { Level::Same } else { level } });
            }
        }
        self.close();
    }

    /// A round over nodes that are roughly the same: metrics have a say.
    fn by_group(&mut self, level: Level, weights: &Weights, key: impl Fn(&Self, &Node, Side, &mut Vec<u32>)) {
        for (before, after) in self.groups(key) {
            for (before, after) in group::pair(self, weights, &before, &after) {
                self.matches.push(Match { before, after, level });
            }
        }
        self.close();
    }

    /// Open nodes of both sides under the same key, which `key` appends, in the order of the nodes before. An empty key is no key.
    pub(super) fn groups(
        &self,
        key: impl Fn(&Self, &Node, Side, &mut Vec<u32>),
    ) -> Vec<(SiteIndices, SiteIndices)> {
        let mut keys = Sequences::default();
        let mut groups: Vec<(SiteIndices, SiteIndices)> = Vec::new();
        let mut items = Vec::new();
        for &index in &self.open_before {
            let node = &self.sides.before[index];
            items.clear();
            key(self, node, Side::Before, &mut items);
            if !items.is_empty() || node.is_stackless() {
                let at = keys.add(&items) as usize;
                if at == groups.len() {
                    groups.push((SiteIndices::new(), SiteIndices::new()));
                }
                groups[at].0.push(index);
            }
        }
        for &index in &self.open_after {
            let node = &self.sides.after[index];
            items.clear();
            key(self, node, Side::After, &mut items);
            if (!items.is_empty() || node.is_stackless())
                && let Some(at) = keys.find(&items)
            {
                groups[at as usize].1.push(index);
            }
        }
        groups.retain(|(_, after)| !after.is_empty());
        groups
    }

    /// Adds unmatched nodes.
    fn rest(&mut self) {
        let alone = |before, after| Match { before, after, level: Level::Same };
        let one = |index: &usize| SiteIndices::from_slice(&[*index]);
        let gone = self.open_before.iter().map(|index| alone(one(index), SiteIndices::new()));
        let new = self.open_after.iter().map(|index| alone(SiteIndices::new(), one(index)));
        let rest: Vec<Match> = gone.chain(new).collect();
        self.matches.extend(rest);
    }
}

//! The last round: stacks that are alike.
//!
//! Two stacks are alike by their heaviest common subsequence of names, where a name weighs the more the fewer
//! stacks have it. Only pairs that share a function near the leaf are looked at: sites that share nothing but
//! callers are different allocations in one part of the program. So the work grows with the number of sites,
//! not with its square.

use super::likeness::{ALIKE, STACKS_ALIKE, Weights, agreement, is_plausible, same_leaf};
use super::node::NameId;
use super::state::{Match, Rounds, Side};
use super::{Level, SiteIndices, group};
use rustc_hash::FxHashMap;

/// Frames from the leaf of which two candidates must share one.
const NEAR: usize = 4;
/// That frame must be among so many from the leaf on at least one side.
const NEAREST: usize = 2;
/// If very many sites share a function near the leaf: how many of the nearest by metrics are compared, on either
/// side.
const BUCKET_HALF: usize = 32;
/// Candidates of a site that are aligned, the most promising first.
const ALIGNED_MAX: usize = 24;
/// With exactly the same metrics and the same leaf, stacks that are less alike may be the same: called from
/// elsewhere.
const STACKS_ALIKE_EQUAL: u32 = 350;

/// Pairs open nodes whose stacks are alike, the most alike first.
pub(super) fn pair(rounds: &mut Rounds<'_>, weights: &Weights) {
    let open = Open::of(rounds);
    let mut found = Vec::new();
    for b in 0..open.before.len() {
        let mut candidates: Vec<(u32, usize)> = open
            .near(rounds, b)
            .into_iter()
            .map(|a| (weights.bound(&open.sorted_before[b], &open.sorted_after[a]), a))
            .filter(|(bound, _)| *bound >= STACKS_ALIKE_EQUAL)
            .collect();
        candidates.sort_unstable_by_key(|&(bound, a)| (std::cmp::Reverse(bound), a));
        candidates.truncate(ALIGNED_MAX);
        found.extend(candidates.into_iter().filter_map(|(_, a)| open.worth(rounds, weights, b, a)));
    }
    // The most alike first; of equally alike stacks those whose metrics agree; then in the order of the nodes.
    found.sort_unstable_by_key(|pair| {
        (std::cmp::Reverse((pair.likeness, pair.agreement)), pair.before, pair.after)
    });
    let likeness: FxHashMap<(usize, usize), u32> =
        found.iter().map(|pair| ((pair.before, pair.after), pair.likeness)).collect();
    for pair in group::greedy(found.iter().map(|pair| (pair.before, pair.after))) {
        let percent = likeness.get(&pair).map_or(0, |likeness| likeness * 100 / ALIKE);
        let level = Level::Similar(percent.min(99) as u8);
        rounds.matches.push(Match {
            before: SiteIndices::from_slice(&[pair.0]),
            after: SiteIndices::from_slice(&[pair.1]),
            level,
        });
    }
    rounds.close();
}

struct Candidate {
    before: usize,
    after: usize,
    likeness: u32,
    agreement: u32,
}

/// The open nodes' names, and where to find those of the side after.
struct Open {
    before: Vec<Vec<NameId>>,
    after: Vec<Vec<NameId>>,
    /// The same in the order of the names, for bounds.
    sorted_before: Vec<Vec<NameId>>,
    sorted_after: Vec<Vec<NameId>>,
    /// For each name near a leaf: positions in `after`, by metric.
    by_name: FxHashMap<NameId, Vec<(u64, usize)>>,
}

impl Open {
    fn of(rounds: &Rounds<'_>) -> Self {
        let names = |side, index: &usize| rounds.names(&rounds.nodes(side)[*index], side);
        let before: Vec<Vec<NameId>> =
            rounds.open_before.iter().map(|index| names(Side::Before, index)).collect();
        let after: Vec<Vec<NameId>> =
            rounds.open_after.iter().map(|index| names(Side::After, index)).collect();
        let mut by_name: FxHashMap<NameId, Vec<(u64, usize)>> = FxHashMap::default();
        for (at, names) in after.iter().enumerate() {
            let metric = rounds.sides.after[rounds.open_after[at]].metrics[0];
            for name in names.iter().take(NEAR) {
                by_name.entry(*name).or_default().push((metric, at));
            }
        }
        by_name.values_mut().for_each(|bucket| {
            bucket.sort_unstable();
            bucket.dedup();
        });
        let (sorted_before, sorted_after) = (sorted(&before), sorted(&after));
        Self { before, after, sorted_before, sorted_after, by_name }
    }

    /// Positions in `after` of nodes that share a function near the leaf.
    fn near(&self, rounds: &Rounds<'_>, b: usize) -> Vec<usize> {
        let metric = rounds.sides.before[rounds.open_before[b]].metrics[0];
        let mut near = Vec::new();
        for name in self.before[b].iter().take(NEAR) {
            let Some(bucket) = self.by_name.get(name) else { continue };
            let middle = bucket.partition_point(|entry| entry.0 < metric);
            let nearest = &bucket[middle.saturating_sub(BUCKET_HALF)..bucket.len().min(middle + BUCKET_HALF)];
            near.extend(nearest.iter().map(|entry| entry.1));
        }
        near.sort_unstable();
        near.dedup();
        near.retain(|a| shares_near_leaf(&self.before[b], &self.after[*a]));
        near
    }

    /// The pair, if it is to be believed.
    fn worth(&self, rounds: &Rounds<'_>, weights: &Weights, b: usize, a: usize) -> Option<Candidate> {
        let (names_before, names_after) = (&self.before[b], &self.after[a]);
        let (before, after) = (rounds.open_before[b], rounds.open_after[a]);
        let (node_before, node_after) = (&rounds.sides.before[before], &rounds.sides.after[after]);
        let likeness = weights.of_sequences(names_before, names_after);
        let is_equal = node_before.metrics == node_after.metrics;
        let enough =
            if is_equal && same_leaf(names_before, names_after) { STACKS_ALIKE_EQUAL } else { STACKS_ALIKE };
        let is_believed =
            likeness >= enough && is_plausible(node_before, node_after, names_before, names_after, likeness);
        let agreement = agreement(node_before.metrics, node_after.metrics);
        is_believed.then_some(Candidate { before, after, likeness, agreement })
    }
}

fn sorted(sequences: &[Vec<NameId>]) -> Vec<Vec<NameId>> {
    let mut sorted = sequences.to_vec();
    sorted.iter_mut().for_each(|names| names.sort_unstable());
    sorted
}

/// Returns whether a function is near the leaf of both.
fn shares_near_leaf(before: &[NameId], after: &[NameId]) -> bool {
    before.iter().take(NEAR).enumerate().any(|(at, name)| {
        let reach = if at < NEAREST { NEAR } else { NEAREST };
        after.iter().take(reach).any(|other| other == name)
    })
}

#[cfg(test)]
#[path = "similar_tests.rs"]
mod tests;

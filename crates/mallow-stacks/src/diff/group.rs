//! Pairs nodes that are the same under a rough key: without inlined calls, or without functions that only one
//! side has.
//!
//! Such a key says that two sites lie in the same part of the program, not that they are one. So a pair must
//! also allocate in the same function, or allocate as much.

use super::likeness::{Weights, agreement, is_plausible};
use super::state::{Rounds, Side};
use super::{SiteIndices, split};

/// Pairs of one group that are compared; with more, nodes are paired in the order of their metrics.
const PAIRS_MAX: usize = 1 << 14;

/// Pairs the nodes of a group, the most alike first, or puts all of them together when sites were split or joined.
pub(super) fn pair(
    rounds: &Rounds<'_>,
    weights: &Weights,
    before: &[usize],
    after: &[usize],
) -> Vec<(SiteIndices, SiteIndices)> {
    let pairs = if before.len().saturating_mul(after.len()) > PAIRS_MAX {
        by_metrics(rounds, weights, before, after)
    } else {
        most_alike_first(rounds, weights, before, after)
    };
    if split::explains(rounds.sides, before, after, &pairs) {
        return vec![(before.into(), after.into())];
    }
    let one = |index: usize| SiteIndices::from_slice(&[index]);
    pairs.into_iter().map(|(before, after)| (one(before), one(after))).collect()
}

/// Returns the score of a pair; `None` if it is implausible.
fn worth(rounds: &Rounds<'_>, weights: &Weights, before: usize, after: usize) -> Option<u32> {
    let (b, a) = (&rounds.sides.before[before], &rounds.sides.after[after]);
    let (names_before, names_after) = (rounds.names(b, Side::Before), rounds.names(a, Side::After));
    let likeness = weights.of_sequences(&names_before, &names_after);
    is_plausible(b, a, &names_before, &names_after, likeness)
        .then(|| likeness + agreement(b.metrics, a.metrics))
}

fn most_alike_first(
    rounds: &Rounds<'_>,
    weights: &Weights,
    before: &[usize],
    after: &[usize],
) -> Vec<(usize, usize)> {
    let mut candidates = Vec::new();
    for &b in before {
        candidates.extend(
            after.iter().filter_map(|&a| Some((std::cmp::Reverse(worth(rounds, weights, b, a)?), b, a))),
        );
    }
    candidates.sort_unstable();
    greedy(candidates.into_iter().map(|(_, b, a)| (b, a)))
}

fn by_metrics(
    rounds: &Rounds<'_>,
    weights: &Weights,
    before: &[usize],
    after: &[usize],
) -> Vec<(usize, usize)> {
    let sorted = |indices: &[usize], nodes: &[super::node::Node]| {
        let mut sorted = indices.to_vec();
        sorted.sort_by_key(|index| (std::cmp::Reverse(nodes[*index].metrics), *index));
        sorted
    };
    let (before, after) = (sorted(before, &rounds.sides.before), sorted(after, &rounds.sides.after));
    before.into_iter().zip(after).filter(|&(b, a)| worth(rounds, weights, b, a).is_some()).collect()
}

/// Takes each pair whose two nodes are still free.
pub(super) fn greedy(candidates: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let (mut before, mut after) = (rustc_hash::FxHashSet::default(), rustc_hash::FxHashSet::default());
    candidates
        .filter(|(b, a)| {
            let is_free = !before.contains(b) && !after.contains(a);
            if is_free {
                before.insert(*b);
                after.insert(*a);
            }
            is_free
        })
        .collect()
}

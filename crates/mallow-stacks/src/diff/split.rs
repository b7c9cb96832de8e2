//! Sites that were split or joined: one before, several after, with the same sum.

use super::Level;
use super::node::{NameId, Node, Sides};
use super::state::{Match, Rounds, SharedNames, Side};
use rustc_hash::{FxHashMap, FxHashSet};

/// By how much metrics differ, as a sum of absolute values.
type Variation = [u128; 2];

/// Returns whether it explains more to take all nodes of a group together than to pair them: at most half of the
/// differences remain. Only where the numbers of nodes differ; otherwise nothing was split.
pub(super) fn explains(sides: &Sides, before: &[usize], after: &[usize], pairs: &[(usize, usize)]) -> bool {
    if before.len() == after.len() {
        return false;
    }
    let mut apart = Variation::default();
    for &(b, a) in pairs {
        add(&mut apart, difference(sides.before[b].metrics, sides.after[a].metrics));
    }
    let paired_before: FxHashSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let paired_after: FxHashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let alone_before = before.iter().filter(|b| !paired_before.contains(b)).map(|b| sides.before[*b].metrics);
    let alone_after = after.iter().filter(|a| !paired_after.contains(a)).map(|a| sides.after[*a].metrics);
    for metrics in alone_before.chain(alone_after) {
        add(&mut apart, difference(metrics, [0; 2]));
    }
    halves(difference(sum(&sides.before, before), sum(&sides.after, after)), apart)
}

fn halves(together: Variation, apart: Variation) -> bool {
    apart[0] + apart[1] > 0 && (0..2).all(|at| 2 * together[at] <= apart[at])
}

fn difference(a: [u64; 2], b: [u64; 2]) -> Variation {
    [u128::from(a[0].abs_diff(b[0])), u128::from(a[1].abs_diff(b[1]))]
}

fn add(sum: &mut Variation, more: Variation) {
    sum[0] += more[0];
    sum[1] += more[1];
}

fn sum(nodes: &[Node], indices: &[usize]) -> [u64; 2] {
    indices.iter().fold([0; 2], |sum, index| {
        let metrics = nodes[*index].metrics;
        [sum[0].saturating_add(metrics[0]), sum[1].saturating_add(metrics[1])]
    })
}

/// Adds open nodes to matches that lack what they have: part of what a function did is now done by a new
/// function that it calls. Largest first, each to the match with which the least difference remains.
pub(super) fn join(rounds: &mut Rounds<'_>, shared: &SharedNames) {
    let mut by_key: FxHashMap<Vec<NameId>, Vec<usize>> = FxHashMap::default();
    for (index, found) in rounds.matches.iter().enumerate() {
        if sum(&rounds.sides.before, &found.before) != sum(&rounds.sides.after, &found.after) {
            let mut key = Vec::new();
            rounds.shared(&rounds.sides.before[found.before[0]], Side::Before, shared, &mut key);
            by_key.entry(key).or_default().push(index);
        }
    }
    let mut open: Vec<(Side, usize)> =
        rounds.open_before.iter().map(|index| (Side::Before, *index)).collect();
    open.extend(rounds.open_after.iter().map(|index| (Side::After, *index)));
    open.sort_by_key(|&(side, index)| {
        (std::cmp::Reverse(node(rounds, side, index).metrics), side == Side::After, index)
    });
    for (side, index) in open {
        let mut key = Vec::new();
        rounds.shared(node(rounds, side, index), side, shared, &mut key);
        let candidates = by_key.get(&key).map_or(&[][..], Vec::as_slice);
        let best = candidates
            .iter()
            .filter_map(|at| Some((remaining(rounds, &rounds.matches[*at], side, index)?, *at)))
            .min();
        if let Some((_, at)) = best {
            let found = &mut rounds.matches[at];
            match side {
                Side::Before => found.before.push(index),
                Side::After => found.after.push(index),
            }
            found.level = found.level.max(Level::Frames);
        }
    }
    rounds.close();
}

fn node<'a>(rounds: &Rounds<'a>, side: Side, index: usize) -> &'a Node {
    &rounds.nodes(side)[index]
}

/// Returns the remaining difference if a node joins a match; `None` if it does not become smaller.
fn remaining(rounds: &Rounds<'_>, found: &Match, side: Side, index: usize) -> Option<u128> {
    let mut before = sum(&rounds.sides.before, &found.before);
    let mut after = sum(&rounds.sides.after, &found.after);
    let metrics = node(rounds, side, index).metrics;
    let mut apart = difference(before, after);
    add(&mut apart, difference(metrics, [0; 2]));
    let joined = if side == Side::Before { &mut before } else { &mut after };
    for (sum, more) in joined.iter_mut().zip(metrics) {
        *sum = sum.saturating_add(more);
    }
    let together = difference(before, after);
    halves(together, apart).then_some(together[0] + together[1])
}

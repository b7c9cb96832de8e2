//! The last round against a twin that looks at all pairs, and aligns them by trying everything.

use super::*;
use crate::diff::node::{Made, Node, Sides, Token};
use proptest::prelude::*;

fn node(names: &[NameId], metrics: [u64; 2]) -> Made {
    let frames =
        names.iter().map(|name| Token { name: *name, place: *name, line: 0, is_inlined: false }).collect();
    (frames, metrics)
}

fn rounds(sides: &Sides) -> Rounds<'_> {
    Rounds {
        sides,
        open_before: (0..sides.before.len()).collect(),
        open_after: (0..sides.after.len()).collect(),
        renamed: FxHashMap::default(),
        matches: Vec::new(),
    }
}

/// The heaviest common subsequence, by trying both ways wherever names differ.
fn heaviest(weights: &Weights, a: &[NameId], b: &[NameId]) -> u32 {
    let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) else { return 0 };
    let apart = heaviest(weights, rest_a, b).max(heaviest(weights, a, rest_b));
    if first_a == first_b {
        apart.max(weights.of_name(*first_a) + heaviest(weights, rest_a, rest_b))
    } else {
        apart
    }
}

fn naive_pairs(sides: &Sides, weights: &Weights) -> Vec<(usize, usize)> {
    let names = |node: &Node| {
        let mut names: Vec<NameId> = sides.frames(node).map(|frame| frame.name).collect();
        names.dedup();
        names
    };
    let mut all = Vec::new();
    for (b, before) in sides.before.iter().enumerate() {
        for (a, after) in sides.after.iter().enumerate() {
            let (x, y) = (names(before), names(after));
            let is_near = (0..4)
                .any(|i| (0..4).any(|j| (i < 2 || j < 2) && i < x.len() && j < y.len() && x[i] == y[j]));
            let whole: u32 = x.iter().chain(&y).map(|name| weights.of_name(*name)).sum();
            let likeness = heaviest(weights, &x, &y) * 2000 / whole;
            let leaf = x[0] == y[0] || x.get(1) == Some(&y[0]) || y.get(1) == Some(&x[0]);
            let ratio = |at: usize| {
                let (small, large) =
                    (before.metrics[at].min(after.metrics[at]), before.metrics[at].max(after.metrics[at]));
                (small * 1000).checked_div(large).unwrap_or(1000)
            };
            let agreement = (ratio(0) + ratio(1)) / 2;
            let enough = if before.metrics == after.metrics && leaf { 350 } else { 550 };
            let is_plausible = (leaf && likeness >= 550) || agreement >= 800;
            if is_near && likeness >= enough && is_plausible {
                all.push((likeness, agreement, b, a));
            }
        }
    }
    let mut pairs = Vec::new();
    while let Some(best) = all.iter().copied().max_by_key(|&(l, g, b, a)| (l, g, std::cmp::Reverse((b, a)))) {
        pairs.push((best.2, best.3));
        all.retain(|other| other.2 != best.2 && other.3 != best.3);
    }
    pairs
}

fn side() -> impl Strategy<Value = Vec<Made>> {
    let node_of = (prop::collection::vec(0..9_u32, 1..6), 0..4_u64, 0..3_u64);
    prop::collection::vec(node_of, 0..9).prop_map(|nodes| {
        nodes.iter().map(|(names, calls, size)| node(names, [*calls, calls * size])).collect()
    })
}

proptest! {
    #[test]
    fn the_fast_way_finds_the_same_pairs(before in side(), after in side()) {
        let sides = Sides::made(&before, &after);
        let sequences: Vec<Vec<NameId>> = sides
            .before
            .iter()
            .chain(&sides.after)
            .map(|node| sides.frames(node).map(|frame| frame.name).collect())
            .collect();
        let weights = Weights::of(sequences.iter().map(Vec::as_slice));
        let mut rounds = rounds(&sides);
        pair(&mut rounds, &weights);
        let found: Vec<(usize, usize)> =
            rounds.matches.iter().map(|found| (found.before[0], found.after[0])).collect();
        prop_assert_eq!(&found, &naive_pairs(&sides, &weights));
        let open: Vec<usize> =
            (0..sides.before.len()).filter(|b| !found.iter().any(|pair| pair.0 == *b)).collect();
        prop_assert_eq!(rounds.open_before, open);
    }
}

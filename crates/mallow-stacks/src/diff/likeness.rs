//! How much two sites are alike, in thousandths: by their metrics, by their names, by the sequence of their frames.
//!
//! Everything is counted in integers, so that the same input gives the same answer on every machine.

use super::node::{NameId, Node};

/// The whole: two things are the same.
pub(super) const ALIKE: u32 = 1000;

/// Metrics that agree at least so well count as the same site's, seen twice: warm caches and hash seeds move
/// metrics by a few per cent, another use of memory moves them by factors.
pub(super) const METRICS_AGREE: u32 = 800;

/// A function that calls what another called from the same callers is likely to be it, unless it does
/// something of another size: anybody calls `strdup`.
pub(super) const METRICS_NEAR: u32 = 250;

/// The smaller of two metrics over the larger.
pub(super) fn ratio(a: u64, b: u64) -> u32 {
    let (small, large) = (a.min(b), a.max(b));
    if large == 0 { ALIKE } else { (u128::from(small) * u128::from(ALIKE) / u128::from(large)) as u32 }
}

/// The mean over both metrics.
pub(super) fn agreement(a: [u64; 2], b: [u64; 2]) -> u32 {
    u32::midpoint(ratio(a[0], b[0]), ratio(a[1], b[1]))
}

/// Returns how many pairs of neighbouring characters two names have in common, divided by the mean of how many they
/// have (Dice's coefficient). Only the last part of each name counts: a renamed function mostly stays in its module.
pub(super) fn of_names(a: &str, b: &str) -> u32 {
    let pairs = |name: &str| {
        let bytes = last_part(name).as_bytes().to_ascii_lowercase();
        bytes.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    };
    let (a, mut b) = (pairs(a), pairs(b));
    let length = a.len() + b.len();
    if length == 0 {
        return 0;
    }
    let mut shared = 0;
    for pair in &a {
        if let Some(at) = b.iter().position(|other| other == pair) {
            b.swap_remove(at);
            shared += 1;
        }
    }
    2 * shared * ALIKE / length as u32
}

/// A function's name without namespace, arguments and parameters.
fn last_part(name: &str) -> &str {
    let end = name.find(['(', '<']).filter(|at| *at > 0).unwrap_or(name.len());
    name[..end].rsplit([':', '.', ' ']).next().filter(|part| !part.is_empty()).unwrap_or(name)
}

/// The weight of a name that two stacks have in common: `main` is on all stacks, and has a small weight.
pub(super) struct Weights(Vec<u32>);

impl Weights {
    /// Computes weights from the sequences of both sides: one, and one more each time that the name is on half as
    /// many of them.
    pub(super) fn of<'a>(sequences: impl Iterator<Item = &'a [NameId]> + Clone) -> Self {
        let count = sequences.clone().count() as u32;
        let mut stacks: Vec<(u32, usize)> = Vec::new();
        for (index, sequence) in sequences.enumerate() {
            for name in sequence {
                let name = *name as usize;
                if name >= stacks.len() {
                    stacks.resize(name + 1, (0, usize::MAX));
                }
                let (times, last) = &mut stacks[name];
                if *last != index {
                    (*times, *last) = (*times + 1, index);
                }
            }
        }
        Self(stacks.iter().map(|(times, _)| 1 + (count / (*times).max(1)).max(1).ilog2()).collect())
    }

    /// The weight of a name.
    pub(super) fn of_name(&self, name: NameId) -> u32 {
        self.0.get(name as usize).copied().unwrap_or(1)
    }

    /// The weight of a sequence.
    pub(super) fn of_all(&self, names: &[NameId]) -> u32 {
        names.iter().map(|name| self.of_name(*name)).sum()
    }

    /// Returns an upper bound of [`Weights::of_sequences`]: the common names in any order. Both are sorted.
    pub(super) fn bound(&self, a: &[NameId], b: &[NameId]) -> u32 {
        let (mut at, mut shared) = (0, 0);
        for name in a {
            while at < b.len() && b[at] < *name {
                at += 1;
            }
            if at < b.len() && b[at] == *name {
                shared += self.of_name(*name);
                at += 1;
            }
        }
        share(shared, self.of_all(a) + self.of_all(b))
    }

    /// The heaviest common subsequence, over the mean weight of both.
    pub(super) fn of_sequences(&self, a: &[NameId], b: &[NameId]) -> u32 {
        let whole = self.of_all(a) + self.of_all(b);
        let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let (mut shared, a, b) = (self.of_all(&a[..start]), &a[start..], &b[start..]);
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        shared += self.of_all(&a[a.len() - end..]);
        let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
        // The usual table, one row at a time: best[j] is the weight for the rows so far and the first j of `b`.
        let mut best = vec![0_u32; b.len() + 1];
        for name in a {
            let mut diagonal = 0;
            for (at, other) in b.iter().enumerate() {
                let above = best[at + 1];
                best[at + 1] =
                    if name == other { diagonal + self.of_name(*name) } else { above.max(best[at]) };
                diagonal = above;
            }
        }
        share(shared + best[b.len()], whole)
    }
}

fn share(shared: u32, whole: u32) -> u32 {
    if whole == 0 { 0 } else { (u64::from(shared) * 2 * u64::from(ALIKE) / u64::from(whole)) as u32 }
}

/// Stacks with this similarity, in thousandths, may be the same site. Below a half, most of the particular frames of
/// either stack are not on the other; a little more is required, since callers alone are often half of a stack.
pub(super) const STACKS_ALIKE: u32 = 550;

/// Returns whether two sites may be the same although their stacks differ: the same function allocates on similar
/// stacks, or as much is allocated.
pub(super) fn is_plausible(
    before: &Node,
    after: &Node,
    names_before: &[NameId],
    names_after: &[NameId],
    likeness: u32,
) -> bool {
    let is_same = likeness >= STACKS_ALIKE && same_leaf(names_before, names_after);
    is_same || agreement(before.metrics, after.metrics) >= METRICS_AGREE
}

/// Returns whether the innermost functions are the same, except for one that was added or removed.
pub(super) fn same_leaf(before: &[NameId], after: &[NameId]) -> bool {
    let (Some(b), Some(a)) = (before.first(), after.first()) else {
        return before.is_empty() && after.is_empty();
    };
    a == b || after.get(1) == Some(b) || before.get(1) == Some(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_agree_by_their_ratio() {
        assert_eq!(agreement([0, 0], [0, 0]), 1000);
        assert_eq!(agreement([100, 50], [50, 50]), 750);
        assert_eq!(agreement([u64::MAX, 0], [u64::MAX, 1]), 500);
    }

    #[test]
    fn names_are_alike_by_their_last_part() {
        assert_eq!(of_names("app::load_rows(int)", "io::load_rows(char)"), 1000);
        assert!(of_names("load_rows", "read_rows") >= 500);
        assert!(of_names("parse", "write_out") < 300);
        assert_eq!(of_names("a", "b"), 0);
    }

    #[test]
    fn what_stands_on_every_stack_weighs_least() {
        let stacks: [&[NameId]; 4] = [&[1, 9], &[2, 9], &[3, 9], &[3, 3, 9]];
        let weights = Weights::of(stacks.iter().copied());
        assert_eq!([1, 3, 9].map(|name| weights.of_name(name)), [3, 2, 1]);
        assert_eq!(weights.of_sequences(&[1, 9], &[2, 9]), 2 * 1000 / 8);
        assert_eq!(weights.of_sequences(&[1, 3, 9], &[1, 9]), 2 * 4 * 1000 / 10);
        assert_eq!(weights.of_sequences(&[1, 2], &[2, 1]), 2 * 3 * 1000 / 12);
        assert_eq!(weights.bound(&[1, 2], &[1, 2]), 1000);
        assert_eq!(weights.of_sequences(&[], &[]), 0);
    }
}

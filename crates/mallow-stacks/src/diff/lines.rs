//! Which call of a function is which: nodes with the same functions, told apart by their lines.
//!
//! Lines move, but calls keep their order. So both sides are put in the order of their lines, and the best
//! alignment that keeps the order is taken: the one with the most pairs whose metrics and lines agree. Equal
//! lines alone prove nothing: where everything moved by ten lines, line 20 is another call than before.

use super::likeness::{ALIKE, agreement};
use super::node::{Node, Sides};
use super::{SiteIndices, split};
use std::cmp::Ordering;

/// Cells of the table of alignments above which calls are paired by equal lines, then in their order.
const CELLS_MAX: usize = 1 << 20;

/// Pairs nodes of the same functions, or puts all of them together when calls were split or joined.
pub(super) fn pair(sides: &Sides, before: &[usize], after: &[usize]) -> Vec<(SiteIndices, SiteIndices)> {
    let one = |index: usize| SiteIndices::from_slice(&[index]);
    if let ([before], [after]) = (before, after) {
        return vec![(one(*before), one(*after))];
    }
    let (before, after) = (by_lines(sides, &sides.before, before), by_lines(sides, &sides.after, after));
    let pairs = if before.len().saturating_mul(after.len()) > CELLS_MAX {
        by_equal_lines(sides, &before, &after)
    } else {
        in_order(sides, &before, &after)
    };
    if split::explains(sides, &before, &after, &pairs) {
        return vec![(before.into(), after.into())];
    }
    pairs.into_iter().map(|(before, after)| (one(before), one(after))).collect()
}

fn by_lines(sides: &Sides, nodes: &[Node], indices: &[usize]) -> Vec<usize> {
    let mut sorted = indices.to_vec();
    sorted.sort_by(|a, b| sides.compare_lines(&nodes[*a], &nodes[*b]).then(a.cmp(b)));
    sorted
}

/// Returns the score of a pair. Being a pair counts twice as much as equal lines, so that a call is not left
/// unmatched because another call is on its old line.
fn worth(sides: &Sides, before: &Node, after: &Node) -> u32 {
    let lines = if sides.have_same_lines(before, after) { ALIKE } else { 0 };
    2 * ALIKE + 2 * agreement(before.metrics, after.metrics) + lines
}

/// The alignment of the highest worth that keeps the order of both.
fn in_order(sides: &Sides, before: &[usize], after: &[usize]) -> Vec<(usize, usize)> {
    let width = after.len() + 1;
    let worth_of = |b: usize, a: usize| worth(sides, &sides.before[before[b]], &sides.after[after[a]]);
    // best[b * width + a]: the worth of the first b and a.
    let mut best = vec![0_u32; (before.len() + 1) * width];
    for b in 0..before.len() {
        for a in 0..after.len() {
            let alone = best[b * width + a + 1].max(best[(b + 1) * width + a]);
            best[(b + 1) * width + a + 1] = alone.max(best[b * width + a] + worth_of(b, a));
        }
    }
    let (mut b, mut a, mut pairs) = (before.len(), after.len(), Vec::new());
    while b > 0 && a > 0 {
        let here = best[b * width + a];
        if here == best[(b - 1) * width + a - 1] + worth_of(b - 1, a - 1) {
            (b, a) = (b - 1, a - 1);
            pairs.push((before[b], after[a]));
        } else if here == best[(b - 1) * width + a] {
            b -= 1;
        } else {
            a -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// For very many calls: those at equal lines, then the rest one after the other.
fn by_equal_lines(sides: &Sides, before: &[usize], after: &[usize]) -> Vec<(usize, usize)> {
    let (mut pairs, mut rest_before, mut rest_after) = (Vec::new(), Vec::new(), Vec::new());
    let (mut b, mut a) = (0, 0);
    while b < before.len() && a < after.len() {
        match sides.compare_lines(&sides.before[before[b]], &sides.after[after[a]]) {
            Ordering::Less => {
                rest_before.push(before[b]);
                b += 1;
            }
            Ordering::Greater => {
                rest_after.push(after[a]);
                a += 1;
            }
            Ordering::Equal => {
                pairs.push((before[b], after[a]));
                (b, a) = (b + 1, a + 1);
            }
        }
    }
    rest_before.extend(&before[b..]);
    rest_after.extend(&after[a..]);
    pairs.extend(rest_before.into_iter().zip(rest_after));
    pairs
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;

//! Calls that moved, and the alignment against one that tries everything.

use super::*;
use crate::diff::node::{Made, Token};
use proptest::prelude::*;

fn calls(calls: &[(u64, u64)]) -> Vec<Made> {
    let node = |&(line, metric): &(u64, u64)| {
        (vec![Token { name: 0, place: 0, line, is_inlined: false }], [metric, metric * 8])
    };
    calls.iter().map(node).collect()
}

/// Pairs, each as the lines of both sides.
fn paired(before: &[(u64, u64)], after: &[(u64, u64)]) -> Vec<(Vec<u64>, Vec<u64>)> {
    let sides = Sides::made(&calls(before), &calls(after));
    let all = |nodes: &[Node]| (0..nodes.len()).collect::<Vec<_>>();
    let lines = |nodes: &[Node], indices: &[usize]| -> Vec<u64> {
        indices.iter().map(|at| sides.frames(&nodes[*at]).next().unwrap().line).collect()
    };
    pair(&sides, &all(&sides.before), &all(&sides.after))
        .iter()
        .map(|(b, a)| (lines(&sides.before, b), lines(&sides.after, a)))
        .collect()
}

fn one(before: u64, after: u64) -> (Vec<u64>, Vec<u64>) {
    (vec![before], vec![after])
}

#[test]
fn a_line_that_another_call_took_over_is_not_that_call() {
    assert_eq!(paired(&[(10, 100), (20, 5)], &[(20, 100), (30, 5)]), [one(10, 20), one(20, 30)]);
    assert_eq!(paired(&[(10, 7), (20, 7)], &[(20, 7), (30, 7)]), [one(10, 20), one(20, 30)]);
}

#[test]
fn a_call_that_came_in_between_stays_alone() {
    assert_eq!(paired(&[(10, 100), (20, 5)], &[(10, 7), (11, 100), (21, 5)]), [one(10, 11), one(20, 21)]);
    assert_eq!(paired(&[(10, 100)], &[(10, 100), (20, 100)]), [one(10, 10)]);
}

#[test]
fn a_call_that_was_split_is_one() {
    assert_eq!(paired(&[(10, 1000)], &[(10, 400), (15, 600)]), [(vec![10], vec![10, 15])]);
}

#[test]
fn very_many_calls_are_paired_by_their_lines() {
    let before: Vec<(u64, u64)> = (0..1100).map(|line| (line, 1)).collect();
    let after: Vec<(u64, u64)> = (5..1105).map(|line| (line, 1)).collect();
    let pairs = paired(&before, &after);
    assert_eq!(pairs.len(), 1100);
    assert_eq!((&pairs[0], &pairs[1095]), (&one(5, 5), &one(0, 1100)));
}

/// The worth of the best alignment, by trying to pair or to skip each call.
fn best(sides: &Sides, before: &[Node], after: &[Node]) -> u32 {
    let ([b, before_rest @ ..], [a, after_rest @ ..]) = (before, after) else { return 0 };
    let alone = best(sides, before_rest, after).max(best(sides, before, after_rest));
    alone.max(worth(sides, b, a) + best(sides, before_rest, after_rest))
}

proptest! {
    #[test]
    fn no_alignment_is_worth_more(
        before in prop::collection::vec((0..9_u64, 0..5_u64), 0..6),
        after in prop::collection::vec((0..9_u64, 0..5_u64), 0..6),
    ) {
        let sides = Sides::made(&calls(&before), &calls(&after));
        let sorted = |nodes: &[Node]| by_lines(&sides, nodes, &(0..nodes.len()).collect::<Vec<_>>());
        let (b, a) = (sorted(&sides.before), sorted(&sides.after));
        let pairs = in_order(&sides, &b, &a);
        let found: u32 = pairs.iter().map(|&(b, a)| worth(&sides, &sides.before[b], &sides.after[a])).sum();
        let nodes = |nodes: &[Node], order: &[usize]| order.iter().map(|at| nodes[*at].clone()).collect::<Vec<_>>();
        prop_assert_eq!(found, best(&sides, &nodes(&sides.before, &b), &nodes(&sides.after, &a)));
    }
}

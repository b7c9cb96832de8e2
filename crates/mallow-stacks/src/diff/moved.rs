//! Functions whose callers were rewritten.
//!
//! `add_defaults` allocates what it did, but above it hardly a function is the same, so stacks are not alike. Where one function calls it
//! on each side, and no longer the same one, its stacks are compared up to it.

use super::likeness::{ALIKE, METRICS_NEAR, Weights, agreement};
use super::node::{NameId, Node};
use super::state::{Match, Rounds, SharedNames, Side};
use super::{Level, lines};

/// Functions that a path has at least up to the one that moved, those of standard libraries not counted: anybody calls `strdup`.
const FUNCTIONS_MIN: usize = 2;

/// Who calls a function on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Callers {
    #[default]
    None,
    /// One function.
    One(NameId),
    /// Several, or none where a stack begins.
    Others,
}

/// What is known of a name on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    callers: Callers,
    metrics: [u64; 2],
}

/// Pairs open nodes below functions that moved.
pub(super) fn pair(rounds: &mut Rounds<'_>, shared: &SharedNames, weights: &Weights) {
    if rounds.open_before.is_empty() || rounds.open_after.is_empty() {
        return;
    }
    let has_moved = has_moved(rounds, shared);
    let groups = rounds.groups(|rounds, node, side, key| {
        let begin = key.len();
        rounds.every_name(node, side, key);
        // Of several the innermost: those around it may be the callers that were rewritten.
        let moved = key[begin..].iter().position(|name| has_moved[*name as usize]).map_or(0, |at| at + 1);
        let is_enough = own_functions(rounds, &key[begin..begin + moved]) >= FUNCTIONS_MIN;
        key.truncate(if is_enough { begin + moved } else { begin });
    });
    for (before, after) in groups {
        for (before, after) in lines::pair(rounds.sides, &before, &after) {
            let names = [
                rounds.names(&rounds.sides.before[before[0]], Side::Before),
                rounds.names(&rounds.sides.after[after[0]], Side::After),
            ];
            let percent = weights.of_sequences(&names[0], &names[1]) * 100 / ALIKE;
            rounds.matches.push(Match { before, after, level: Level::Similar(percent.min(99) as u8) });
        }
    }
    rounds.close();
}

/// For each name whether its function is called by one function on each side, by another one after, and does something of its size.
fn has_moved(rounds: &Rounds<'_>, shared: &SharedNames) -> Vec<bool> {
    let [before, after] = [Side::Before, Side::After].map(|side| calls(rounds, side));
    let has_moved = |name: usize| {
        let (before, after) = (before[name], after[name]);
        matches!((before.callers, after.callers), (Callers::One(b), Callers::One(a)) if b != a)
            && agreement(before.metrics, after.metrics) >= METRICS_NEAR
            && shared.has(name as NameId)
    };
    (0..before.len()).map(has_moved).collect()
}

fn calls(rounds: &Rounds<'_>, side: Side) -> Vec<Calls> {
    let mut calls = vec![Calls::default(); rounds.sides.names.len()];
    for node in rounds.nodes(side) {
        let names = rounds.names(node, side);
        for (at, name) in names.iter().enumerate() {
            let call = &mut calls[*name as usize];
            let caller = names.get(at + 1).map_or(Callers::Others, |caller| Callers::One(*caller));
            call.callers = match call.callers {
                Callers::None => caller,
                known if known == caller => known,
                _ => Callers::Others,
            };
            add(&mut call.metrics, node);
        }
    }
    calls
}

/// A function that stands on a stack twice has the sum twice: on both sides, if it is the same one.
fn add(sum: &mut [u64; 2], node: &Node) {
    for (sum, more) in sum.iter_mut().zip(node.metrics) {
        *sum = sum.saturating_add(more);
    }
}

/// How many different functions are the program's own.
fn own_functions(rounds: &Rounds<'_>, names: &[NameId]) -> usize {
    let mut own: Vec<NameId> = names.iter().copied().filter(|name| rounds.is_own(*name)).collect();
    own.sort_unstable();
    own.dedup();
    own.len()
}

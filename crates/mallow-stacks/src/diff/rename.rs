//! Finds renamed functions.
//!
//! A function that only one side has is an unknown. Two stacks whose known functions are the same and stand
//! at the same places suggest that the unknowns at each place are one function under two names. Over all
//! stacks, the pairs with the strongest suggestions are taken, each name once.

use super::likeness::{METRICS_AGREE, METRICS_NEAR, agreement, of_names};
use super::node::NameId;
use super::state::{Rounds, SharedNames, Side};
use rustc_hash::{FxHashMap, FxHashSet};

/// The id of every unknown name.
const UNKNOWN: NameId = NameId::MAX;

/// Pairs of stacks of one pattern that are compared; of more, only those in the order of the stacks.
const PAIRS_MAX: usize = 1 << 12;

/// Names so much alike suffice as a reason: `load_rows` and `read_rows`.
const NAMES_ALIKE: u32 = 500;

/// The evidence for a pair of names.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// In how many patterns they are at the same place.
    patterns: u32,
    /// The sum over patterns of how well the metrics agree.
    agreement: u32,
    /// Whether both call a known function somewhere.
    calls_known: bool,
}

impl Evidence {
    /// If a known function is called from the same place, or the metrics are equal, no similarity of names is needed.
    /// Otherwise the names decide.
    fn suffices(&self, names_alike: u32) -> bool {
        let agrees = |least: u32| self.agreement >= least.saturating_mul(self.patterns);
        names_alike >= NAMES_ALIKE || agrees(METRICS_AGREE) || (self.calls_known && agrees(METRICS_NEAR))
    }
}

/// Renamed functions, as pairs of a name before and a name after.
pub(super) fn find(rounds: &Rounds<'_>) -> Vec<(NameId, NameId)> {
    let known = rounds.shared_names();
    let mut evidence: FxHashMap<(NameId, NameId), Evidence> = FxHashMap::default();
    for (before, after) in patterns(rounds, &known) {
        for (names, (agreement, calls_known)) in suggestions(rounds, &known, &before, &after) {
            let sum = evidence.entry(names).or_default();
            sum.patterns += 1;
            sum.agreement = sum.agreement.saturating_add(agreement);
            sum.calls_known |= calls_known;
        }
    }
    let text = |name: NameId| rounds.sides.names[name as usize].as_str();
    let mut pairs: Vec<(u32, NameId, NameId)> = Vec::new();
    for ((before, after), evidence) in evidence {
        let names_alike = of_names(text(before), text(after));
        if evidence.suffices(names_alike) {
            pairs.push((evidence.agreement.saturating_add(names_alike), before, after));
        }
    }
    pairs.sort_unstable_by_key(|&(worth, before, after)| (std::cmp::Reverse(worth), before, after));
    let (mut taken_before, mut taken_after) = (FxHashSet::default(), FxHashSet::default());
    let is_free = |&(_, before, after): &(u32, NameId, NameId)| {
        let is_free = !taken_before.contains(&before) && !taken_after.contains(&after);
        if is_free {
            taken_before.insert(before);
            taken_after.insert(after);
        }
        is_free
    };
    pairs.into_iter().filter(is_free).map(|(_, before, after)| (before, after)).collect()
}

/// Open nodes of both sides that are the same but for unknown names, and have some.
fn patterns(rounds: &Rounds<'_>, known: &SharedNames) -> Vec<(Vec<usize>, Vec<usize>)> {
    let pattern = |names: Vec<NameId>| -> Option<Vec<NameId>> {
        let pattern: Vec<NameId> =
            names.iter().map(|name| if known.has(*name) { *name } else { UNKNOWN }).collect();
        pattern.contains(&UNKNOWN).then_some(pattern)
    };
    let mut by_pattern: FxHashMap<Vec<NameId>, usize> = FxHashMap::default();
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for &index in &rounds.open_before {
        if let Some(pattern) = pattern(rounds.names(&rounds.sides.before[index], Side::Before)) {
            let at = *by_pattern.entry(pattern).or_insert(groups.len());
            if at == groups.len() {
                groups.push((Vec::new(), Vec::new()));
            }
            groups[at].0.push(index);
        }
    }
    for &index in &rounds.open_after {
        if let Some(pattern) = pattern(rounds.names(&rounds.sides.after[index], Side::After))
            && let Some(at) = by_pattern.get(&pattern)
        {
            groups[*at].1.push(index);
        }
    }
    groups
}

/// For each pair of unknown names of one pattern: the best agreement of metrics, and whether a known function
/// is called.
fn suggestions(
    rounds: &Rounds<'_>,
    known: &SharedNames,
    before: &[usize],
    after: &[usize],
) -> FxHashMap<(NameId, NameId), (u32, bool)> {
    let mut best: FxHashMap<(NameId, NameId), (u32, bool)> = FxHashMap::default();
    let mut look = |b: usize, a: usize| {
        let (b, a) = (&rounds.sides.before[b], &rounds.sides.after[a]);
        let agreement = agreement(b.metrics, a.metrics);
        let (names, others) = (rounds.names(b, Side::Before), rounds.names(a, Side::After));
        for (at, names_here) in names.iter().copied().zip(others).enumerate() {
            let is_fixed = rounds.sides.is_fixed(names_here.0) || rounds.sides.is_fixed(names_here.1);
            if !known.has(names_here.0) && !is_fixed && rounds.are_of_one_kind(names_here) {
                let calls_known = at > 0 && known.has(names[at - 1]);
                let (sum, calls) = best.entry(names_here).or_default();
                (*sum, *calls) = (agreement.max(*sum), calls_known || *calls);
            }
        }
    };
    if before.len().saturating_mul(after.len()) <= PAIRS_MAX {
        before.iter().for_each(|b| after.iter().for_each(|a| look(*b, *a)));
    } else {
        before.iter().zip(after).for_each(|(b, a)| look(*b, *a));
    }
    best
}

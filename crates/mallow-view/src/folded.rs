//! Folded stacks, as other tools' flame graphs want them: names from the outermost call inwards, each stack once, with one metric.

use crate::diff::compared_stacks;
use crate::drawn::{DrawnCall, drawn};
use crate::{Filter, FrameVisibility};
use mallow_stacks::{Metric, MetricOf, StackProfile};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// A stack and its metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedRow {
    /// The process's program, if it is known, then the calls, outermost first. Without semicolons and line ends; never empty.
    pub names: Vec<Rc<str>>,
    /// The metric, above 0.
    pub value: u64,
}

/// A stack and its metrics in two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedRow {
    /// As in [`FoldedRow`].
    pub names: Vec<Rc<str>>,
    /// The metric before; 0 for a stack that is new.
    pub before: u64,
    /// The metric after; 0 for a stack that is gone.
    pub after: u64,
}

impl fmt::Display for FoldedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.names.join(";"), self.value)
    }
}

impl fmt::Display for ComparedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.names.join(";"), self.before, self.after)
    }
}

/// The stacks of a profile that have any of a metric, in the order of their names. Processes that ran the same program are
/// one.
pub fn folded<M: Metric>(
    profile: &impl StackProfile<Weights = M::Weights>,
    shown: FrameVisibility,
    filter: &Filter,
    by: M,
) -> Vec<FoldedRow> {
    let mut rows = BTreeMap::<Vec<Rc<str>>, u64>::new();
    drawn(profile, shown, filter, by, |calls, value| {
        let sum = rows.entry(names(calls)).or_default();
        *sum = sum.saturating_add(value);
    });
    rows.into_iter().map(|(names, value)| FoldedRow { names, value }).collect()
}

/// Returns the stacks of two profiles beside each other, sorted by name and matched as in a diff: a renamed stack has
/// its later name.
pub fn compared<P: StackProfile>(
    sides: [&P; 2],
    shown: FrameVisibility,
    filter: &Filter,
    by: MetricOf<P>,
) -> Vec<ComparedRow> {
    let mut rows = BTreeMap::<Vec<Rc<str>>, (u64, u64)>::new();
    compared_stacks(sides, shown, filter, by, |calls, weight| {
        let sum = rows.entry(names(calls)).or_default();
        *sum = (sum.0.saturating_add(weight.before), sum.1.saturating_add(weight.after));
    });
    rows.into_iter().map(|(names, (before, after))| ComparedRow { names, before, after }).collect()
}

/// The names of a stack, recursion call by call.
fn names(calls: &[DrawnCall<'_>]) -> Vec<Rc<str>> {
    calls.iter().flat_map(|call| std::iter::repeat_n(&call.name, call.times)).cloned().collect()
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;

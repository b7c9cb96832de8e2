//! Limits on a heap, and whether they hold.

use crate::Weight;
use mallow_heapsnap::{DominatorTree, Graph, ObjectId, Snapshot, Sum, Totals};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Objects of a class.
    Objects,
    /// Their own bytes.
    Bytes,
    /// The bytes that they retain.
    Retained,
}

/// The most that there may be of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapLimit {
    /// The class; none for the whole heap.
    pub class: Option<String>,
    /// What of it.
    pub kind: LimitKind,
    /// How much.
    pub max: u64,
}

/// What came of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapOutcome {
    /// The limit.
    pub limit: HeapLimit,
    /// What there is; none if that cannot be told.
    pub found: Option<u64>,
    /// Why it cannot be told, a sentence without its end.
    pub reason: Option<String>,
}

impl HeapOutcome {
    /// What it means to a script.
    pub fn weight(&self) -> Weight {
        match self.found {
            None => Weight::Inconclusive,
            Some(found) if found > self.limit.max => Weight::Failed,
            Some(_) => Weight::Fine,
        }
    }
}

/// Holds a heap against limits. A class that the snapshot does not know has not 0 objects: its name may be misspelt.
pub fn judge(
    snapshot: &Snapshot,
    tree: &DominatorTree,
    totals: &Totals,
    limits: &[HeapLimit],
) -> Vec<HeapOutcome> {
    let graph = &snapshot.graph;
    let outcome = |limit: &HeapLimit| {
        let (found, reason) = match measured(snapshot, tree, totals, limit) {
            Ok(found) => (Some(found), None),
            Err(reason) => (None, Some(reason)),
        };
        HeapOutcome { limit: limit.clone(), found, reason }
    };
    debug_assert_eq!(totals.all.objects as usize, graph.len());
    limits.iter().map(outcome).collect()
}

fn measured(
    snapshot: &Snapshot,
    tree: &DominatorTree,
    totals: &Totals,
    limit: &HeapLimit,
) -> Result<u64, String> {
    let graph = &snapshot.graph;
    if limit.kind == LimitKind::Retained && snapshot.is_partial {
        return Err("the dump names no roots, so nobody can tell what retains what".to_owned());
    }
    if !snapshot.warnings.is_empty() {
        return Err("the dump is damaged".to_owned());
    }
    let sum = match &limit.class {
        None => totals.all,
        Some(name) => class_sum(graph, tree, totals, name)?,
    };
    Ok(match limit.kind {
        LimitKind::Objects => sum.objects,
        LimitKind::Bytes => sum.bytes,
        LimitKind::Retained => sum.retained_bytes,
    })
}

/// The sum of all classes of a name.
fn class_sum(graph: &Graph, tree: &DominatorTree, totals: &Totals, name: &str) -> Result<Sum, String> {
    let mut sum = Sum::default();
    let is_of: Vec<bool> = graph.classes().iter().map(|class| graph.name(class.name) == name).collect();
    let is_known = is_of.contains(&true) || graph.objects().any(|object| graph.name_of(object) == Some(name));
    if !is_known {
        return Err(format!("the dump knows no class {name}; is its name spelt right?"));
    }
    for group in totals.classes.iter().filter(|group| is_of[group.key.0 as usize]) {
        sum.objects += group.sum.objects;
        sum.bytes += group.sum.bytes;
    }
    let group_of = |object: ObjectId| is_of[graph.class_of(object).0 as usize].then_some(0);
    tree.topmost(1, group_of, |_, _, bytes| sum.retained_bytes = sum.retained_bytes.saturating_add(bytes));
    Ok(sum)
}

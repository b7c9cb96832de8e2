//! Limits on a heap, and whether they hold.

use crate::Weight;
use mallow_heapsnap::{DominatorTree, Graph, ObjectId, Snapshot, Sum, sum_of};

/// The limited metric.
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
    /// Its metric.
    pub kind: LimitKind,
    /// The maximum.
    pub max: u64,
}

/// The result of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapOutcome {
    /// The limit.
    pub limit: HeapLimit,
    /// The actual value; `None` if it is unknown.
    pub found: Option<u64>,
    /// Why it is unknown, a sentence without its end.
    pub reason: Option<String>,
}

impl HeapOutcome {
    /// Returns its exit status.
    pub fn weight(&self) -> Weight {
        match self.found {
            None => Weight::Inconclusive,
            Some(found) if found > self.limit.max => Weight::Failed,
            Some(_) => Weight::Fine,
        }
    }
}

/// Compares a heap with limits. A class that the snapshot does not contain is not counted as 0 objects: its name may
/// be misspelt.
pub fn judge(snapshot: &Snapshot, tree: &DominatorTree, limits: &[HeapLimit]) -> Vec<HeapOutcome> {
    let outcome = |limit: &HeapLimit| {
        let (found, reason) = match measured(snapshot, tree, limit) {
            Ok(found) => (Some(found), None),
            Err(reason) => (None, Some(reason)),
        };
        HeapOutcome { limit: limit.clone(), found, reason }
    };
    limits.iter().map(outcome).collect()
}

fn measured(snapshot: &Snapshot, tree: &DominatorTree, limit: &HeapLimit) -> Result<u64, String> {
    let graph = &snapshot.graph;
    if snapshot.is_partial {
        return Err("the dump holds only a part of the heap, or has no roots".to_owned());
    }
    if !snapshot.is_whole() {
        return Err("the dump is damaged".to_owned());
    }
    let sum = match &limit.class {
        None => sum_of(graph, tree, |_| true),
        Some(name) => sum_of_class(graph, tree, name)
            .ok_or_else(|| format!("the dump knows no class {name}; is its name spelt right?"))?,
    };
    Ok(match limit.kind {
        LimitKind::Objects => sum.objects,
        LimitKind::Bytes => sum.bytes,
        LimitKind::Retained => sum.retained_bytes,
    })
}

/// The sum of all classes of a name; none if nothing is called so.
fn sum_of_class(graph: &Graph, tree: &DominatorTree, name: &str) -> Option<Sum> {
    let is_one = of_class(graph, name);
    let sum = sum_of(graph, tree, &is_one);
    // A class without objects may be an object itself.
    let is_known = || graph.objects().any(|object| graph.name_of(object) == Some(name));
    (sum.objects > 0 || is_known()).then_some(sum)
}

/// Returns whether an object is of a class of this name.
pub(super) fn of_class<'a>(graph: &'a Graph, name: &str) -> impl Fn(ObjectId) -> bool + use<'a> {
    let is_of: Vec<bool> = graph.classes().iter().map(|class| graph.name(class.name) == name).collect();
    move |object| is_of[graph.class_of(object).0 as usize]
}

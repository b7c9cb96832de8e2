//! What the rounds of matching share: what is matched, what is open, and nodes' names as both sides know them.

use super::node::{NameId, Node, Sides};
use super::{Level, SiteIndices};
use rustc_hash::{FxHashMap, FxHashSet};

/// Nodes of both sides that are the same.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) before: SiteIndices,
    pub(super) after: SiteIndices,
    pub(super) level: Level,
}

/// The state between rounds.
pub(super) struct Rounds<'a> {
    pub(super) sides: &'a Sides,
    /// Nodes that are not matched yet, in their order.
    pub(super) open_before: Vec<usize>,
    pub(super) open_after: Vec<usize>,
    /// Names before that are other names after.
    pub(super) renamed: FxHashMap<NameId, NameId>,
    pub(super) matches: Vec<Match>,
}

/// The names on both sides.
pub(super) struct SharedNames(Vec<bool>);

impl SharedNames {
    /// Returns whether a name does.
    pub(super) fn has(&self, name: NameId) -> bool {
        self.0[name as usize]
    }
}

/// Sequences of names, one behind the other.
pub(super) struct Sequences {
    names: Vec<NameId>,
    ends: Vec<usize>,
}

impl Sequences {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[NameId]> + Clone {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.names[begin..*end])
    }
}

/// The side of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl Rounds<'_> {
    /// A name as the side after has it.
    pub(super) fn name_after(&self, name: NameId, side: Side) -> NameId {
        match side {
            Side::Before => self.renamed.get(&name).copied().unwrap_or(name),
            Side::After => name,
        }
    }

    /// The names of a node as the side after has them.
    pub(super) fn every_name(&self, node: &Node, side: Side) -> Vec<NameId> {
        self.sides.frames(node).map(|frame| self.name_after(frame.name, side)).collect()
    }

    /// Returns the names on each side.
    pub(super) fn names_of_sides(&self) -> [FxHashSet<NameId>; 2] {
        let names = |nodes: &[Node]| {
            nodes.iter().flat_map(|node| self.sides.frames(node)).map(|frame| frame.name).collect()
        };
        [names(&self.sides.before), names(&self.sides.after)]
    }

    /// All names of a node, recursion once.
    pub(super) fn names(&self, node: &Node, side: Side) -> Vec<NameId> {
        let mut names: Vec<NameId> =
            self.sides.frames(node).map(|frame| self.name_after(frame.name, side)).collect();
        names.dedup();
        names
    }

    /// The names without inlined calls.
    pub(super) fn physical(&self, node: &Node, side: Side) -> Vec<NameId> {
        let physical = self.sides.frames(node).filter(|frame| !frame.is_inlined);
        physical.map(|frame| self.name_after(frame.name, side)).collect()
    }

    /// The names that both sides have, recursion once.
    pub(super) fn shared(&self, node: &Node, side: Side, shared: &SharedNames) -> Vec<NameId> {
        let mut names = self.names(node, side);
        names.retain(|name| shared.has(*name));
        names.dedup();
        names
    }

    /// The names of all nodes.
    pub(super) fn all_names(&self) -> Sequences {
        let mut all = Sequences { names: Vec::new(), ends: Vec::new() };
        let before = self.sides.before.iter().map(|node| (node, Side::Before));
        for (node, side) in before.chain(self.sides.after.iter().map(|node| (node, Side::After))) {
            all.names.extend(self.names(node, side));
            all.ends.push(all.names.len());
        }
        all
    }

    /// Returns the names on both sides, renamed ones under their later name.
    pub(super) fn shared_names(&self) -> SharedNames {
        let names = |nodes: &[Node], side| {
            let mut has = vec![false; self.sides.names.len()];
            for frame in nodes.iter().flat_map(|node| self.sides.frames(node)) {
                has[self.name_after(frame.name, side) as usize] = true;
            }
            has
        };
        let before = names(&self.sides.before, Side::Before);
        let after = names(&self.sides.after, Side::After);
        SharedNames(before.into_iter().zip(after).map(|(before, after)| before && after).collect())
    }

    /// Takes what is matched out of what is open.
    pub(super) fn close(&mut self) {
        let before: FxHashSet<usize> = self.matches.iter().flat_map(|found| &found.before).copied().collect();
        let after: FxHashSet<usize> = self.matches.iter().flat_map(|found| &found.after).copied().collect();
        self.open_before.retain(|index| !before.contains(index));
        self.open_after.retain(|index| !after.contains(index));
    }
}

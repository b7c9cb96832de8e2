//! What the rounds of matching share: what is matched, what is open, and nodes' names as both sides know them.

use super::node::{NameId, Node, Sides};
use super::{Level, SiteIndices};
use rustc_hash::FxHashMap;

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

/// Returns whether a function is of the standard library of Rust or C++.
fn is_of_standard_library(name: &str) -> bool {
    const LIBRARIES: [&str; 4] = ["core::", "std::", "alloc::", "__gnu_cxx::"];
    let name = name.trim_start_matches('<');
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// The names of nodes, one node behind the other.
pub(super) struct AllNames {
    names: Vec<NameId>,
    ends: Vec<usize>,
}

impl AllNames {
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

impl<'a> Rounds<'a> {
    /// The nodes of a side, open or not.
    pub(super) fn nodes(&self, side: Side) -> &'a [Node] {
        match side {
            Side::Before => &self.sides.before,
            Side::After => &self.sides.after,
        }
    }

    /// A name as the side after has it.
    pub(super) fn name_after(&self, name: NameId, side: Side) -> NameId {
        match side {
            Side::Before => self.renamed.get(&name).copied().unwrap_or(name),
            Side::After => name,
        }
    }

    /// Returns whether two functions are of a standard library, or neither is.
    pub(super) fn are_of_one_kind(&self, (one, other): (NameId, NameId)) -> bool {
        let [one, other] = [one, other].map(|name| is_of_standard_library(&self.sides.names[name as usize]));
        one == other
    }

    /// Returns whether a function is of no standard library, and of no file that is the very same on both sides.
    pub(super) fn is_own(&self, name: NameId) -> bool {
        !is_of_standard_library(&self.sides.names[name as usize]) && !self.sides.is_fixed(name)
    }

    /// Appends the names of a node as the side after has them.
    pub(super) fn every_name(&self, node: &Node, side: Side, names: &mut Vec<NameId>) {
        names.extend(self.sides.frames(node).map(|frame| self.name_after(frame.name, side)));
    }

    /// Returns the names on each side, in their order.
    pub(super) fn names_of_sides(&self) -> [Vec<NameId>; 2] {
        [&self.sides.before, &self.sides.after].map(|nodes| {
            let has = self.has_names(nodes, |name| name);
            (0..).zip(has).filter_map(|(name, has)| has.then_some(name)).collect()
        })
    }

    /// For each name whether some node has it; with another name for some.
    fn has_names(&self, nodes: &[Node], named: impl Fn(NameId) -> NameId) -> Vec<bool> {
        let mut has = vec![false; self.sides.names.len()];
        for frame in nodes.iter().flat_map(|node| self.sides.frames(node)) {
            has[named(frame.name) as usize] = true;
        }
        has
    }

    /// All names of a node, recursion once.
    pub(super) fn names(&self, node: &Node, side: Side) -> Vec<NameId> {
        let mut names: Vec<NameId> =
            self.sides.frames(node).map(|frame| self.name_after(frame.name, side)).collect();
        names.dedup();
        names
    }

    /// Appends the names without inlined calls.
    pub(super) fn physical(&self, node: &Node, side: Side, names: &mut Vec<NameId>) {
        let physical = self.sides.frames(node).filter(|frame| !frame.is_inlined);
        names.extend(physical.map(|frame| self.name_after(frame.name, side)));
    }

    /// Appends the names that both sides have, recursion once.
    pub(super) fn shared(&self, node: &Node, side: Side, shared: &SharedNames, names: &mut Vec<NameId>) {
        let begin = names.len();
        for frame in self.sides.frames(node) {
            let name = self.name_after(frame.name, side);
            if shared.has(name) && names[begin..].last() != Some(&name) {
                names.push(name);
            }
        }
    }

    /// Appends the innermost name, and those of the others on both sides that are no adapters of a standard library: a caller that calls by
    /// `Result::and_then` is the same caller. Nothing if no caller is left.
    pub(super) fn shared_own(&self, node: &Node, side: Side, shared: &SharedNames, names: &mut Vec<NameId>) {
        let begin = names.len();
        self.shared(node, side, shared, names);
        let mut at = 0;
        names.retain(|name| {
            at += 1;
            at <= begin + 1 || !is_of_standard_library(&self.sides.names[*name as usize])
        });
        if names.len() < begin + 2 {
            names.truncate(begin);
        }
    }

    /// The names of all nodes.
    pub(super) fn all_names(&self) -> AllNames {
        let before = self.sides.before.iter().map(|node| (node, Side::Before));
        let nodes = before.chain(self.sides.after.iter().map(|node| (node, Side::After)));
        // There may be ten million names, and room for them that grows would be twice as much.
        let names = nodes.clone().map(|(node, _)| self.sides.frames(node).len()).sum();
        let mut all =
            AllNames { names: Vec::with_capacity(names), ends: Vec::with_capacity(nodes.clone().count()) };
        for (node, side) in nodes {
            all.names.extend(self.names(node, side));
            all.ends.push(all.names.len());
        }
        all
    }

    /// Returns the names on both sides, renamed ones under their later name.
    pub(super) fn shared_names(&self) -> SharedNames {
        let before = self.has_names(&self.sides.before, |name| self.name_after(name, Side::Before));
        let after = self.has_names(&self.sides.after, |name| name);
        SharedNames(before.into_iter().zip(after).map(|(before, after)| before && after).collect())
    }

    /// Takes what is matched out of what is open.
    pub(super) fn close(&mut self) {
        let is_open = |nodes: &[Node], part: fn(&Match) -> &SiteIndices| {
            let mut is_open = vec![true; nodes.len()];
            for index in self.matches.iter().flat_map(part) {
                is_open[*index] = false;
            }
            is_open
        };
        let before = is_open(&self.sides.before, |found| &found.before);
        let after = is_open(&self.sides.after, |found| &found.after);
        self.open_before.retain(|index| before[*index]);
        self.open_after.retain(|index| after[*index]);
    }
}

//! Decides which references retain, and which object owns which bytes: by the rules of Chrome's DevTools, so that the metrics are the same.
//!
//! The rules were derived from its worker (`HeapSnapshot.ts` of devtools-frontend), with which the tests compare:
//! - A weak reference retains nothing, nor does an object itself.
//! - A shortcut retains only from the root: it exists in addition to the references through which the same object is
//!   reached.
//! - What the page or program can reach (from the root through shortcuts) is not retained by what it cannot reach,
//!   which are the tables of the virtual machine.
//! - The value of a WeakMap's pair is retained by its key and not by the table.
//! - The bytes of tables, hidden objects and external strings' data belong to the one object that owns them, if there
//!   is exactly one.
//! - What nothing retains becomes a child of the root. (A cycle that is reached from nowhere is left alone; DevTools
//!   makes its objects children of the root, too.)

use super::document::{Document, Nodes};
use super::edges::Edges;
use super::meta::{EdgeType, Meta};
use super::strings::{Bits, Strings};
use mallow_heapsnap::{GraphParts, ObjectId};

/// A document whose edges are assigned to its nodes.
pub(super) struct Assigned<'a> {
    meta: &'a Meta,
    root: u32,
    nodes: &'a mut Nodes,
    edges: &'a mut Edges,
    strings: &'a Strings,
    starts: &'a [u32],
}

impl<'a> Assigned<'a> {
    pub(super) fn new(document: &'a mut Document, starts: &'a [u32]) -> Assigned<'a> {
        let Document { meta, root, nodes, edges, strings, .. } = document;
        Assigned { meta, root: *root, nodes, edges, strings, starts }
    }

    fn len(&self) -> u32 {
        self.nodes.ids.len() as u32
    }

    fn edges_of(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    fn is_of_type(&self, node: u32, node_type: Option<u8>) -> bool {
        Some(self.nodes.types[node as usize]) == node_type
    }

    /// Marks references that do not retain as weak: `targets` are packed from here on. Returns the nodes that nothing retains.
    pub(super) fn mark_weak(&mut self) -> Vec<u32> {
        if self.len() == 0 {
            return Vec::new();
        }
        let owned = self.page_owned();
        let mut retained = Bits::new(self.len() as usize);
        for node in 0..self.len() {
            let is_owned = owned.has(node);
            for edge in self.edges_of(node) {
                let target = self.edges.targets[edge];
                let holds = match self.edges.types[edge] {
                    EdgeType::Weak => false,
                    _ if target == node => false,
                    EdgeType::Internal if self.is_from_table(node, edge) => false,
                    _ if node == self.root => true,
                    EdgeType::Shortcut => false,
                    _ => is_owned || !owned.has(target),
                };
                if holds {
                    retained.set(target);
                } else {
                    self.edges.targets[edge] = GraphParts::packed_target(ObjectId(target), false);
                }
            }
        }
        retained.set(self.root);
        (0..self.len()).filter(|node| !retained.has(*node)).collect()
    }

    /// Returns whether a reference leads from a WeakMap's table to a value.
    fn is_from_table(&self, node: u32, edge: usize) -> bool {
        let pairs = &self.strings.weak_pairs;
        !pairs.is_empty() && pairs.get(&self.edges.labels[edge]) == Some(&self.nodes.ids[node as usize])
    }

    /// Returns what can be reached from the root through its shortcuts and through documents.
    fn page_owned(&self) -> Bits {
        let mut owned = Bits::new(self.len() as usize);
        let mut stack = Vec::new();
        for edge in self.edges_of(self.root) {
            let target = self.edges.targets[edge];
            let is_start = match self.edges.types[edge] {
                EdgeType::Shortcut => true,
                EdgeType::Element => self.is_document_trees(target),
                _ => false,
            };
            if is_start && owned.set(target) {
                stack.push(target);
            }
        }
        while let Some(node) = stack.pop() {
            for edge in self.edges_of(node) {
                let target = self.edges.targets[edge];
                if self.edges.types[edge] != EdgeType::Weak && owned.set(target) {
                    stack.push(target);
                }
            }
        }
        owned
    }

    fn is_document_trees(&self, node: u32) -> bool {
        let name = self.nodes.names[node as usize];
        self.is_synthetic(node) && self.strings.document_trees == Some(name)
    }

    fn is_synthetic(&self, node: u32) -> bool {
        self.is_of_type(node, self.meta.node_type_named("synthetic"))
    }

    /// Returns whether the root holds anything of a page or a program.
    fn has_user_roots(&self) -> bool {
        let synthetic = self.meta.node_type_named("synthetic");
        self.edges_of(self.root).any(|edge| {
            let target = self.edges.targets[edge];
            !self.is_of_type(target, synthetic) || self.is_document_trees(target)
        })
    }

    /// Moves the bytes of parts to their owners. Must be called before references are marked as weak.
    pub(super) fn move_sizes(&mut self) {
        if self.len() == 0 || !self.has_user_roots() {
            return;
        }
        let owners = self.owners();
        let synthetic = self.meta.node_type_named("synthetic");
        for (node, owner) in (0..).zip(owners) {
            if owner < NOBODY && owner != node && owner != self.root && !self.is_of_type(owner, synthetic) {
                let bytes = std::mem::take(&mut self.nodes.sizes[node as usize]);
                let whole = &mut self.nodes.sizes[owner as usize];
                *whole = whole.saturating_add(bytes);
            }
        }
    }

    /// Returns the owner of each object: itself, unless it is a part of something.
    fn owners(&self) -> Vec<u32> {
        let types = |name| self.meta.node_type_named(name);
        let (hidden, array, native) = (types("hidden"), types("array"), types("native"));
        let is_part = |node: u32| {
            let is_external = || Some(self.nodes.names[node as usize]) == self.strings.external_data;
            let is = |node_type| self.is_of_type(node, node_type);
            is(hidden) || is(array) || is(native) && is_external()
        };
        let mut owners: Vec<u32> =
            (0..self.len()).map(|node| if is_part(node) { NOBODY } else { node }).collect();
        let mut stack = Vec::new();
        for whole in 0..self.len() {
            if owners[whole as usize] != whole {
                continue;
            }
            stack.push(whole);
            // Ownership is propagated until each part has at least two owners, which is final: a part is visited at most twice.
            while let Some(node) = stack.pop() {
                let owner = owners[node as usize];
                for edge in self.edges_of(node) {
                    if self.edges.types[edge] == EdgeType::Weak {
                        continue;
                    }
                    let target = self.edges.targets[edge];
                    let known = &mut owners[target as usize];
                    if *known == target || *known == owner || *known == SEVERAL {
                        continue;
                    }
                    *known = if *known == NOBODY { owner } else { SEVERAL };
                    stack.push(target);
                }
            }
        }
        owners
    }
}

/// A part without an owner so far.
const NOBODY: u32 = u32::MAX - 1;
/// A part that several objects own.
const SEVERAL: u32 = u32::MAX;

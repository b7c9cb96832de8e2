//! The stacks of a process as one table: eight bytes for each node, and each address once.
//!
//! A large program has half a million nodes and a few thousand addresses on them. What is asked of addresses (their names, the
//! modules that hold them) is asked once each then, and the nodes stay small enough to be gone through when the program has ended.

use mallow_trace::{StackNode, SymbolKey};
use mallow_wire::shared::{NODE_EXACT, node_address, node_generation};
use rustc_hash::FxHashMap;

/// Nodes by number, parents before their children.
#[derive(Debug, Default)]
pub(crate) struct StackTable {
    nodes: Vec<Node>,
    /// Addresses in the order of first sight, each as the key of the recorder's node: with its generation, and whether it is exact.
    keys: Vec<u64>,
    numbers: FxHashMap<u64, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// [`NO_PARENT`] for an outermost frame.
    parent: u32,
    address: u32,
}

const NO_PARENT: u32 = u32::MAX;

impl StackTable {
    /// Adds a node; returns its number.
    pub(crate) fn push(&mut self, parent: Option<u32>, key: u64) -> u32 {
        let address = self.intern(key);
        self.push_at(parent, address)
    }

    /// Returns the number of an address.
    pub(crate) fn intern(&mut self, key: u64) -> u32 {
        let next = self.keys.len() as u32;
        let address = *self.numbers.entry(key).or_insert(next);
        if address == next {
            self.keys.push(key);
        }
        address
    }

    /// Adds a node at an address of that number; returns its number.
    pub(crate) fn push_at(&mut self, parent: Option<u32>, address: u32) -> u32 {
        self.nodes.push(Node { parent: parent.unwrap_or(NO_PARENT), address });
        self.nodes.len() as u32 - 1
    }

    /// Returns its own memory in bytes, and as much for the nodes that are made of it at the end.
    pub(crate) fn held_bytes(&self) -> u64 {
        const KEY_BYTES: usize = size_of::<u64>() + 2 * size_of::<(u64, u32)>();
        (self.nodes.len() * 2 * size_of::<Node>() + self.keys.len() * KEY_BYTES) as u64
    }

    /// Returns how many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A node's caller.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        self.nodes.get(node as usize).map(|node| node.parent).filter(|parent| *parent != NO_PARENT)
    }

    /// The number of a node's address.
    pub(crate) fn address(&self, node: u32) -> Option<u32> {
        self.nodes.get(node as usize).map(|node| node.address)
    }

    /// A node as the trace holds it.
    pub(crate) fn node(&self, node: u32) -> Option<StackNode> {
        self.nodes.get(node as usize).map(|node| self.in_trace(node))
    }

    /// The nodes from a number on.
    pub(crate) fn nodes_from(&self, first: usize) -> impl ExactSizeIterator<Item = StackNode> {
        self.nodes[first.min(self.nodes.len())..].iter().map(|node| self.in_trace(node))
    }

    fn in_trace(&self, node: &Node) -> StackNode {
        let key = self.keys[node.address as usize];
        StackNode {
            parent: (node.parent != NO_PARENT).then_some(node.parent),
            avma: node_address(key),
            exact: key & NODE_EXACT != 0,
            generation: node_generation(key),
        }
    }

    /// For each node in order its caller, and the number of its address.
    pub(crate) fn links(&self) -> impl Iterator<Item = (Option<u32>, u32)> {
        self.nodes.iter().map(|node| ((node.parent != NO_PARENT).then_some(node.parent), node.address))
    }

    /// The addresses in their order, each as the key of a recorder's node.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The addresses from a number on, in their order.
    pub(crate) fn addresses_from(&self, first: usize) -> impl Iterator<Item = SymbolKey> {
        self.keys[first.min(self.keys.len())..].iter().map(|key| SymbolKey {
            avma: node_address(*key),
            exact: key & NODE_EXACT != 0,
            generation: node_generation(*key),
            location: 0,
        })
    }

    /// Returns how many addresses there are.
    pub(crate) fn address_count(&self) -> usize {
        self.keys.len()
    }

    /// Returns a read-only copy of the table.
    pub(crate) fn snapshot(&self) -> StackTable {
        StackTable { nodes: self.nodes.clone(), keys: self.keys.clone(), numbers: FxHashMap::default() }
    }

    /// The same, without what was needed to add to it.
    pub(crate) fn into_snapshot(mut self) -> StackTable {
        self.nodes.shrink_to_fit();
        self.keys.shrink_to_fit();
        StackTable { nodes: self.nodes, keys: self.keys, numbers: FxHashMap::default() }
    }
}

#[cfg(test)]
impl StackTable {
    /// One with these nodes.
    pub(crate) fn for_test(nodes: &[StackNode]) -> StackTable {
        let mut table = StackTable::default();
        for node in nodes {
            let key = mallow_wire::shared::node_key(node.avma, node.exact, node.generation);
            table.push(node.parent, key);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nodes_round_trip_and_addresses_are_distinct(
            given in vec((0..20u64, any::<bool>(), 0..3u64, any::<u32>()), 0..200),
        ) {
            let nodes: Vec<StackNode> = given
                .iter()
                .enumerate()
                .map(|(at, (avma, exact, generation, parent))| {
                    let parent = parent % (at as u32 + 1);
                    let parent = (parent != at as u32).then_some(parent);
                    StackNode { parent, avma: *avma, exact: *exact, generation: *generation }
                })
                .collect();
            let table = StackTable::for_test(&nodes);
            prop_assert_eq!(table.nodes_from(0).collect::<Vec<_>>(), nodes.clone());
            prop_assert_eq!(table.snapshot().nodes_from(3).count(), nodes.len().saturating_sub(3));
            let addresses: Vec<SymbolKey> = table.addresses_from(0).collect();
            let mut distinct = addresses.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), addresses.len());
            for ((parent, address), node) in table.links().zip(&nodes) {
                let key = addresses[address as usize];
                prop_assert_eq!((parent, key.avma, key.exact, key.generation), (node.parent, node.avma, node.exact, node.generation));
            }
        }
    }
}

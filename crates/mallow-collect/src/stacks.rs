//! The recorder's stack nodes as dense ids, in the order in which they are first used.
//!
//! The recorder's ids are places in a sparse hash table. Everything behind the collector indexes arrays by stack, so nodes are numbered
//! anew, parents before children, and read from shared memory once.

use crate::mapping::Mapping;
use mallow_profile::{Fold, StackId};
use mallow_wire::shared::{NODE_COUNT, NODE_EXACT, NODE_ROOT, node_address, node_generation};
use mallow_wire::trace::{StackNode, Stacks};
use std::sync::atomic::Ordering;

/// The stacks of one process.
#[derive(Debug, Default)]
pub(crate) struct StackNumbers {
    /// By the recorder's id: our id plus 1, or 0.
    numbers: Vec<u32>,
    nodes: Vec<StackNode>,
    /// Nodes below this index are in the trace.
    written: usize,
}

impl StackNumbers {
    /// Our id for a recorder's node.
    #[inline(always)]
    pub(crate) fn number(&mut self, node: u32, mapping: &Mapping) -> StackId {
        match self.numbers.get(node as usize) {
            Some(&number) if number != 0 => StackId(number - 1),
            _ => self.assign(node, mapping),
        }
    }

    #[cold]
    fn assign(&mut self, node: u32, mapping: &Mapping) -> StackId {
        // From the node outwards to the first that is known, then back.
        let mut chain = Vec::new();
        let mut at = node;
        let mut parent = None;
        while at != NODE_ROOT {
            if let Some(&number) = self.numbers.get(at as usize)
                && number != 0
            {
                parent = Some(number - 1);
                break;
            }
            let Some(entry) = mapping.node(at) else { break };
            let key = entry.key.load(Ordering::Acquire);
            // A damaged table could hold a circle.
            if key == 0 || chain.len() > NODE_COUNT {
                break;
            }
            chain.push((at, key));
            at = (entry.parent.load(Ordering::Relaxed) as u32).wrapping_sub(1);
        }
        for (id, key) in chain.into_iter().rev() {
            if self.numbers.len() <= id as usize {
                self.numbers.resize((id as usize + 1).next_power_of_two(), 0);
            }
            let number = self.nodes.len() as u32;
            self.numbers[id as usize] = number + 1;
            self.nodes.push(StackNode {
                parent,
                avma: node_address(key),
                exact: key & NODE_EXACT != 0,
                generation: node_generation(key),
            });
            parent = Some(number);
        }
        parent.map_or(Fold::NO_STACK, StackId)
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// The nodes that are not in the trace yet.
    pub(crate) fn take_new(&mut self) -> Option<Stacks> {
        if self.written == self.nodes.len() {
            return None;
        }
        let stacks = Stacks { first: self.written as u32, nodes: self.nodes[self.written..].to_vec() };
        self.written = self.nodes.len();
        Some(stacks)
    }
}

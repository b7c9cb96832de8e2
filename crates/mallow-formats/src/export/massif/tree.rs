//! The heap tree of a massif file: bytes by stack, callers below their callees.

use mallow_dhat::valgrind_frames::FrameTexts;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// The text for bytes without a stack, which our importer recognises.
const NO_STACK: &str = "[no stack]";
const ROOT: &str = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.";

/// Node 0 is the root.
#[derive(PartialEq, Eq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Default, PartialEq, Eq)]
struct Node {
    bytes: u64,
    /// By frame.
    children: FxHashMap<Option<u32>, usize>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { nodes: vec![Node::default()] }
    }
}

impl Tree {
    /// Adds bytes to a stack.
    pub(super) fn add(&mut self, innermost_first: &[u32], bytes: u64) {
        let mut at = 0;
        self.put(at, bytes);
        if innermost_first.is_empty() {
            at = self.child(at, None);
            return self.put(at, bytes);
        }
        for frame in innermost_first {
            at = self.child(at, Some(*frame));
            self.put(at, bytes);
        }
    }

    fn put(&mut self, node: usize, bytes: u64) {
        self.nodes[node].bytes = self.nodes[node].bytes.saturating_add(bytes);
    }

    fn child(&mut self, parent: usize, frame: Option<u32>) -> usize {
        let next = self.nodes.len();
        let child = *self.nodes[parent].children.entry(frame).or_insert(next);
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }

    /// Returns all bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.nodes[0].bytes
    }

    /// Writes a line for each node; of siblings the largest first.
    pub(super) fn write(&self, texts: &FrameTexts<'_>, out: &mut dyn Write) -> io::Result<()> {
        // Nodes that are still to be written, the next one last: (node, its text, its depth).
        let mut waiting = vec![(0, ROOT, 0)];
        while let Some((number, text, depth)) = waiting.pop() {
            let node = &self.nodes[number];
            writeln!(out, "{:depth$}n{}: {} {text}", "", node.children.len(), node.bytes)?;
            let first_child = waiting.len();
            waiting.extend(node.children.iter().map(|(frame, child)| {
                let text = frame.map_or(NO_STACK, |frame| texts.text(frame));
                (*child, text, depth + 1)
            }));
            waiting[first_child..].sort_by(|(a, a_text, _), (b, b_text, _)| {
                self.nodes[*a].bytes.cmp(&self.nodes[*b].bytes).then(b_text.cmp(a_text))
            });
        }
        Ok(())
    }
}

//! Retained sizes as stacks of classes, for a flame graph: below a box stands what it keeps alive.

use mallow_heapsnap::{DominatorTree, Graph};
use rustc_hash::FxHashMap;

/// Deeper boxes are merged into the one above them: a stack of ten million nodes is unreadable.
const DEPTH_MAX: u32 = 60;

/// A box: objects of a class below the same classes. Objects right below one of their own class are in its box.
struct Level {
    parent: usize,
    class: u32,
    depth: u32,
    bytes: u64,
}

/// Classes from the roots inwards, joined by semicolons, with the objects' own bytes.
pub fn retained_stacks(graph: &Graph, tree: &DominatorTree) -> Vec<(String, u64)> {
    let mut levels = vec![Level { parent: 0, class: u32::MAX, depth: 0, bytes: 0 }];
    let mut known = FxHashMap::<(usize, u32), usize>::default();
    let mut level_of = vec![0u32; graph.len()];
    for (object, dominator) in tree.walk() {
        let above = dominator.map_or(0, |dominator| level_of[dominator.0 as usize] as usize);
        let class = graph.class_of(object).0;
        let at = if levels[above].class == class || levels[above].depth == DEPTH_MAX {
            above
        } else {
            *known.entry((above, class)).or_insert_with(|| {
                levels.push(Level { parent: above, class, depth: levels[above].depth + 1, bytes: 0 });
                levels.len() - 1
            })
        };
        level_of[object.0 as usize] = at as u32;
        levels[at].bytes = levels[at].bytes.saturating_add(graph.size_bytes(object));
    }
    stacks(graph, &levels)
}

fn stacks(graph: &Graph, levels: &[Level]) -> Vec<(String, u64)> {
    let name = |level: &Level| {
        let class = &graph.classes()[level.class as usize];
        graph.name(class.name).replace([';', '\n', '\r'], ":")
    };
    let mut sums = FxHashMap::<String, u64>::default();
    for level in levels.iter().skip(1).filter(|level| level.bytes > 0) {
        let mut names = vec![name(level)];
        let mut at = level.parent;
        while at != 0 {
            names.push(name(&levels[at]));
            at = levels[at].parent;
        }
        names.reverse();
        *sums.entry(names.join(";")).or_default() += level.bytes;
    }
    let mut stacks: Vec<(String, u64)> = sums.into_iter().collect();
    stacks.sort_unstable();
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_heapsnap::{Class, ClassId, GraphParts, KindId, ObjectId, Root, Runtime};

    /// A list of nodes, each with a string; the last holds an array.
    fn heap(nodes: u32) -> Graph {
        let mut parts = GraphParts::default();
        let kind = KindId(parts.names.intern("OBJECT"));
        for name in ["Node", "Str;ing", "Array"] {
            let name = parts.names.intern(name);
            parts.classes.push(Class { kind, name, object: None });
        }
        let mut add = |class, bytes, targets: &[u32]| {
            parts.ids.push(parts.ids.len() as u64);
            parts.class_of.push(ClassId(class));
            parts.sizes.push(bytes);
            parts.edge_starts.push(parts.edge_targets.len() as u32);
            parts.edge_targets.extend(targets);
        };
        for node in 0..nodes {
            add(0, 40, &[2 * node + 1, 2 * node + 2]);
            add(1, 100, &[]);
        }
        add(2, 7, &[]);
        parts.edge_starts.push(parts.edge_targets.len() as u32);
        let name = parts.names.intern("vm");
        parts.roots.push(Root { name, object: ObjectId(0) });
        Graph::new(Runtime::Ruby, parts)
    }

    #[test]
    fn objects_of_one_class_in_a_row_are_one_box() {
        let graph = heap(1000);
        let stacks = retained_stacks(&graph, &DominatorTree::new(&graph));
        let expected = [("Node", 40_000), ("Node;Array", 7), ("Node;Str:ing", 100_000)];
        assert_eq!(stacks, expected.map(|(stack, bytes)| (stack.to_owned(), bytes)));
    }
}

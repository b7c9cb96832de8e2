//! Binary trees of 2^14 - 1 blocks, made and dropped by recursion: a block lies below up to 15 frames, most of them the same as the last one's.

use std::hint::black_box;

struct Node {
    children: Option<[Box<Node>; 2]>,
}

#[inline(never)]
fn tree(depth: u32) -> Box<Node> {
    let children = (depth > 1).then(|| [tree(depth - 1), tree(depth - 1)]);
    Box::new(Node { children })
}

fn count(node: &Node) -> usize {
    1 + node.children.iter().flatten().map(|child| count(child)).sum::<usize>()
}

fn main() {
    let _profile = inside_cost::profile();
    let rounds = inside_cost::rounds();
    let round = || {
        let root = black_box(tree(14));
        count(&root)
    };
    let blocks: usize = (0..rounds).map(|_| round()).sum();
    println!("{blocks}");
}

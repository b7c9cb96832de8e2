//! Dominators against their definition, on random heaps and on those that are hard.

use super::*;
use crate::{Class, ClassId, GraphParts, KindId, Names, Paths, Root, Runtime, Totals};
use proptest::prelude::*;

/// A heap of objects of 1, 2, 4, … bytes, which refer to each other so. Objects named twice as a root are two roots.
fn graph(len: u32, edges: &[(u32, u32)], roots: &[u32]) -> Graph {
    weak_graph(len, edges, roots, |_| true)
}

fn weak_graph(len: u32, edges: &[(u32, u32)], roots: &[u32], holds: impl Fn(usize) -> bool) -> Graph {
    Graph::new(Runtime::Ruby, parts(len, edges, roots, holds))
}

fn parts(len: u32, edges: &[(u32, u32)], roots: &[u32], holds: impl Fn(usize) -> bool) -> GraphParts {
    let mut names = Names::default();
    let name = names.intern("x");
    let mut parts = GraphParts { names, ..GraphParts::default() };
    parts.classes.push(Class { kind: KindId(name), name, object: None });
    let mut sorted: Vec<(usize, &(u32, u32))> = edges.iter().enumerate().collect();
    sorted.sort_by_key(|(_, edge)| edge.0);
    let mut next = 0;
    for object in 0..len {
        parts.ids.push(object.into());
        parts.class_of.push(ClassId(0));
        parts.sizes.push(1 << (object % 48));
        parts.edge_starts.push(next as u32);
        while let Some((at, (_, to))) = sorted.get(next).filter(|(_, edge)| edge.0 == object) {
            parts.edge_targets.push(GraphParts::packed_target(ObjectId(*to), holds(*at)));
            next += 1;
        }
    }
    parts.edge_starts.push(next as u32);
    parts.roots = roots.iter().map(|object| Root { name, object: ObjectId(*object) }).collect();
    parts
}

/// What can be reached from the roots without passing through an object.
fn reached(graph: &Graph, without: Option<ObjectId>) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut stack: Vec<ObjectId> = graph.roots().iter().map(|root| root.object).collect();
    while let Some(object) = stack.pop() {
        if Some(object) != without && !std::mem::replace(&mut seen[object.0 as usize], true) {
            stack.extend(graph.edges(object).filter(|edge| edge.holds).map(|edge| edge.target));
            stack.extend(graph.class_object_of(object));
        }
    }
    seen
}

/// Holds a tree against the definition: an object dominates what cannot be reached without it.
fn assert_is_right(graph: &Graph) {
    let tree = DominatorTree::new(graph);
    let all = reached(graph, None);
    assert_eq!(tree.reachable_len(), all.iter().filter(|is| **is).count());
    let mut dominators_of = vec![0; graph.len()];
    for object in graph.objects() {
        let rest = reached(graph, Some(object));
        let mut freed: Vec<ObjectId> =
            graph.objects().filter(|other| all[other.0 as usize] && !rest[other.0 as usize]).collect();
        let bytes: u64 = freed.iter().map(|object| graph.size_bytes(*object)).sum();
        freed.iter().for_each(|other| dominators_of[other.0 as usize] += 1);
        assert_eq!(tree.is_reachable(object), all[object.0 as usize]);
        assert_eq!(tree.retained_bytes(object), all[object.0 as usize].then_some(bytes), "{object:?}");
        let mut told: Vec<ObjectId> = tree.retained(object).collect();
        assert_eq!(told.first().copied(), all[object.0 as usize].then_some(object));
        told.sort();
        freed.sort();
        assert_eq!(told, freed, "{object:?}");
    }
    for object in graph.objects().filter(|object| tree.is_reachable(*object)) {
        let above = tree.dominator(object).map_or(0, |above| dominators_of[above.0 as usize]);
        assert_eq!(dominators_of[object.0 as usize], above + 1, "the immediate one is the next");
        assert!(tree.children(tree.dominator(object)).any(|child| child == object));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn dominators_are_what_they_are_defined_to_be(
        len in 1u32..24,
        edges in prop::collection::vec((0u32..24, 0u32..24), 0..60),
        roots in prop::collection::vec(0u32..24, 0..4),
        weak in prop::collection::vec(any::<bool>(), 60),
    ) {
        let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % len, b % len)).collect();
        let roots: Vec<u32> = roots.into_iter().map(|root| root % len).collect();
        assert_is_right(&graph(len, &edges, &roots));
        assert_is_right(&weak_graph(len, &edges, &roots, |at| weak[at]));
    }

    #[test]
    fn a_class_retains_what_the_definition_says(
        len in 1u32..16,
        edges in prop::collection::vec((0u32..16, 0u32..16), 0..40),
        roots in prop::collection::vec(0u32..16, 1..4),
        classes in prop::collection::vec(0u32..3, 16),
    ) {
        let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % len, b % len)).collect();
        let roots: Vec<u32> = roots.into_iter().map(|root| root % len).collect();
        let mut parts = parts(len, &edges, &roots, |_| true);
        parts.classes = ["a", "b", "c"].map(|name| Class { name: parts.names.intern(name), ..parts.classes[0].clone() }).into();
        // The first class is an object, which its objects hold.
        parts.classes[0].object = Some(ObjectId(0));
        parts.holds_class = true;
        parts.class_of = classes.iter().take(len as usize).map(|class| ClassId(*class)).collect();
        let graph = Graph::new(Runtime::Ruby, parts);
        assert_is_right(&graph);
        let tree = DominatorTree::new(&graph);
        for group in Totals::new(&graph, &tree).classes {
            let own: Vec<ObjectId> = graph.objects().filter(|object| graph.class_of(*object) == group.key).collect();
            let is_below = |object: ObjectId| {
                let mut above = tree.dominator(object);
                std::iter::from_fn(|| { let it = above?; above = tree.dominator(it); Some(it) }).any(|it| own.contains(&it))
            };
            let bytes: u64 = own.iter().filter(|object| !is_below(**object)).filter_map(|object| tree.retained_bytes(*object)).sum();
            prop_assert_eq!(group.sum.retained_bytes, bytes);
            prop_assert_eq!(group.sum.objects as usize, own.len());
            prop_assert_eq!(group.sum.bytes, own.iter().map(|object| graph.size_bytes(*object)).sum::<u64>());
        }
    }

    #[test]
    fn paths_are_the_shortest(
        len in 1u32..16,
        edges in prop::collection::vec((0u32..16, 0u32..16), 0..40),
        roots in prop::collection::vec(0u32..16, 1..3),
    ) {
        let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % len, b % len)).collect();
        let roots: Vec<u32> = roots.into_iter().map(|root| root % len).collect();
        let graph = graph(len, &edges, &roots);
        let mut steps = vec![usize::MAX; len as usize];
        roots.iter().for_each(|root| steps[*root as usize] = 1);
        for _ in 0..len {
            for (a, b) in &edges {
                steps[*b as usize] = steps[*b as usize].min(steps[*a as usize].saturating_add(1));
            }
        }
        let paths = Paths::new(&graph);
        for object in graph.objects() {
            let path = paths.to(object);
            let expected = steps[object.0 as usize];
            prop_assert_eq!(path.len(), if expected == usize::MAX { 0 } else { expected });
            prop_assert!(path.is_empty() || *path.last().unwrap() == object);
            prop_assert!(path.windows(2).all(|pair| edges.contains(&(pair[0].0, pair[1].0))));
        }
    }
}

/// The steps that a shape's paths take, for each object and reference.
fn steps_each(graph: &Graph) -> f64 {
    let work = (graph.len() + graph.edges_len()) as f64;
    dominators(graph).steps as f64 / work
}

/// Heaps on which simpler algorithms take the square of the number of objects.
fn shapes(len: u32) -> Vec<(&'static str, Graph)> {
    let list: Vec<(u32, u32)> = (1..len).map(|at| (at - 1, at)).collect();
    let half = len / 2;
    // A list, whose last node holds leaves that an array holds as well.
    let mut shared_leaves: Vec<(u32, u32)> = (1..half).map(|at| (at - 1, at)).collect();
    shared_leaves.extend((half + 1..len).flat_map(|leaf| [(half - 1, leaf), (half, leaf)]));
    let ladder: Vec<(u32, u32)> = (0..half - 1)
        .flat_map(|at| [(at, at + 1), (half + at, half + at + 1), (at, half + at), (half + at, at)])
        .collect();
    let fan: Vec<(u32, u32)> = (1..len).flat_map(|at| [(0, at), (at, (at % (len - 1)) + 1)]).collect();
    let cycles: Vec<(u32, u32)> =
        (0..len).flat_map(|at| [(at, (at + 1) % len), (at, (at + len - 1) % len)]).collect();
    let mut one_class = parts(len, &list, &[0], |_| true);
    one_class.classes[0].object = Some(ObjectId(len - 1));
    one_class.holds_class = true;
    vec![
        ("list", graph(len, &list, &[0])),
        ("list of one class", Graph::new(Runtime::Ruby, one_class)),
        ("list with shared leaves", graph(len, &shared_leaves, &[0, half])),
        ("ladder", graph(len, &ladder, &[0])),
        ("fan", graph(len, &fan, &[0])),
        ("cycles", graph(len, &cycles, &[0, len / 3])),
    ]
}

#[test]
fn hard_shapes_are_right() {
    for (_, graph) in shapes(40) {
        assert_is_right(&graph);
    }
}

#[test]
fn no_shape_is_quadratic() {
    for (shape, graph) in shapes(200_000) {
        // The bound is the logarithm of the number of objects; a square would be 100,000.
        let steps = steps_each(&graph);
        assert!(steps < 18.0, "{shape}: {steps} steps for each object and reference");
    }
}

/// What all of them took, the making included, `cargo test --release -p mallow-heapsnap -- --ignored ten_million` says at its end.
#[test]
#[ignore = "for its time: in `cargo xtask long`"]
fn ten_million_objects_of_each_shape() {
    const LEN: u32 = 10_000_000;
    for (shape, graph) in shapes(LEN) {
        let tree = DominatorTree::new(&graph);
        let reachable = graph.objects().filter(|object| tree.is_reachable(*object)).count();
        assert_eq!(reachable as u32, LEN, "{shape}");
    }
}

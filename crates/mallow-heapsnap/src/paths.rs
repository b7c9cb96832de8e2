//! Why an object is alive: the shortest way to it from a root, and who refers to it.

use crate::{Edge, EdgeLabel, Graph, ObjectId};

/// The shortest ways from the roots to all objects.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The object before each one: [`AT_ROOT`] for one that a root holds, [`NOWHERE`] for one that nothing holds.
    before: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;
const AT_ROOT: u32 = u32::MAX - 1;

impl Paths {
    /// Searches in breadth from the roots. Classes are passed through only for what nothing else holds: that an object has
    /// a class explains nothing.
    pub fn new(graph: &Graph) -> Paths {
        let mut paths = Paths { before: vec![NOWHERE; graph.len()] };
        let mut queue = Vec::new();
        for root in graph.roots() {
            paths.reach(root.object, AT_ROOT, &mut queue);
        }
        paths.search(graph, &mut queue, false);
        // What only classes hold: from all that was found, once more.
        let mut queue: Vec<u32> =
            (0..graph.len() as u32).filter(|object| paths.before[*object as usize] != NOWHERE).collect();
        paths.search(graph, &mut queue, true);
        paths
    }

    fn search(&mut self, graph: &Graph, queue: &mut Vec<u32>, with_classes: bool) {
        let mut at = 0;
        while let Some(object) = queue.get(at).copied() {
            at += 1;
            let ways = graph.ways(ObjectId(object)) - u32::from(!with_classes);
            for way in 0..ways {
                if let Some(target) = graph.held(ObjectId(object), way) {
                    self.reach(target, object, queue);
                }
            }
        }
    }

    fn reach(&mut self, object: ObjectId, from: u32, queue: &mut Vec<u32>) {
        let before = &mut self.before[object.0 as usize];
        if *before == NOWHERE {
            *before = from;
            queue.push(object.0);
        }
    }

    /// From the object that a root holds to this one; empty if nothing holds it.
    pub fn to(&self, object: ObjectId) -> Vec<ObjectId> {
        let mut path = Vec::new();
        let mut at = object.0;
        while at != AT_ROOT {
            match self.before.get(at as usize) {
                None | Some(&NOWHERE) => return Vec::new(),
                Some(before) => {
                    path.push(ObjectId(at));
                    at = *before;
                }
            }
        }
        path.reverse();
        path
    }
}

/// Somebody who refers to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// Who.
    pub object: ObjectId,
    /// Whether that keeps it alive.
    pub holds: bool,
    /// By what.
    pub label: Option<EdgeLabel>,
}

/// Everybody who refers to an object, in the order of the file.
pub fn referrers(graph: &Graph, target: ObjectId) -> Vec<Referrer> {
    let of = |object: ObjectId| {
        let refers = move |edge: &Edge| edge.target == target;
        graph.edges(object).filter(refers).map(move |edge| Referrer {
            object,
            holds: edge.holds,
            label: edge.label,
        })
    };
    graph.objects().flat_map(of).collect()
}

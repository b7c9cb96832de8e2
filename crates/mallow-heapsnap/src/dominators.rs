//! Immediate dominators, by the algorithm of Lengauer and Tarjan with path compression.
//!
//! "A Fast Algorithm for Finding Dominators in a Flowgraph", ACM TOPLAS 1 (1979), the version that needs O(m log n) steps. Algorithms that are
//! simpler and as fast on most graphs take the square of the number of objects on ordinary heaps: that of Cooper, Harvey and
//! Kennedy on a list of one class, Semi-NCA on a list whose end shares leaves with an array.
//!
//! Everything happens in numbers: an object's number is its place in a depth-first search from the roots, which is 0. What lies
//! together in a heap then lies together in the arrays. There are five arrays of four bytes an object, and most serve more than once:
//! - `ancestor` is the search's parent until a vertex is linked, and the compressed path afterwards;
//! - `label` is the first of a vertex's bucket until it is linked, and its label afterwards. A bucket holds what is linked, and the vertex that it belongs
//!   to has a smaller number; it is emptied when that vertex's first child is linked, which has the next number, so that nothing is in it any more;
//! - `idom` is where the predecessors of a vertex begin until it is linked, then links the vertices of a bucket until they are taken out of it.
//!
//! Of the predecessors only those with a higher number are kept. The others are not linked when they are asked for, so each would be its own
//! best: the smallest is where the semidominator starts from.

use crate::{Graph, ObjectId};

/// No vertex, and an object without a number.
pub(crate) const NONE: u32 = u32::MAX;

/// The immediate dominators of what can be reached from the roots.
pub(crate) struct Dominators {
    /// The object with a number; that of 0, the root of roots, is [`NONE`].
    pub(crate) objects: Vec<u32>,
    /// The immediate dominator of a number, which is smaller; that of 0 is 0.
    pub(crate) idoms: Vec<u32>,
    /// How many steps the compression of paths took.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests hold it against the square"))]
    pub(crate) steps: u64,
}

/// A depth-first search from the roots.
struct Search {
    /// The object with a number.
    objects: Vec<u32>,
    /// The number of an object.
    numbers: Vec<u32>,
    /// The number from which a number was found.
    parents: Vec<u32>,
}

/// Who refers to each number from above: the smaller ones are known to be no better than the smallest of them.
struct Predecessors {
    starts: Vec<u32>,
    numbers: Vec<u32>,
    /// The smallest one of each number, which is its parent in the search if no other is smaller.
    smallest: Vec<u32>,
}

pub(crate) fn dominators(graph: &Graph) -> Dominators {
    let Search { objects, numbers, parents } = search(graph);
    let predecessors = predecessors(graph, &objects, &numbers);
    drop(numbers);
    let (idoms, steps) = Forest::new(parents, predecessors).dominators();
    Dominators { objects, idoms, steps }
}

fn search(graph: &Graph) -> Search {
    // Most heaps are reachable but for little, so nothing is doubled on the way.
    let column = || Vec::with_capacity(graph.len() + 1);
    let mut search = Search { objects: column(), numbers: vec![NONE; graph.len()], parents: column() };
    search.objects.push(NONE);
    search.parents.push(0);
    // The way that is tried next out of each number of the path from the root.
    let mut path: Vec<(u32, u32)> = Vec::new();
    for root in graph.roots() {
        search.visit(root.object, 0, &mut path);
        while let Some((number, way)) = path.last_mut() {
            let (from, object) = (*number, ObjectId(search.objects[*number as usize]));
            if *way == graph.ways(object) {
                path.pop();
                continue;
            }
            *way += 1;
            let tried = *way - 1;
            if let Some(target) = graph.held(object, tried) {
                search.visit(target, from, &mut path);
            }
        }
    }
    search
}

impl Search {
    fn visit(&mut self, object: ObjectId, from: u32, path: &mut Vec<(u32, u32)>) {
        let number = &mut self.numbers[object.0 as usize];
        if *number == NONE {
            *number = self.objects.len() as u32;
            path.push((*number, 0));
            self.objects.push(object.0);
            self.parents.push(from);
        }
    }
}

fn predecessors(graph: &Graph, objects: &[u32], numbers: &[u32]) -> Predecessors {
    let each = |seen: &mut dyn FnMut(u32, u32)| {
        for root in graph.roots() {
            seen(0, numbers[root.object.0 as usize]);
        }
        for (number, object) in objects.iter().enumerate().skip(1) {
            let object = ObjectId(*object);
            for way in 0..graph.ways(object) {
                if let Some(target) = graph.held(object, way) {
                    seen(number as u32, numbers[target.0 as usize]);
                }
            }
        }
    };
    // Filled from behind, so that a count becomes a start by being filled.
    let mut starts = vec![0u32; objects.len() + 1];
    let mut smallest = vec![NONE; objects.len()];
    each(&mut |from, to| {
        smallest[to as usize] = smallest[to as usize].min(from);
        starts[to as usize] += u32::from(from > to);
    });
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut from_numbers = vec![0u32; sum as usize];
    each(&mut |from, to| {
        if from > to {
            let start = &mut starts[to as usize];
            *start -= 1;
            from_numbers[*start as usize] = from;
        }
    });
    Predecessors { starts, numbers: from_numbers, smallest }
}

/// The paper's forest: vertices are linked to their parents in descending order of their numbers.
struct Forest {
    ancestor: Vec<u32>,
    semi: Vec<u32>,
    /// The first vertex of its bucket, for one that is not linked.
    label: Vec<u32>,
    /// Of a vertex that is linked at the place behind its own, so that where the predecessors of the next one end is still known.
    idom: Vec<u32>,
    predecessors: Vec<u32>,
    /// A path that is being compressed.
    path: Vec<u32>,
    steps: u64,
}

impl Forest {
    fn new(parents: Vec<u32>, predecessors: Predecessors) -> Forest {
        Forest {
            label: vec![NONE; parents.len()],
            ancestor: parents,
            semi: predecessors.smallest,
            idom: predecessors.starts,
            predecessors: predecessors.numbers,
            path: Vec::new(),
            steps: 0,
        }
    }

    fn dominators(mut self) -> (Vec<u32>, u64) {
        let len = self.semi.len();
        for w in (1..len as u32).rev() {
            let at = w as usize;
            self.label[at] = w;
            for predecessor in self.idom[at]..self.idom[at + 1] {
                let u = self.eval(self.predecessors[predecessor as usize], w + 1);
                self.semi[at] = self.semi[at].min(self.semi[u as usize]);
            }
            let bucket = &mut self.label[self.semi[at] as usize];
            self.idom[at + 1] = *bucket;
            *bucket = w;
            // From here on w is linked to its parent.
            let parent = self.ancestor[at];
            let mut v = std::mem::replace(&mut self.label[parent as usize], NONE);
            while v != NONE {
                let next = self.idom[v as usize + 1];
                let u = self.eval(v, w);
                let is_deeper = self.semi[u as usize] < self.semi[v as usize];
                self.idom[v as usize + 1] = if is_deeper { u } else { parent };
                v = next;
            }
        }
        let mut idom = self.idom;
        idom.remove(0);
        idom[0] = 0;
        for w in 1..len {
            if idom[w] != self.semi[w] {
                idom[w] = idom[idom[w] as usize];
            }
        }
        (idom, self.steps)
    }

    /// The vertex of the smallest semidominator between `v`, which is linked, and the root of its tree. What is linked has a number from
    /// `linked` on.
    fn eval(&mut self, v: u32, linked: u32) -> u32 {
        self.compress(v, linked);
        self.label[v as usize]
    }

    fn compress(&mut self, v: u32, linked: u32) {
        let mut at = v;
        // Up to the child of the root of the tree.
        while self.ancestor[at as usize] >= linked {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        self.steps += self.path.len() as u64 + 1;
        while let Some(below) = self.path.pop() {
            let above = self.ancestor[below as usize] as usize;
            let (label, best) = (self.label[below as usize], self.label[above]);
            if self.semi[best as usize] < self.semi[label as usize] {
                self.label[below as usize] = best;
            }
            self.ancestor[below as usize] = self.ancestor[above];
        }
    }
}

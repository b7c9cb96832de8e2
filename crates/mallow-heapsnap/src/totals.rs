//! Sums by kind, class, site and generation.
//!
//! The retained bytes of a group are what would be freed if all of its objects were gone, as far as the dominator tree tells: an object counts that is
//! below no other of its group. What two groups hold together belongs to neither.

use crate::{Class, ClassId, DominatorTree, Generation, Graph, KindId, ObjectId, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::hash::Hash;

/// What objects come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many there are.
    pub objects: u64,
    /// Their own bytes.
    pub bytes: u64,
    /// The bytes that they and nobody else keep alive.
    pub retained_bytes: u64,
}

/// A group and its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<K> {
    /// Which.
    pub key: K,
    /// What its objects come to.
    pub sum: Sum,
}

/// The sums of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All objects.
    pub all: Sum,
    /// Those that nothing holds.
    pub unreachable: Sum,
    /// By kind.
    pub kinds: Vec<Group<KindId>>,
    /// By kind and name of the class. The first class stands for all of the same name: a singleton class has the name of its own.
    pub classes: Vec<Group<ClassId>>,
    /// By site, those without one first.
    pub sites: Vec<Group<Option<SiteId>>>,
    /// By generation, those without one first.
    pub generations: Vec<Group<Option<Generation>>>,
}

impl Totals {
    /// Adds everything up.
    pub fn new(graph: &Graph, tree: &DominatorTree) -> Totals {
        let (kinds, classes) = (ClassGroups::of_kinds(graph), ClassGroups::of_names(graph));
        let kind_of = |object: ObjectId| kinds.group[graph.class_of(object).0 as usize];
        let class_of = |object: ObjectId| classes.group[graph.class_of(object).0 as usize];
        let site_of = |object: ObjectId| graph.site_of(object).map_or(0, |site| site.0 + 1);
        let generations = generations(graph);
        let generation_of =
            |object: ObjectId| graph.generation_of(object).map_or(0, |at| generations.group[&at]);
        let mut all = Sum::default();
        let mut unreachable = Sum::default();
        for object in graph.objects() {
            let bytes = graph.size_bytes(object);
            all.add(bytes);
            if !tree.is_reachable(object) {
                unreachable.add(bytes);
            }
        }
        all.retained_bytes = tree.reachable_bytes();
        Totals {
            all,
            unreachable,
            kinds: groups(graph, tree, kinds.first.len(), kind_of, |at| {
                graph.class(kinds.first[at as usize]).kind
            }),
            classes: groups(graph, tree, classes.first.len(), class_of, |at| classes.first[at as usize]),
            sites: groups(graph, tree, graph.sites().len() + 1, site_of, |at| at.checked_sub(1).map(SiteId)),
            generations: groups(graph, tree, generations.sorted.len() + 1, generation_of, |at| {
                at.checked_sub(1).map(|at| generations.sorted[at as usize])
            }),
        }
    }
}

/// The sum of some objects, as one group.
pub fn sum_of(graph: &Graph, tree: &DominatorTree, is_one: impl Fn(ObjectId) -> bool) -> Sum {
    let mut sum = Sum::default();
    graph.objects().filter(|object| is_one(*object)).for_each(|object| sum.add(graph.size_bytes(object)));
    let group_of = |object| is_one(object).then_some(0);
    tree.topmost(1, group_of, |_, _, bytes| sum.retained_bytes = sum.retained_bytes.saturating_add(bytes));
    sum
}

/// The sums by generation alone, without what is retained.
pub fn generation_sums(graph: &Graph) -> Vec<Group<Option<Generation>>> {
    let mut sums = BTreeMap::<Option<Generation>, Sum>::new();
    for object in graph.objects() {
        sums.entry(graph.generation_of(object)).or_default().add(graph.size_bytes(object));
    }
    sums.into_iter().map(|(key, sum)| Group { key, sum }).collect()
}

impl Sum {
    /// Counts an object.
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Classes that are shown as one.
struct ClassGroups {
    /// Of each class.
    group: Vec<u32>,
    /// The first class of each group.
    first: Vec<ClassId>,
}

impl ClassGroups {
    fn of_kinds(graph: &Graph) -> ClassGroups {
        ClassGroups::new(graph, |class| class.kind)
    }

    fn of_names(graph: &Graph) -> ClassGroups {
        ClassGroups::new(graph, |class| (class.kind, class.name))
    }

    fn new<K: Eq + Hash>(graph: &Graph, key: impl Fn(&Class) -> K) -> ClassGroups {
        let mut known = FxHashMap::default();
        let mut first = Vec::new();
        let group = (0..).zip(graph.classes()).map(|(at, class)| {
            *known.entry(key(class)).or_insert_with(|| {
                first.push(ClassId(at));
                first.len() as u32 - 1
            })
        });
        ClassGroups { group: group.collect(), first }
    }
}

/// The generations that occur: a file may name any.
struct Generations {
    sorted: Vec<Generation>,
    /// Its place among them, and one.
    group: FxHashMap<Generation, u32>,
}

fn generations(graph: &Graph) -> Generations {
    let met: FxHashSet<Generation> =
        graph.objects().filter_map(|object| graph.generation_of(object)).collect();
    let mut sorted: Vec<Generation> = met.into_iter().collect();
    sorted.sort_unstable();
    let group = (1..).zip(&sorted).map(|(at, generation)| (*generation, at)).collect();
    Generations { sorted, group }
}

/// The groups that have objects.
fn groups<K>(
    graph: &Graph,
    tree: &DominatorTree,
    len: usize,
    group_of: impl Fn(ObjectId) -> u32,
    key: impl Fn(u32) -> K,
) -> Vec<Group<K>> {
    let mut sums = vec![Sum::default(); len];
    for object in graph.objects() {
        sums[group_of(object) as usize].add(graph.size_bytes(object));
    }
    tree.topmost(
        len,
        |object| Some(group_of(object)),
        |group, _, bytes| {
            let sum = &mut sums[group as usize].retained_bytes;
            *sum = sum.saturating_add(bytes);
        },
    );
    let of = |(at, sum): (usize, &Sum)| Group { key: key(at as u32), sum: *sum };
    sums.iter().enumerate().filter(|(_, sum)| sum.objects > 0).map(of).collect()
}

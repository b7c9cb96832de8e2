//! What came, went and grew between two snapshots of one process.
//!
//! An object is the same in both when its address, its kind, its class and its generation are the same. Its size is not asked: a hash that
//! grew is the same hash. Without generations a new object that lies where an old one of its class lay is taken for that
//! one, so fewer are told than there are. V8 gives objects numbers that never come again; a JVM moves objects and gives none, so
//! only its classes are compared.

use crate::{AddressIndex, Generation, Graph, ObjectId, Runtime, Snapshot, Sum};
use rustc_hash::FxHashMap;

/// How sure it is that an object of one snapshot is that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By a number that the runtime gives once.
    Number,
    /// By address, class and generation: exact but for objects that a compaction moved.
    AddressAndGeneration,
    /// By address and class: a new object may lie where an old one of its class lay.
    Address,
    /// The runtime moves objects: only classes can be compared.
    Classes,
}

/// A class, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassChange {
    /// Its name.
    pub name: String,
    /// Its objects' kind.
    pub kind: String,
    /// In the first snapshot.
    pub before: Sum,
    /// In the second.
    pub after: Sum,
}

/// New objects of one class that were made at one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObjects {
    /// Their class.
    pub class: String,
    /// Their kind.
    pub kind: String,
    /// `file:line`, where that was traced.
    pub site: Option<String>,
    /// The first and the last generation in which they were made, where that was traced.
    pub generations: Option<(u32, u32)>,
    /// What they come to.
    pub sum: Sum,
}

/// Objects of a class that are in both, and larger in the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Their class.
    pub class: String,
    /// How many.
    pub objects: u64,
    /// By how much.
    pub bytes: u64,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapDiff {
    /// How objects were matched.
    pub identity: Identity,
    /// Whether each snapshot holds its whole heap. Otherwise what is missing from the first is taken for new, and what is missing from
    /// another for gone.
    pub is_complete: bool,
    /// All objects of the first.
    pub before: Sum,
    /// All objects of the second.
    pub after: Sum,
    /// Classes whose objects changed in number or bytes, the most additional bytes first.
    pub classes: Vec<ClassChange>,
    /// Objects of the second that are not in the first, by class and line, the most bytes first. With a third snapshot,
    /// those of them that are still there.
    pub new: Vec<NewObjects>,
    /// All of them.
    pub new_sum: Sum,
    /// Objects of the first that are not in the second.
    pub gone: Sum,
    /// What is larger, the most bytes first.
    pub grown: Vec<Grown>,
    /// New objects that were made before the first snapshot was: they were moved, or not dumped.
    pub moved: u64,
}

/// Compares two snapshots; with a third, only what is still there in it counts as new.
pub fn diff(before: &Snapshot, after: &Snapshot, later: Option<&Snapshot>) -> HeapDiff {
    let snapshots = [Some(before), Some(after), later];
    let is_complete = snapshots.iter().flatten().all(|snapshot| snapshot.is_whole());
    let identity = identity(&snapshots.map(|snapshot| Some(&snapshot?.graph)));
    let (before, after, later) = (&before.graph, &after.graph, later.map(|later| &later.graph));
    let mut names = ClassNames::default();
    let mut result = HeapDiff {
        identity,
        is_complete,
        before: sum(before),
        after: sum(after),
        classes: class_changes(before, after, identity, &mut names),
        new: Vec::new(),
        new_sum: Sum::default(),
        gone: Sum::default(),
        grown: Vec::new(),
        moved: 0,
    };
    if identity == Identity::Classes {
        return result;
    }
    let mut old = Others::new(before, &mut names);
    let mut kept = later.map(|later| Others::new(later, &mut names));
    let first_end = before.objects().filter_map(|object| before.generation_of(object)).max();
    let mut new = FxHashMap::<_, NewGroup>::default();
    let mut grown = FxHashMap::<u32, (u64, u64)>::default();
    let numbers = names.of(after);
    for object in after.objects() {
        let class = numbers[after.class_of(object).0 as usize];
        let bytes = after.size_bytes(object);
        if let Some(same) = old.take(after, object, class) {
            if let Some(growth) = bytes.checked_sub(before.size_bytes(same)).filter(|growth| *growth > 0) {
                let (objects, more) = grown.entry(class).or_default();
                *objects += 1;
                *more += growth;
            }
            continue;
        }
        if kept.as_mut().is_some_and(|kept| kept.take(after, object, class).is_none()) {
            continue;
        }
        let generation = after.generation_of(object);
        result.moved += u64::from(generation.is_some_and(|made| first_end.is_some_and(|end| made < end)));
        new.entry((class, after.site_of(object))).or_default().add(bytes, generation);
        result.new_sum.add(bytes);
    }
    result.gone = old.rest();
    result.new = new
        .into_iter()
        .map(|((class, site), group)| {
            let (kind, class) = names.name(class);
            let site = site.map(|site| {
                let site = after.site(site);
                format!("{}:{}", after.name(site.file), site.line)
            });
            NewObjects { class, kind, site, generations: group.generations, sum: group.sum }
        })
        .collect();
    result.new.sort_by(|a, b| {
        let by = |new: &NewObjects| (new.sum.bytes, new.sum.objects);
        by(b).cmp(&by(a)).then_with(|| (&a.class, &a.site).cmp(&(&b.class, &b.site)))
    });
    let grown = grown.into_iter();
    result.grown =
        grown.map(|(class, (objects, bytes))| Grown { class: names.name(class).1, objects, bytes }).collect();
    result.grown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    result
}

#[derive(Default)]
struct NewGroup {
    sum: Sum,
    generations: Option<(u32, u32)>,
}

impl NewGroup {
    fn add(&mut self, bytes: u64, generation: Option<Generation>) {
        self.sum.add(bytes);
        if let Some(Generation(at)) = generation {
            let (first, last) = self.generations.unwrap_or((at, at));
            self.generations = Some((first.min(at), last.max(at)));
        }
    }
}

pub(crate) fn identity(graphs: &[Option<&Graph>]) -> Identity {
    let all = || graphs.iter().flatten();
    let is_traced = |graph: &Graph| graph.objects().any(|object| graph.generation_of(object).is_some());
    if all().any(|graph| graph.runtime() == Runtime::Jvm) {
        Identity::Classes
    } else if all().all(|graph| graph.runtime() == Runtime::V8) {
        Identity::Number
    } else if all().all(|graph| is_traced(graph)) {
        Identity::AddressAndGeneration
    } else {
        Identity::Address
    }
}

/// The objects of another snapshot, each of which is the same as one object at most.
pub(crate) struct Others<'a> {
    graph: &'a Graph,
    index: AddressIndex,
    /// The number of each class.
    classes: Vec<u32>,
    taken: Vec<bool>,
}

impl<'a> Others<'a> {
    pub(crate) fn new(graph: &'a Graph, names: &mut ClassNames) -> Others<'a> {
        let (index, _) = AddressIndex::new(&graph.ids());
        Others { graph, index, classes: names.of(graph), taken: vec![false; graph.len()] }
    }

    /// The object that is the same as this one of `other`, whose class has this number.
    pub(crate) fn take(&mut self, other: &Graph, object: ObjectId, class: u32) -> Option<ObjectId> {
        let same = self.index.get(other.id(object))?;
        // A number of V8's is never given again, whatever the object is called.
        let is_same = self.graph.runtime() == Runtime::V8
            || self.classes[self.graph.class_of(same).0 as usize] == class
                && self.graph.generation_of(same) == other.generation_of(object);
        (is_same && !std::mem::replace(&mut self.taken[same.0 as usize], true)).then_some(same)
    }

    /// Those that are the same as none.
    fn rest(&self) -> Sum {
        let mut sum = Sum::default();
        let rest = self.graph.objects().filter(|object| !self.taken[object.0 as usize]);
        rest.for_each(|object| sum.add(self.graph.size_bytes(object)));
        sum
    }
}

/// Kinds and names of classes, numbered alike in all snapshots.
#[derive(Default)]
pub(crate) struct ClassNames {
    numbers: FxHashMap<(String, String), u32>,
    names: Vec<(String, String)>,
}

impl ClassNames {
    /// The number of each class of a graph.
    pub(crate) fn of(&mut self, graph: &Graph) -> Vec<u32> {
        let name =
            |class: &crate::Class| (graph.name(class.kind.0).to_owned(), graph.name(class.name).to_owned());
        let number = |name: (String, String)| {
            *self.numbers.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() as u32 - 1
            })
        };
        graph.classes().iter().map(name).map(number).collect()
    }

    pub(crate) fn name(&self, number: u32) -> (String, String) {
        self.names[number as usize].clone()
    }
}

fn sum(graph: &Graph) -> Sum {
    let mut sum = Sum::default();
    graph.objects().for_each(|object| sum.add(graph.size_bytes(object)));
    sum
}

fn class_changes(
    before: &Graph,
    after: &Graph,
    identity: Identity,
    names: &mut ClassNames,
) -> Vec<ClassChange> {
    let before_classes = ClassesBefore::new(before, after, identity, names);
    let after_classes = names.of(after);
    let mut sums = vec![(Sum::default(), Sum::default()); names.names.len()];
    for object in before.objects() {
        sums[before_classes.of(object) as usize].0.add(before.size_bytes(object));
    }
    for object in after.objects() {
        sums[after_classes[after.class_of(object).0 as usize] as usize].1.add(after.size_bytes(object));
    }
    let change = |(number, (before, after)): (usize, (Sum, Sum))| {
        let (kind, name) = names.name(number as u32);
        ClassChange { kind, name, before, after }
    };
    let mut changes: Vec<ClassChange> =
        sums.into_iter().enumerate().filter(|(_, (before, after))| before != after).map(change).collect();
    let more = |class: &ClassChange| {
        let by = |after: u64, before: u64| i128::from(after) - i128::from(before);
        (by(class.after.bytes, class.before.bytes), by(class.after.objects, class.before.objects))
    };
    changes.sort_by(|a, b| more(b).cmp(&more(a)).then_with(|| (&a.name, &a.kind).cmp(&(&b.name, &b.kind))));
    changes
}

/// The classes of the objects of an earlier snapshot. Of one that is in the later snapshot too, by a number that is never given again, it is the
/// class that it has there: what a plain object of V8's is called depends on what else there is.
pub(crate) struct ClassesBefore<'a> {
    before: &'a Graph,
    own: Vec<u32>,
    after: Option<(&'a Graph, AddressIndex, Vec<u32>)>,
}

impl<'a> ClassesBefore<'a> {
    pub(crate) fn new(
        before: &'a Graph,
        after: &'a Graph,
        identity: Identity,
        names: &mut ClassNames,
    ) -> ClassesBefore<'a> {
        let own = names.of(before);
        let after = (identity == Identity::Number)
            .then(|| (after, AddressIndex::new(&after.ids()).0, names.of(after)));
        ClassesBefore { before, own, after }
    }

    /// The number of an object's class.
    pub(crate) fn of(&self, object: ObjectId) -> u32 {
        let later = self.after.as_ref().and_then(|(after, index, classes)| {
            let same = index.get(self.before.id(object))?;
            Some(classes[after.class_of(same).0 as usize])
        });
        later.unwrap_or_else(|| self.own[self.before.class_of(object).0 as usize])
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

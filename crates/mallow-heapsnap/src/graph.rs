//! The object graph: objects in columns, references in one array, names once.
//!
//! A heap has millions of objects, so nothing is kept for each that its format does not tell: a column may be empty.

use crate::{NameId, Names, Sizes};
use std::borrow::Cow;

/// Index of an object, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// Index into [`Graph::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// Index into [`Graph::sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// The name of a kind: the runtime's own sort of object, such as Ruby's `STRING` or V8's `closure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub NameId);

/// How often the runtime had collected when an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u32);

/// Whose heap it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Ruby, by `ObjectSpace.dump_all`.
    Ruby,
    /// V8, by a `.heapsnapshot`.
    V8,
    /// A JVM, by an HPROF file.
    Jvm,
    /// CPython, by mallow's own snapshot.
    Python,
}

/// A class of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its objects' kind. Objects of two kinds are of two classes.
    pub kind: KindId,
    /// Its name.
    pub name: NameId,
    /// The object that the class is, if there is one.
    pub object: Option<ObjectId>,
}

/// A line of a program at which objects were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The file.
    pub file: NameId,
    /// The line.
    pub line: u32,
}

/// What holds an object from outside the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// What the runtime calls it.
    pub name: NameId,
    /// What it holds.
    pub object: ObjectId,
}

/// By what an object refers to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeLabel {
    /// A field, a variable, or what the runtime calls it.
    Name(NameId),
    /// An element of an array.
    Element(u32),
}

/// A reference from one object to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What is referred to.
    pub target: ObjectId,
    /// Whether it is kept alive by this.
    pub holds: bool,
    /// Where the reference stands; none where the format does not tell.
    pub label: Option<EdgeLabel>,
}

/// In [`GraphParts::edge_targets`]: the target is not kept alive by this reference.
const WEAK: u32 = 1 << 31;
/// In a packed label: it is an element.
const ELEMENT: u32 = 1 << 31;
/// A packed label that says nothing.
const UNLABELLED: u32 = u32::MAX;

/// The columns of a graph, as a reader fills them. All but the optional ones have a row for each object.
#[derive(Clone, Debug, Default)]
pub struct GraphParts {
    /// Addresses, or numbers that the runtime gives.
    pub ids: Vec<u64>,
    /// Each object's class.
    pub class_of: Vec<ClassId>,
    /// Each object's bytes.
    pub sizes: Sizes,
    /// Where each object was made, [`SiteId`] + 1, or 0; may be empty.
    pub site_of: Vec<u32>,
    /// When each object was made, [`Generation`] + 1, or 0; may be empty.
    pub generation_of: Vec<u32>,
    /// What the object itself is called; may be empty.
    pub name_of: Vec<NameId>,
    /// What some objects are called, by object, ascending: for formats that name few.
    pub object_names: Vec<(ObjectId, NameId)>,
    /// Where each object's references begin in `edge_targets`, and a last row with their number.
    pub edge_starts: Vec<u32>,
    /// What is referred to; see [`GraphParts::packed_target`].
    pub edge_targets: Vec<u32>,
    /// By what it is referred to; see [`GraphParts::packed_label`]. May be empty.
    pub edge_labels: Vec<u32>,
    /// The classes.
    pub classes: Vec<Class>,
    /// Whether an object keeps its class's object alive.
    pub holds_class: bool,
    /// The sites.
    pub sites: Vec<Site>,
    /// The roots.
    pub roots: Vec<Root>,
    /// All names.
    pub names: Names,
}

impl GraphParts {
    /// The most objects of a graph.
    pub const OBJECTS_MAX: usize = (1 << 31) - 2;

    /// A row of `edge_targets`.
    pub fn packed_target(target: ObjectId, holds: bool) -> u32 {
        target.0 | if holds { 0 } else { WEAK }
    }

    /// A row of `edge_labels`. What does not fit into it says nothing.
    pub fn packed_label(label: Option<EdgeLabel>) -> u32 {
        match label {
            Some(EdgeLabel::Name(name)) if name.0 < ELEMENT => name.0,
            Some(EdgeLabel::Element(index)) if index < ELEMENT - 1 => index | ELEMENT,
            _ => UNLABELLED,
        }
    }
}

/// A heap.
#[derive(Clone, Debug)]
pub struct Graph {
    runtime: Runtime,
    parts: GraphParts,
    /// The ids, where four bytes hold each: V8's numbers are small. `parts.ids` is empty then.
    narrow_ids: Vec<u32>,
}

impl Graph {
    /// Takes a reader's columns.
    ///
    /// # Panics
    /// When columns do not fit together, which is a fault of the reader and not of its file.
    pub fn new(runtime: Runtime, mut parts: GraphParts) -> Graph {
        let objects = parts.ids.len();
        assert!(objects <= GraphParts::OBJECTS_MAX);
        assert_eq!(objects, parts.class_of.len());
        assert_eq!(objects, parts.sizes.len());
        assert_eq!(objects + 1, parts.edge_starts.len());
        assert_eq!(parts.edge_starts.last().copied(), u32::try_from(parts.edge_targets.len()).ok());
        for (what, column) in [("site", parts.site_of.len()), ("generation", parts.generation_of.len())] {
            assert!(column == 0 || column == objects, "{what}: {column} rows for {objects} objects");
        }
        assert!(parts.name_of.is_empty() || parts.name_of.len() == objects);
        assert!(parts.edge_labels.is_empty() || parts.edge_labels.len() == parts.edge_targets.len());
        let mut narrow_ids = Vec::new();
        if parts.ids.iter().all(|id| *id <= u32::MAX.into()) {
            narrow_ids = std::mem::take(&mut parts.ids).into_iter().map(|id| id as u32).collect();
            // It may have been made in place.
            narrow_ids.shrink_to_fit();
        }
        Graph { runtime, parts, narrow_ids }
    }

    /// Whose heap it is.
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.parts.class_of.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.class_of.is_empty()
    }

    /// All objects, in the order of the file.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.len() as u32).map(ObjectId)
    }

    /// An object's address, or the number that its runtime gives it.
    pub fn id(&self, object: ObjectId) -> u64 {
        let at = object.0 as usize;
        self.parts.ids.get(at).copied().unwrap_or_else(|| self.narrow_ids[at].into())
    }

    /// The addresses or numbers of all objects.
    pub(crate) fn ids(&self) -> Cow<'_, [u64]> {
        match self.narrow_ids.is_empty() {
            true => Cow::Borrowed(&self.parts.ids),
            false => self.narrow_ids.iter().copied().map(u64::from).collect(),
        }
    }

    /// The object with an address or number.
    pub fn find(&self, id: u64) -> Option<ObjectId> {
        self.objects().find(|object| self.id(*object) == id)
    }

    /// An object's own bytes.
    pub fn size_bytes(&self, object: ObjectId) -> u64 {
        self.parts.sizes.get(object.0 as usize)
    }

    /// An object's class.
    pub fn class_of(&self, object: ObjectId) -> ClassId {
        self.parts.class_of[object.0 as usize]
    }

    /// An object's kind.
    pub fn kind_of(&self, object: ObjectId) -> KindId {
        self.class(self.class_of(object)).kind
    }

    /// Where an object was made; none where that was not traced.
    pub fn site_of(&self, object: ObjectId) -> Option<SiteId> {
        self.parts.site_of.get(object.0 as usize)?.checked_sub(1).map(SiteId)
    }

    /// When an object was made; none where that was not traced.
    pub fn generation_of(&self, object: ObjectId) -> Option<Generation> {
        self.parts.generation_of.get(object.0 as usize)?.checked_sub(1).map(Generation)
    }

    /// What an object itself is called; none where its format gives it no name.
    pub fn name_of(&self, object: ObjectId) -> Option<&str> {
        let of_few = || {
            let named = &self.parts.object_names;
            named.binary_search_by_key(&object, |(named, _)| *named).ok().map(|at| named[at].1)
        };
        let name = self.parts.name_of.get(object.0 as usize).copied().or_else(of_few)?;
        Some(self.name(name))
    }

    /// All classes.
    pub fn classes(&self) -> &[Class] {
        &self.parts.classes
    }

    /// A class.
    pub fn class(&self, id: ClassId) -> &Class {
        &self.parts.classes[id.0 as usize]
    }

    /// All sites.
    pub fn sites(&self) -> &[Site] {
        &self.parts.sites
    }

    /// A site.
    pub fn site(&self, id: SiteId) -> Site {
        self.parts.sites[id.0 as usize]
    }

    /// What holds objects from outside.
    pub fn roots(&self) -> &[Root] {
        &self.parts.roots
    }

    /// A name.
    pub fn name(&self, id: NameId) -> &str {
        self.parts.names.get(id)
    }

    /// How many references are written in the file; those to classes are not counted.
    pub fn edges_len(&self) -> usize {
        self.parts.edge_targets.len()
    }

    /// What an object refers to, as the file has it: its class is not among it.
    pub fn edges(&self, object: ObjectId) -> impl Iterator<Item = Edge> + '_ {
        self.edge_range(object).map(|at| {
            let packed = self.parts.edge_targets[at];
            let label = self.parts.edge_labels.get(at).and_then(|packed| unpacked_label(*packed));
            Edge { target: ObjectId(packed & !WEAK), holds: packed & WEAK == 0, label }
        })
    }

    fn edge_range(&self, object: ObjectId) -> std::ops::Range<usize> {
        let at = object.0 as usize;
        self.parts.edge_starts[at] as usize..self.parts.edge_starts[at + 1] as usize
    }

    /// The object of an object's class, if it keeps that alive.
    pub fn class_object_of(&self, object: ObjectId) -> Option<ObjectId> {
        let class = self.parts.holds_class.then(|| self.class(self.class_of(object)))?;
        class.object.filter(|class| *class != object)
    }

    /// How many ways out of an object there are: [`Graph::held`] takes their numbers.
    pub(crate) fn ways(&self, object: ObjectId) -> u32 {
        self.edge_range(object).len() as u32 + 1
    }

    /// What an object keeps alive by its way of this number; none for a weak reference.
    pub(crate) fn held(&self, object: ObjectId, way: u32) -> Option<ObjectId> {
        let range = self.edge_range(object);
        let at = range.start + way as usize;
        if at == range.end {
            return self.class_object_of(object);
        }
        let packed = self.parts.edge_targets[at];
        (packed & WEAK == 0).then_some(ObjectId(packed))
    }
}

fn unpacked_label(packed: u32) -> Option<EdgeLabel> {
    match packed {
        UNLABELLED => None,
        element if element & ELEMENT != 0 => Some(EdgeLabel::Element(element & !ELEMENT)),
        name => Some(EdgeLabel::Name(NameId(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back() {
        for label in [
            None,
            Some(EdgeLabel::Name(NameId(0))),
            Some(EdgeLabel::Element(0)),
            Some(EdgeLabel::Element(1 << 30)),
        ] {
            assert_eq!(unpacked_label(GraphParts::packed_label(label)), label);
        }
        assert_eq!(GraphParts::packed_label(Some(EdgeLabel::Element(u32::MAX))), UNLABELLED);
    }
}

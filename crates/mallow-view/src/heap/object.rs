//! The pages of one object and of one class.

use super::limits::of_class;
use super::report::{ObjectRow, object_row};
use mallow_heapsnap::{
    DominatorTree, Edge, EdgeLabel, Graph, ObjectId, Paths, Snapshot, Sum, referrers, sum_of,
};

/// A reference, seen from one of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// The field, the variable or the element, such as `@name` or `[3]`; empty if it is unknown.
    pub field: String,
    /// Whether it keeps its target alive.
    pub holds: bool,
    /// The object at the other end.
    pub object: ObjectRow,
}

/// An object, and why it is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReport {
    /// The object.
    pub object: ObjectRow,
    /// Nothing is known of who holds what.
    pub is_partial: bool,
    /// Its kind.
    pub kind: String,
    /// Where it was allocated.
    pub site: Option<String>,
    /// When it was made.
    pub generation: Option<u32>,
    /// The roots that hold it themselves.
    pub roots: Vec<String>,
    /// Its references, in the order of the file.
    pub references: Vec<FieldRow>,
    /// Its referrers.
    pub referrers: Vec<FieldRow>,
    /// The shortest path from a root to it: the root's name, then each object with the field by which the one before
    /// it refers to it. Empty if nothing holds it.
    pub path_root: Option<String>,
    /// See [`ObjectReport::path_root`]; the last is the object.
    pub path: Vec<FieldRow>,
    /// The objects without any one of which it would be freed, the nearest first.
    pub dominators: Vec<ObjectRow>,
    /// What it retains by class, the most bytes first.
    pub retained: Vec<(String, Sum)>,
}

/// The objects of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// Nothing is known of who holds what.
    pub is_partial: bool,
    /// Their sum.
    pub sum: Sum,
    /// Where they were allocated, the most bytes first.
    pub sites: Vec<(String, Sum)>,
    /// Those that retain most.
    pub objects: Vec<ObjectRow>,
    /// Which objects hold them, by class and field, the most references first.
    pub holders: Vec<(String, u64)>,
    /// Why the one that retains most is alive.
    pub example: Option<Box<ObjectReport>>,
}

/// So many objects of a class are listed.
const OBJECTS: usize = 100;

/// An object with more references than this is a map or an array, and has no fields.
const FIELDS_MAX: usize = 256;

/// Everything about an object.
pub fn object_report(
    snapshot: &Snapshot,
    tree: &DominatorTree,
    paths: &Paths,
    object: ObjectId,
) -> ObjectReport {
    let graph = &snapshot.graph;
    let row = |object| object_row(graph, tree, object);
    let field = |label, holds, object| FieldRow { field: field(graph, label), holds, object: row(object) };
    let root_names = |object: ObjectId| {
        let held = graph.roots().iter().filter(move |root| root.object == object);
        held.map(|root| graph.name(root.name).to_owned())
    };
    let path = paths.to(object);
    let mut path_rows: Vec<FieldRow> =
        path.first().map(|first| field(None, true, *first)).into_iter().collect();
    path_rows.extend(path.windows(2).map(|pair| {
        let edge = graph.edges(pair[0]).find(|edge| edge.target == pair[1] && edge.holds);
        let label = edge.and_then(|edge: Edge| edge.label);
        let mut row = field(label, true, pair[1]);
        if edge.is_none() {
            row.field = "its class".to_owned();
        }
        row
    }));
    let mut dominators = Vec::new();
    let mut above = tree.dominator(object);
    while let Some(dominator) = above {
        dominators.push(row(dominator));
        above = tree.dominator(dominator);
    }
    ObjectReport {
        object: row(object),
        is_partial: snapshot.is_partial,
        kind: graph.name(graph.kind_of(object).0).to_owned(),
        site: site(graph, object),
        generation: graph.generation_of(object).map(|generation| generation.0),
        roots: root_names(object).collect(),
        references: graph.edges(object).map(|edge| field(edge.label, edge.holds, edge.target)).collect(),
        referrers: referrers(graph, object)
            .iter()
            .map(|from| field(from.label, from.holds, from.object))
            .collect(),
        path_root: path.first().and_then(|first| root_names(*first).next()),
        path: path_rows,
        dominators,
        retained: by_class(graph, tree.retained(object)),
    }
}

/// Everything about the classes of a name; none if there are none.
pub fn class_report(
    snapshot: &Snapshot,
    tree: &DominatorTree,
    paths: &Paths,
    name: &str,
) -> Option<ClassReport> {
    let graph = &snapshot.graph;
    let is_one = of_class(graph, name);
    let sum = sum_of(graph, tree, &is_one);
    let mut objects: Vec<ObjectId> = graph.objects().filter(|object| is_one(*object)).collect();
    if objects.is_empty() {
        return None;
    }
    let sites =
        summed(objects.iter().filter_map(|object| Some((site(graph, *object)?, graph.size_bytes(*object)))));
    let holders = summed(graph.objects().flat_map(|object| {
        let is_one = &is_one;
        // The keys of a map are one place, as an array's elements are.
        let is_map = graph.edges(object).nth(FIELDS_MAX).is_some();
        graph.edges(object).filter(|edge| edge.holds && is_one(edge.target)).map(move |edge| {
            let class = graph.name(graph.class(graph.class_of(object)).name);
            let place =
                if is_map && edge.label.is_some() { "[…]".to_owned() } else { place(graph, edge.label) };
            (format!("{class}{place}"), 0)
        })
    }));
    objects.sort_by_key(|object| (std::cmp::Reverse(tree.retained_bytes(*object)), *object));
    let example = objects.first().map(|object| Box::new(object_report(snapshot, tree, paths, *object)));
    objects.truncate(OBJECTS);
    let mut holders: Vec<(String, u64)> =
        holders.into_iter().map(|(name, sum)| (name, sum.objects)).collect();
    holders.sort_by_key(|(_, references)| std::cmp::Reverse(*references));
    Some(ClassReport {
        name: name.to_owned(),
        is_partial: snapshot.is_partial,
        sum,
        sites,
        objects: objects.into_iter().map(|object| object_row(graph, tree, object)).collect(),
        holders,
        example,
    })
}

fn site(graph: &Graph, object: ObjectId) -> Option<String> {
    let site = graph.site(graph.site_of(object)?);
    Some(format!("{}:{}", graph.name(site.file), site.line))
}

/// `.name`, `[3]`, or nothing.
fn field(graph: &Graph, label: Option<EdgeLabel>) -> String {
    match label {
        None => String::new(),
        Some(EdgeLabel::Name(name)) => format!(".{}", graph.name(name)),
        Some(EdgeLabel::Element(index)) => format!("[{index}]"),
    }
}

/// The same for many references: elements of an array are one place.
fn place(graph: &Graph, label: Option<EdgeLabel>) -> String {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    match label {
        Some(EdgeLabel::Element(_)) => "[…]".to_owned(),
        Some(EdgeLabel::Name(name)) if is_number(graph.name(name)) => "[…]".to_owned(),
        _ => field(graph, label),
    }
}

fn by_class(graph: &Graph, objects: impl Iterator<Item = ObjectId>) -> Vec<(String, Sum)> {
    summed(objects.map(|object| {
        let class = graph.class(graph.class_of(object));
        (graph.name(class.name).to_owned(), graph.size_bytes(object))
    }))
}

fn summed(each: impl Iterator<Item = (String, u64)>) -> Vec<(String, Sum)> {
    let mut sums = std::collections::BTreeMap::<String, Sum>::new();
    for (name, bytes) in each {
        let sum = sums.entry(name).or_default();
        sum.objects += 1;
        sum.bytes = sum.bytes.saturating_add(bytes);
    }
    let mut rows: Vec<(String, Sum)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.bytes, sum.objects)));
    rows
}

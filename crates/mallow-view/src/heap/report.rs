//! The page of a whole heap.

use crate::report::Origin;
use mallow_heapsnap::{DominatorTree, Graph, Group, ObjectId, Runtime, Snapshot, Sum, Totals};

/// By what rows are ordered, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Bytes that would be freed with them.
    #[default]
    Retained,
    /// Their own bytes.
    Bytes,
    /// Their number.
    Objects,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 3] = [Order::Retained, Order::Bytes, Order::Objects];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Order::Retained => "retained",
            Order::Bytes => "bytes",
            Order::Objects => "objects",
        }
    }

    fn of(self, sum: &Sum) -> u64 {
        match self {
            Order::Retained => sum.retained_bytes,
            Order::Bytes => sum.bytes,
            Order::Objects => sum.objects,
        }
    }
}

/// Objects that are shown as one: those of a kind, a class, or a line of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// Their name.
    pub name: String,
    /// The kind of a class's objects; empty where there is none.
    pub kind: String,
    /// Their sum.
    pub sum: Sum,
}

/// Objects that were made between two collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationRow {
    /// How often the runtime had collected; `None` for objects without tracing.
    pub generation: Option<u32>,
    /// Their sum.
    pub sum: Sum,
}

/// The generations of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generations {
    /// The oldest first, objects without one before; nothing of what they retain.
    pub rows: Vec<GenerationRow>,
    /// Lines of the dump that are no objects.
    pub other_lines: u64,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its address, `0x7f…`, or `@` and its runtime's number.
    pub id: String,
    /// Its class and its name.
    pub label: String,
    /// Its own bytes.
    pub bytes: u64,
    /// The bytes that would be freed with it; `None` if nothing holds it or they are unknown.
    pub retained_bytes: Option<u64>,
}

/// A content that more than one string has.
pub type StringRow = mallow_heapsnap::DuplicateString;

/// A heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapReport {
    /// The file.
    pub file: String,
    /// The file's format.
    pub format: Origin,
    /// All objects, and what is reachable as their retained bytes.
    pub all: Sum,
    /// The unreachable objects.
    pub unreachable: Sum,
    /// Nothing is known of who holds what.
    pub is_partial: bool,
    /// Whether allocation sites were traced.
    pub has_sites: bool,
    /// By kind.
    pub kinds: Vec<GroupRow>,
    /// By class.
    pub classes: Vec<GroupRow>,
    /// By line of the program.
    pub sites: Vec<GroupRow>,
    /// By generation, the oldest first, those without one before.
    pub generations: Vec<GenerationRow>,
    /// The objects that retain most, none of which is retained by another one of them alone.
    pub retainers: Vec<ObjectRow>,
    /// Contents that more than one string has, the most wasteful first: 1,000 at most, of the millions that there may be.
    pub strings: Vec<StringRow>,
    /// The number of such contents.
    pub string_contents: u64,
    /// The bytes that all of them waste.
    pub strings_wasted_bytes: u64,
    /// Strings whose contents are not known.
    pub strings_uncompared: u64,
    /// The class of the program's own that retains most, according to its name.
    pub own_class: Option<String>,
    /// Warnings about the file.
    pub warnings: Vec<String>,
    /// Remarks on the metrics.
    pub notes: Vec<String>,
}

/// Returns all rows of a heap; the front end shortens them.
pub fn heap_report(
    file: &str,
    format: Origin,
    snapshot: &Snapshot,
    tree: &DominatorTree,
    totals: &Totals,
    order: Order,
) -> HeapReport {
    let graph = &snapshot.graph;
    let group =
        |sum: Sum, name: &str, kind: &str| GroupRow { name: name.to_owned(), kind: kind.to_owned(), sum };
    let kinds = totals.kinds.iter().map(|kind| group(kind.sum, graph.name(kind.key.0), ""));
    let classes = totals.classes.iter().map(|of| {
        let class = graph.class(of.key);
        group(of.sum, graph.name(class.name), graph.name(class.kind.0))
    });
    let sites = totals.sites.iter().map(|of| {
        let name = of.key.map_or_else(
            || "(not traced)".to_owned(),
            |site| {
                let site = graph.site(site);
                format!("{}:{}", graph.name(site.file), site.line)
            },
        );
        GroupRow { name, kind: String::new(), sum: of.sum }
    });
    let generation = |of: &Group<Option<mallow_heapsnap::Generation>>| GenerationRow {
        generation: of.key.map(|generation| generation.0),
        sum: of.sum,
    };
    let classes = ordered(classes.collect(), order);
    let strings = &snapshot.strings.values;
    HeapReport {
        own_class: own_class(graph.runtime(), &classes),
        file: file.to_owned(),
        format,
        all: totals.all,
        unreachable: totals.unreachable,
        is_partial: snapshot.is_partial,
        has_sites: !graph.sites().is_empty(),
        kinds: ordered(kinds.collect(), order),
        classes,
        sites: ordered(sites.collect(), order),
        generations: totals.generations.iter().map(generation).collect(),
        retainers: retainers(graph, tree),
        strings: strings.iter().take(STRINGS).cloned().collect(),
        string_contents: strings.len() as u64,
        strings_wasted_bytes: strings.iter().fold(0u64, |sum, value| sum.saturating_add(value.wasted_bytes)),
        strings_uncompared: snapshot.strings.uncompared,
        warnings: snapshot.warnings.clone(),
        notes: snapshot.notes.clone(),
    }
}

pub(super) fn ordered(mut rows: Vec<GroupRow>, order: Order) -> Vec<GroupRow> {
    rows.sort_by(|a, b| {
        let by = |row: &GroupRow| (order.of(&row.sum), row.sum.bytes, row.sum.objects);
        by(b).cmp(&by(a)).then_with(|| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)))
    });
    rows
}

/// Classes that every program of a runtime has.
fn own_class(runtime: Runtime, classes: &[GroupRow]) -> Option<String> {
    const OF_V8: [&str; 13] = [
        "global",
        "Object",
        "Array",
        "Function",
        "Map",
        "Set",
        "WeakMap",
        "Promise",
        "Buffer",
        "ArrayBuffer",
        "Uint8Array",
        "Module",
        "Error",
    ];
    const OF_JVM: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    const OF_PYTHON: [&str; 28] = [
        "_abc",
        "_frozen_importlib",
        "_frozen_importlib_external",
        "_thread",
        "_weakrefset",
        "abc",
        "argparse",
        "ast",
        "asyncio",
        "collections",
        "contextlib",
        "email",
        "enum",
        "functools",
        "http",
        "importlib",
        "inspect",
        "io",
        "logging",
        "os",
        "re",
        "socket",
        "ssl",
        "sre_parse",
        "threading",
        "types",
        "typing",
        "weakref",
    ];
    let is_own = |row: &&GroupRow| match runtime {
        Runtime::Ruby => row.kind == "OBJECT",
        Runtime::V8 => {
            row.kind == "object" && !row.name.contains(" / ") && !OF_V8.contains(&row.name.as_str())
        }
        Runtime::Jvm => !row.name.ends_with("[]") && !OF_JVM.iter().any(|start| row.name.starts_with(start)),
        Runtime::Python => {
            let module = row.name.split('.').next().unwrap_or_default();
            row.kind == "instance" && row.name.contains('.') && !OF_PYTHON.contains(&module)
        }
    };
    let named = classes.iter().filter(|row| !row.name.starts_with('('));
    let mut own = named.clone().filter(is_own);
    own.next().or_else(|| named.clone().next()).map(|row| row.name.clone())
}

/// So many contents of strings are kept.
const STRINGS: usize = 1000;
/// So many objects are shown at most.
const RETAINERS: usize = 100;

/// The objects right below the roots that retain most. Objects that the snapshot made up to group roots are roots too.
fn retainers(graph: &Graph, tree: &DominatorTree) -> Vec<ObjectRow> {
    let is_root = |object: ObjectId| graph.name(graph.kind_of(object).0) == "synthetic";
    let mut below: Vec<Option<ObjectId>> = vec![None];
    let mut largest: Vec<(u64, ObjectId)> = Vec::new();
    while let Some(root) = below.pop() {
        for object in tree.children(root) {
            if is_root(object) {
                below.push(Some(object));
            } else {
                largest.extend(tree.retained_bytes(object).map(|bytes| (bytes, object)));
            }
        }
    }
    largest.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    largest.truncate(RETAINERS);
    largest.into_iter().map(|(_, object)| object_row(graph, tree, object)).collect()
}

pub(super) fn object_row(graph: &Graph, tree: &DominatorTree, object: ObjectId) -> ObjectRow {
    ObjectRow {
        id: id(graph, object),
        label: label(graph, object),
        bytes: graph.size_bytes(object),
        retained_bytes: tree.retained_bytes(object),
    }
}

/// Returns the id by which an object is found again.
fn id(graph: &Graph, object: ObjectId) -> String {
    match graph.runtime() {
        Runtime::V8 => format!("@{}", graph.id(object)),
        Runtime::Ruby | Runtime::Jvm | Runtime::Python => format!("{:#x}", graph.id(object)),
    }
}

/// An object's class, and its own name where it has one.
pub fn label(graph: &Graph, object: ObjectId) -> String {
    let class = graph.class(graph.class_of(object));
    let (kind, class) = (graph.name(class.kind.0), graph.name(class.name));
    match graph.name_of(object).filter(|name| !name.is_empty() && *name != class) {
        Some(name) => format!("{class} {name}"),
        // An object of the interpreter's own: its kind is more informative.
        None if class.starts_with('(') && graph.runtime() == Runtime::Ruby => format!("{kind} {class}"),
        None if kind == "IMEMO" => format!("IMEMO {class}"),
        None => class.to_owned(),
    }
}

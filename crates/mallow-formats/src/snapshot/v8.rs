//! V8's `.heapsnapshot`: one JSON document, as Node, Chrome, Electron, Deno, Hermes and Julia write it.
//!
//! It is defined by its writer (`heap-snapshot-generator.cc` of V8) and by its viewer: the worker of Chrome's
//! DevTools, whose rules are followed here (`v8/retaining.rs`). The file is read once and never loaded as a whole:
//! the peak is about 80 bytes for each node and 9 for each edge, at most six times their bytes in the file, and less
//! for real files.
//!
//! In reading order: `json.rs` parses the document, `meta.rs` says where its fields are, `document.rs` converts its
//! arrays to columns (`edges.rs`; `edges_ahead.rs` does so in parallel) and `strings.rs` its strings to names,
//! `traces.rs` parses the calls that allocated its objects, if that was tracked; then `retaining.rs`, `classes.rs`,
//! `interfaces.rs` and `duplicates.rs` interpret it.

mod classes;
mod document;
mod duplicates;
mod edges;
mod edges_ahead;
mod interfaces;
mod json;
mod meta;
mod retaining;
mod strings;
mod traces;

use crate::source::Source;
use crate::{Format, ImportError};
use classes::Classes;
use document::Document;
use duplicates::duplicate_strings;
use edges::MismatchedEdges;
use mallow_base::grouped;
use mallow_heapsnap::{ClassId, Graph, GraphParts, NameId, ObjectId, Root, Runtime, Snapshot};
use retaining::Assigned;

/// Parses a snapshot. A truncated file is parsed up to its end.
pub(crate) fn read(source: Source<'_>) -> Result<Snapshot, ImportError> {
    let mut document = document::read(source)?;
    let unnamed = name_the_nameless(&mut document);
    let (mut starts, mismatched) = document.edges.assign(std::mem::take(&mut document.nodes.edge_counts));
    let warnings = warnings(&document, mismatched, unnamed);
    classes::name_detached(&mut document, &starts);
    interfaces::name_plain_objects(&mut document, &starts);
    let slot_bytes = slot_bytes(&document);
    let mut assigned = Assigned::new(&mut document, &starts);
    assigned.move_sizes();
    let orphans = assigned.mark_weak();
    document.edges.types = Vec::new();
    let label = document.strings.names.intern("(nothing else retains it)");
    let hung = document.edges.add(&mut starts, document.root, &orphans, label);
    hung.map_err(|reason| ImportError::Unsupported { format: Format::V8Heap, reason })?;

    let strings = duplicate_strings(&document.meta, &document.nodes, &document.strings);
    let mut notes = notes(&document);
    if strings.uncompared > 0 {
        notes.push(format!(
            "The file does not contain all of the contents of {} strings, so these were not compared.",
            grouped(strings.uncompared)
        ));
    }
    let is_partial = mismatched.missing > 0 || document.nodes.ids.is_empty();
    let graph = graph(document, starts);
    Ok(Snapshot { graph, strings, slot_bytes: Some(slot_bytes), other_lines: 0, is_partial, warnings, notes })
}

/// Returns the bytes of the engine's own pages. Native nodes are contents of Buffers, of external strings, and objects of the embedder.
fn slot_bytes(document: &Document) -> u64 {
    let native = document.meta.node_type_named("native");
    let nodes = document.nodes.sizes.iter().zip(&document.nodes.types);
    let sizes = nodes.filter(|(_, node_type)| Some(**node_type) != native).map(|(bytes, _)| *bytes);
    sizes.fold(0, u64::saturating_add)
}

/// Names objects whose name is not in the file. Returns how many these are.
fn name_the_nameless(document: &mut Document) -> u64 {
    let Document { nodes, edges, strings, .. } = document;
    let len = strings.names.len() as u32;
    let mut unnamed = 0;
    let mut nameless = None;
    for name in nodes.names.iter_mut().filter(|name| **name >= len) {
        unnamed += 1;
        *name = nameless.get_or_insert_with(|| strings.names.intern("(no name in the file)")).0;
    }
    if edges.names_end > len {
        let nothing = GraphParts::packed_label(None);
        for edge in 0..edges.labels.len() {
            if edges.name(edge).is_some_and(|name| name.0 >= len) {
                edges.labels[edge] = nothing;
            }
        }
    }
    unnamed
}

/// Combines the columns. Each is freed when the next one has been built from it.
fn graph(document: Document, starts: Vec<u32>) -> Graph {
    let Document { meta, root, nodes, edges, strings, traces, .. } = document;
    let mut parts = GraphParts { edge_starts: starts, ..GraphParts::default() };
    traces.sites(nodes.ids.len(), &nodes.calls, &strings, &mut parts);
    parts.names = strings.names;
    parts.sizes.reserve_exact(nodes.sizes.len());
    nodes.sizes.iter().for_each(|bytes| parts.sizes.push(*bytes));
    drop(nodes.sizes);
    let mut classes = Classes::new(&meta, &mut parts.names);
    let objects = nodes.types.iter().zip(&nodes.names);
    parts.class_of =
        objects.map(|(at, name)| classes.of(*at, *name, &mut parts.names)).collect::<Vec<ClassId>>();
    parts.classes = classes.list;
    parts.ids = nodes.ids;
    parts.name_of = nodes.names.into_iter().map(NameId).collect();
    parts.edge_targets = edges.targets;
    parts.edge_labels = edges.labels;
    if !parts.ids.is_empty() {
        parts.roots.push(Root { name: parts.names.intern("(root)"), object: ObjectId(root) });
    }
    parts.names.shrink_to_fit();
    Graph::new(Runtime::V8, parts)
}

fn warnings(document: &Document, mismatched: MismatchedEdges, unnamed: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |is_so: bool, sentence: String| warnings.extend(is_so.then_some(sentence));
    let objects = grouped(document.nodes.ids.len() as u64);
    let references = grouped(document.edges.targets.len() as u64);
    let is_cut = document.is_cut;
    warn(
        is_cut,
        format!("The file ends before its end: {objects} objects and {references} references were read."),
    );
    let MismatchedEdges { missing, ownerless, dangling } = mismatched;
    warn(missing > 0, format!("{} references are missing, so retained sizes are unknown.", grouped(missing)));
    warn(ownerless > 0, format!("{} references belong to no object.", grouped(ownerless)));
    warn(dangling > 0, format!("{} references lead to no object.", grouped(dangling)));
    warn(unnamed > 0, format!("The names of {} objects are not in the file.", grouped(unnamed)));
    warnings
}

fn notes(document: &Document) -> Vec<String> {
    let mut notes = vec![
        "Sizes are those of Chrome's DevTools: a table that has one owner counts with it; weak references retain nothing, a WeakMap's keys retain its \
         values, and what the program can reach is not retained by the engine's own tables."
            .to_owned(),
    ];
    if document.extra_native_bytes > 0 {
        notes.push(format!(
            "The engine reports {} bytes of native memory that belong to no object.",
            grouped(document.extra_native_bytes)
        ));
    }
    notes
}

#[cfg(test)]
#[path = "v8_tests.rs"]
mod tests;

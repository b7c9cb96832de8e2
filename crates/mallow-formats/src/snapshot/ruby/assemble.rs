//! Combines the results of all threads into one graph.

use super::Scanned;
use super::columns::{Columns, Part, in_order};
use super::scan::{ClassKey, Contents, Tables, unescaped};
use mallow_base::grouped;
use mallow_heapsnap::{
    AddressIndex, Class, ClassId, DuplicateStrings, Graph, GraphParts, KindId, NameId, Root, Runtime, Site,
    Snapshot,
};
use rustc_hash::FxHashMap;
use std::thread;

/// Combines the parts. The error says which limit they exceed, without a full stop.
pub(super) fn assemble(scanned: Scanned, contents: Contents) -> Result<Snapshot, String> {
    let Scanned { parts: blocks, mut tables, failure } = scanned;
    let mut columns: Vec<Columns> =
        tables.iter_mut().map(|table| std::mem::take(&mut table.columns)).collect();
    let objects: usize = columns.iter().map(Columns::objects).sum();
    let references: usize = columns.iter().map(|columns| columns.references.len()).sum();
    if objects > GraphParts::OBJECTS_MAX || references > u32::MAX as usize {
        return Err(format!(
            "{} objects with {} references are more than the {} and {} that fit",
            grouped(objects as u64),
            grouped(references as u64),
            grouped(GraphParts::OBJECTS_MAX as u64),
            grouped(u32::MAX.into())
        ));
    }
    let mut parts = GraphParts { holds_class: true, ..GraphParts::default() };
    let maps = merge_tables(&tables, &mut parts);
    let uncompared = tables.iter().map(|table| table.uncompared).sum();
    let strings = DuplicateStrings::new(contents.duplicates(), uncompared);
    take_columns(&mut columns, &blocks, &maps, &mut parts);
    let (index, doubles) = AddressIndex::new(&parts.ids);
    resolve_classes(&tables, &maps, &index, &mut parts);
    let dangling = resolve_references(columns, &blocks, &index, &mut parts);
    let dangling = dangling + resolve_roots(&tables, &maps, &index, &mut parts);
    let is_partial = tables.iter().all(|table| table.root_lines == 0);
    let warnings = warnings(&tables, failure, doubles, objects);
    let notes = notes(&tables, dangling, is_partial);
    let other_lines = tables.iter().map(|table| table.root_lines + table.free_slots).sum();
    let slot_bytes = Some(tables.iter().map(|table| table.slot_bytes).sum());
    Ok(Snapshot {
        graph: Graph::new(Runtime::Ruby, parts),
        strings,
        is_partial,
        slot_bytes,
        other_lines,
        warnings,
        notes,
    })
}

/// The numbers in the graph for a thread's own numbers.
struct Maps {
    texts: Vec<NameId>,
    classes: Vec<ClassId>,
    sites: Vec<u32>,
}

fn merge_tables(tables: &[Tables], parts: &mut GraphParts) -> Vec<Maps> {
    let mut classes = FxHashMap::default();
    let mut sites = FxHashMap::default();
    let mut merged = |table: &Tables| {
        let names = &mut parts.names;
        let texts: Vec<NameId> = table.texts.iter().map(|text| names.intern(&unescaped(text))).collect();
        let class_of = |key: &ClassKey| {
            let kind = texts[key.kind as usize];
            let detail = key.detail.map(|detail| texts[detail as usize]);
            *classes.entry((kind, key.address, detail)).or_insert_with(|| {
                let name = detail.unwrap_or_else(|| names.intern("(hidden)"));
                parts.classes.push(Class { kind: KindId(kind), name, object: None });
                ClassId(parts.classes.len() as u32 - 1)
            })
        };
        let class_map = table.classes.iter().map(class_of).collect();
        let site_of = |(file, line): &(u32, u32)| {
            let site = Site { file: texts[*file as usize], line: *line };
            *sites.entry(site).or_insert_with(|| {
                parts.sites.push(site);
                parts.sites.len() as u32
            })
        };
        let site_map = table.sites.iter().map(site_of).collect();
        Maps { texts, classes: class_map, sites: site_map }
    };
    tables.iter().map(&mut merged).collect()
}

/// Builds the graph's columns from those of the threads, one after the other: each is freed before the next is built.
fn take_columns(columns: &mut [Columns], blocks: &[Part], maps: &[Maps], parts: &mut GraphParts) {
    let objects = columns.iter().map(Columns::objects).sum();
    let addresses = taken(columns, |columns| &mut columns.addresses);
    parts.ids.reserve_exact(objects);
    in_order(blocks, &addresses, |_, rows| parts.ids.extend_from_slice(rows));
    drop(addresses);

    let classes = taken(columns, |columns| &mut columns.classes);
    parts.class_of.reserve_exact(objects);
    in_order(blocks, &classes, |worker, rows| {
        parts.class_of.extend(rows.iter().map(|class| maps[worker].classes[*class as usize]));
    });
    drop(classes);

    let sizes = taken(columns, |columns| &mut columns.sizes);
    parts.sizes.reserve_exact(objects);
    let mut at = vec![0; sizes.len()];
    for block in blocks {
        let rows = at[block.worker]..at[block.worker] + block.objects;
        at[block.worker] = rows.end;
        rows.for_each(|row| parts.sizes.push(sizes[block.worker].get(row)));
    }
    drop(sizes);

    let sites = taken(columns, |columns| &mut columns.sites);
    if !parts.sites.is_empty() {
        parts.site_of.reserve_exact(objects);
        in_order(blocks, &sites, |worker, rows| {
            let site = |site: &u32| site.checked_sub(1).map_or(0, |at| maps[worker].sites[at as usize]);
            parts.site_of.extend(rows.iter().map(site));
        });
    }
    drop(sites);

    let generations = taken(columns, |columns| &mut columns.generations);
    if generations.iter().flatten().any(|at| *at != 0) {
        parts.generation_of.reserve_exact(objects);
        in_order(blocks, &generations, |_, rows| parts.generation_of.extend_from_slice(rows));
    }
}

/// Takes a column out of each thread's columns.
fn taken<T: Default>(columns: &mut [Columns], of: impl Fn(&mut Columns) -> &mut T) -> Vec<T> {
    columns.iter_mut().map(|columns| std::mem::take(of(columns))).collect()
}

/// Gives classes the names in their own lines. A class without one is named after its super class.
fn resolve_classes(tables: &[Tables], maps: &[Maps], index: &AddressIndex, parts: &mut GraphParts) {
    let mut named = FxHashMap::default();
    let mut derived = FxHashMap::default();
    for (table, map) in tables.iter().zip(maps) {
        named.extend(table.class_names.iter().map(|(address, name)| (*address, map.texts[*name as usize])));
        derived.extend(table.singletons.iter().copied());
    }
    let anonymous = parts.names.intern("(anonymous)");
    let name_of = |mut address: u64| {
        // A damaged file may have cycles.
        for _ in 0..64 {
            if let Some(name) = named.get(&address) {
                return *name;
            }
            match derived.get(&address) {
                Some(above) => address = *above,
                None => break,
            }
        }
        anonymous
    };
    for (table, map) in tables.iter().zip(maps) {
        for (key, class) in table.classes.iter().zip(&map.classes) {
            let Some(address) = key.address else { continue };
            let class = &mut parts.classes[class.0 as usize];
            class.object = index.get(address);
            class.name = match parts.names.get(class.kind.0) {
                // Each class has a class of its own, which is of no interest.
                "CLASS" => parts.names.intern("Class"),
                "MODULE" => parts.names.intern("Module"),
                "ICLASS" => parts.names.intern("(included module)"),
                _ if class.object.is_some() => name_of(address),
                _ => anonymous,
            };
        }
    }
    let found = |(address, name): (u64, NameId)| index.get(address).map(|object| (object, name));
    parts.object_names = named.into_iter().filter_map(found).collect();
    parts.object_names.sort_unstable();
}

/// Resolves references, and returns how many addresses are unknown.
fn resolve_references(
    mut columns: Vec<Columns>,
    blocks: &[Part],
    index: &AddressIndex,
    parts: &mut GraphParts,
) -> u64 {
    let dangling = thread::scope(|scope| {
        let resolve = |columns| scope.spawn(|| Columns::resolve(columns, index));
        let threads: Vec<_> = columns.iter_mut().map(resolve).collect();
        let of = |thread: thread::ScopedJoinHandle<'_, u64>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(of).sum()
    });
    let counts = taken(&mut columns, |columns| &mut columns.reference_counts);
    let references = taken(&mut columns, |columns| &mut columns.references);
    parts.edge_starts.reserve_exact(parts.ids.len() + 1);
    parts.edge_starts.push(0);
    parts.edge_targets.reserve_exact(references.iter().map(Vec::len).sum());
    let mut at = vec![0; references.len()];
    in_order(blocks, &counts, |worker, counts| {
        let start = at[worker];
        for count in counts {
            at[worker] += *count as usize;
            let edges = parts.edge_starts.last().copied().unwrap_or(0) + count;
            parts.edge_starts.push(edges);
        }
        // A target has 32 bits: it was written in place of its address.
        parts.edge_targets.extend(references[worker][start..at[worker]].iter().map(|target| *target as u32));
    });
    dangling
}

/// Resolves the references of roots, and returns how many addresses are unknown.
fn resolve_roots(tables: &[Tables], maps: &[Maps], index: &AddressIndex, parts: &mut GraphParts) -> u64 {
    let mut dangling = 0;
    for (table, map) in tables.iter().zip(maps) {
        for (name, address) in &table.roots {
            match index.get(*address) {
                Some(object) => parts.roots.push(Root { name: map.texts[*name as usize], object }),
                None => dangling += 1,
            }
        }
    }
    parts.roots.sort_by_key(|root| (root.name, root.object));
    parts.roots.dedup();
    dangling
}

fn warnings(
    tables: &[Tables],
    failure: Option<(u64, String)>,
    doubles: usize,
    objects: usize,
) -> Vec<String> {
    let sum = |count: fn(&Tables) -> u64| tables.iter().map(count).sum::<u64>();
    let (lost, rescued) = (sum(|table| table.lost), sum(|table| table.rescued));
    let first = tables.iter().filter_map(|table| table.first_damage).min();
    let mut warnings = Vec::new();
    if let Some((at, reason)) = failure {
        warnings.push(format!("it cannot be read behind byte {at}: {reason}"));
    }
    if let Some(first) = first {
        warnings.push(format!(
            "{} of {} lines are damaged, the first at byte {first}: of {} their address, type, size and references were read, {} are \
             left out",
            grouped(lost + rescued),
            grouped(objects as u64 + lost),
            grouped(rescued),
            grouped(lost)
        ));
    }
    if doubles > 0 {
        warnings.push(format!(
            "{} objects lie at the address of another one: references go to the first; is this more than one dump in one file?",
            grouped(doubles as u64)
        ));
    }
    warnings
}

fn notes(tables: &[Tables], dangling: u64, is_partial: bool) -> Vec<String> {
    let free: u64 = tables.iter().map(|table| table.free_slots).sum();
    let mut notes = Vec::new();
    if is_partial {
        notes.push(
            "the dump has no roots, as one made with `since:` does: there are no retained sizes and no paths, and what is \
             unreachable is unknown"
                .to_owned(),
        );
    }
    if free > 0 {
        notes.push(format!("slots that hold no object: {}", grouped(free)));
    }
    if dangling > 0 {
        notes.push(format!("references that lead to no object of the dump: {}", grouped(dangling)));
    }
    notes
}

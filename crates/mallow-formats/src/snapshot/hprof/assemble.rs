//! Builds the snapshot from the results of both passes.

use super::classes::{Number, PRIMITIVES, primitive_array};
use super::contents::{Coder, Contents, StringObject};
use super::layout::Layout;
use super::records::{Frame, root_name};
use super::references::{Edges, Extracted};
use super::survey::{Chosen, MIRROR, OBJECTS, Survey};
use mallow_base::{Count, Percent};
use mallow_heapsnap::{
    AddressIndex, Class, ClassId, DuplicateStrings, EdgeLabel, Graph, GraphParts, Histogram, KindId, Names,
    ObjectId, Root, Runtime, Site, Snapshot, Sum,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Combines everything.
pub(super) fn assemble(
    survey: Survey,
    index: AddressIndex,
    edges: Edges,
    extracted: Extracted,
    mut warnings: Vec<String>,
    doubles: u64,
) -> Snapshot {
    let Extracted { contents, coders, mut names, odd } = extracted;
    warn(
        &mut warnings,
        doubles,
        "object has",
        "objects have",
        "the address of another one: nothing refers to it",
    );
    // Roots that follow from loading are not all roots.
    let is_partial = survey.roots.is_empty();
    let roots = roots(&survey, &index, &mut names, &mut warnings);
    drop(index);
    let chosen = survey.layout();
    let mut parts = GraphParts { roots, holds_class: true, ..GraphParts::default() };
    survey.sizes(&chosen.layout, &mut parts);
    let strings = strings(&survey, &parts, &edges, coders, contents, &mut names);
    let (class_ids, classes) = classes(&survey, &mut names);
    parts.object_names = survey
        .mirror_classes
        .iter()
        .map(|(object, class)| (*object, names.intern(&survey.class_name(*class))))
        .collect();
    (parts.site_of, parts.sites) = sites(&survey, &mut names);
    warn_of_references(&edges, odd, &mut warnings);
    warn_of_objects(&survey, &mut warnings);
    let Survey { ids, class_of, .. } = survey;
    parts.class_of = class_of.into_iter().map(|class| class_ids[(class & !OBJECTS) as usize]).collect();
    parts.ids = ids;
    parts.classes = classes;
    let notes = notes(&chosen, edges.dangling);
    parts.edge_starts = edges.starts;
    parts.edge_targets = edges.targets;
    parts.edge_labels = edges.labels;
    parts.names = names;
    let graph = Graph::new(Runtime::Jvm, parts);
    Snapshot { graph, strings, other_lines: 0, slot_bytes: None, is_partial, warnings, notes }
}

/// Counts the objects of each class.
pub(super) fn histogram(survey: &Survey, mut warnings: Vec<String>) -> Histogram {
    warn_of_objects(survey, &mut warnings);
    let chosen = survey.layout();
    let mut parts = GraphParts::default();
    survey.sizes(&chosen.layout, &mut parts);
    let mut names = Names::default();
    let (class_ids, classes) = classes(survey, &mut names);
    let mut sums = vec![Sum::default(); classes.len()];
    for (object, class) in survey.class_of.iter().enumerate() {
        sums[class_ids[(class & !OBJECTS) as usize].0 as usize].add(parts.sizes.get(object));
    }
    let mut histogram = Histogram::default();
    histogram.is_whole = warnings.is_empty();
    histogram.warnings = warnings;
    histogram.notes = vec![layout_note(&chosen)];
    for (class, sum) in classes.iter().zip(sums) {
        histogram.add(names.get(class.kind.0), names.get(class.name), sum);
    }
    histogram
}

/// Returns the graph's class of each number, and the classes. Arrays of primitive types have a class even if it is not in the file.
fn classes(survey: &Survey, names: &mut Names) -> (Vec<ClassId>, Vec<Class>) {
    let [instance, object_array, primitive_array_kind, class] =
        ["instance", "object array", "primitive array", "class"].map(|kind| KindId(names.intern(kind)));
    let mut classes: Vec<Class> = Vec::new();
    let mut ids: Vec<ClassId> = Vec::with_capacity(survey.classes.len());
    let mut primitive = FxHashMap::default();
    for number in 0..survey.classes.len() as Number {
        ids.push(ClassId(classes.len() as u32));
        let name = survey.class_name(number);
        let object = survey.classes.dumped(number).map(|dumped| dumped.object);
        let raw = survey.classes.name(number).and_then(|name| survey.texts.bytes(name));
        let row = match number {
            MIRROR => Class { kind: class, name: names.intern("java.lang.Class"), object: None },
            4..PRIMITIVES => {
                primitive.insert(primitive_array(number as u8), ids[number as usize]);
                Class { kind: primitive_array_kind, name: names.intern(&name), object: None }
            }
            1..4 => continue,
            _ => {
                let is_array = raw.is_some_and(|name| name.starts_with(b"["));
                let known = match primitive.get(name.as_str()) {
                    _ if Some(number) == survey.mirrors => Some(ids[MIRROR as usize]),
                    known => known.copied().filter(|_| is_array),
                };
                if let Some(known) = known {
                    ids[number as usize] = known;
                    classes[known.0 as usize].object = object;
                    continue;
                }
                Class {
                    kind: if is_array { object_array } else { instance },
                    name: names.intern(&name),
                    object,
                }
            }
        };
        classes.push(row);
    }
    (ids, classes)
}

fn roots(survey: &Survey, index: &AddressIndex, names: &mut Names, warnings: &mut Vec<String>) -> Vec<Root> {
    let mut sorted: Vec<(u8, u64)> = survey.roots.iter().copied().collect();
    sorted.sort_unstable();
    let root = |(tag, address): &(u8, u64)| {
        index.get(*address).map(|object| Root { name: names.intern(root_name(*tag)), object })
    };
    let mut roots: Vec<Root> = sorted.iter().filter_map(root).collect();
    let lost = (sorted.len() - roots.len()) as u64;
    warn(warnings, lost, "root names", "roots name", "an address at which the file has no object");
    // The JVM never unloads the classes that it loaded itself, and writes roots for some of them.
    let held: FxHashSet<ObjectId> = roots.iter().map(|root| root.object).collect();
    let boot_classes = survey.classes.by_loader(&survey.texts).remove(&0).unwrap_or_default();
    let objects = boot_classes.into_iter().filter_map(|class| index.get(class));
    let name = names.intern("boot loader's class");
    roots.extend(objects.filter(|object| !held.contains(object)).map(|object| Root { name, object }));
    roots
}

/// Returns the sites at which objects were allocated: of each the topmost frame.
fn sites(survey: &Survey, names: &mut Names) -> (Vec<u32>, Vec<Site>) {
    if !survey.traces.any() {
        return (Vec::new(), Vec::new());
    }
    let mut sites: Vec<Site> = Vec::new();
    let mut known: FxHashMap<Site, u32> = FxHashMap::default();
    let mut of_frames: FxHashMap<(u64, u32, i32), u32> = FxHashMap::default();
    let mut site_of = |object| {
        let Some(frame) = survey.traces.top_frame(object) else { return 0 };
        *of_frames.entry((frame.source_file, frame.class_serial, frame.line)).or_insert_with(|| {
            let site = Site { file: names.intern(&file(survey, frame)), line: frame.line.max(0) as u32 };
            *known.entry(site).or_insert_with(|| {
                sites.push(site);
                sites.len() as u32
            })
        })
    };
    let site_of = (0..survey.ids.len()).map(&mut site_of).collect();
    (site_of, sites)
}

/// Returns `com/example/Session.java`: a file's name with its class's package, which is its folder.
fn file(survey: &Survey, frame: Frame) -> String {
    let class = survey.classes.of_serial(frame.class_serial).and_then(|class| survey.classes.name(class));
    let class = class.and_then(|class| survey.texts.text(class)).unwrap_or_default();
    let Some(file) = survey.texts.text(frame.source_file) else { return class };
    class.rsplit_once('/').map_or(file.clone(), |(package, _)| format!("{package}/{file}"))
}

fn strings(
    survey: &Survey,
    parts: &GraphParts,
    edges: &Edges,
    coders: Vec<Coder>,
    contents: Contents,
    names: &mut Names,
) -> DuplicateStrings {
    let is_string: Vec<bool> = (0..survey.classes.len() as Number)
        .map(|class| {
            survey.classes.name(class).and_then(|name| survey.texts.bytes(name)) == Some(b"java/lang/String")
        })
        .collect();
    let label = GraphParts::packed_label(Some(EdgeLabel::Name(names.intern("value"))));
    let strings = survey
        .class_of
        .iter()
        .enumerate()
        .filter(|(_, class)| is_string.get(**class as usize) == Some(&true));
    contents.duplicates(strings.zip(coders).map(|((object, _), coder)| {
        let range = edges.starts[object] as usize..edges.starts[object + 1] as usize;
        let value = range.into_iter().find(|edge| edges.labels[*edge] == label).map(|edge| {
            let array = edges.targets[edge];
            (ObjectId(array), parts.sizes.get(array as usize))
        });
        StringObject { bytes: parts.sizes.get(object), coder, value }
    }))
}

fn of_unknown_classes(survey: &Survey) -> u64 {
    let is_unknown: Vec<bool> = (0..survey.classes.len() as Number)
        .map(|class| class >= PRIMITIVES && survey.classes.dumped(class).is_none())
        .collect();
    survey.class_of.iter().filter(|class| is_unknown[(**class & !OBJECTS) as usize]).count() as u64
}

fn warn_of_objects(survey: &Survey, warnings: &mut Vec<String>) {
    warn(
        warnings,
        survey.left_out,
        "object is",
        "objects are",
        "left out: there are more than 2,147,483,646",
    );
    warn(
        warnings,
        of_unknown_classes(survey),
        "object is",
        "objects are",
        "of a class that the file does not describe: it is shown without references, and its size is a guess",
    );
}

fn warn_of_references(edges: &Edges, odd: u64, warnings: &mut Vec<String>) {
    warn(
        warnings,
        odd,
        "object has",
        "objects have",
        "more or fewer bytes than the fields of its class: it is read as far as they fit",
    );
    warn(
        warnings,
        edges.left_out,
        "reference is",
        "references are",
        "left out: there are more than 4,294,967,295",
    );
}

fn warn(warnings: &mut Vec<String>, count: u64, one: &str, many: &str, what: &str) {
    match count {
        0 => {}
        1 => warnings.push(format!("1 {one} {what}.")),
        _ => warnings.push(format!("{} {many} {what}.", Count(count))),
    }
}

/// Returns a note about the layout on which sizes are based.
fn layout_note(chosen: &Chosen) -> String {
    let Layout { reference_bytes, header_bytes, alignment, .. } = chosen.layout;
    let reason = match chosen.neighbours {
        Some((touching, of)) => {
            format!(
                "with these {} of objects end where the next one begins",
                Percent { part: touching as u64, whole: of as u64 }
            )
        }
        None => "assumed, as too few objects lie side by side to tell".to_owned(),
    };
    format!(
        "Sizes are those of references of {reference_bytes} bytes, headers of {header_bytes} and an alignment of {alignment}: {reason}. \
         The file does not say."
    )
}

/// Returns notes about what the metrics are based on.
fn notes(chosen: &Chosen, dangling: u64) -> Vec<String> {
    let mut notes = vec![
        layout_note(chosen),
        "Weak, phantom and final references do not retain. Soft ones do: a JVM clears them only when memory runs short.".to_owned(),
        "What no root reaches is not garbage for that reason: a JVM also holds objects by handles that it does not write.".to_owned(),
    ];
    // A JVM does not write classes of its archive that were never loaded, but refers to them.
    let what =
        "to objects that the file leaves out, such as classes of the JVM's archive that were not loaded";
    warn(&mut notes, dangling, "reference leads", "references lead", what);
    notes
}

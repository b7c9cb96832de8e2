//! Names plain objects by their properties, `{number, answer}`, as Chrome's DevTools does.
//!
//! Objects that were written as literals have no constructor, so all of them would have one class. Therefore the
//! properties that many of them have, in their order, form an interface. The interface of an object is the one with
//! most properties among those whose properties it has completely. Which interfaces exist depends on the whole heap:
//! an object may have another one in another snapshot.

use super::document::Document;
use super::meta::EdgeType;
use mallow_heapsnap::{NameId, Names};
use rustc_hash::FxHashMap;

/// The number of letters of a name after which no property is added, except for the first.
const NAME_LETTERS_MAX: usize = 120;

/// An interface has at least this number of objects, ...
const OBJECTS_MIN: u64 = 2;

/// ... and one in this number of plain objects.
const OBJECTS_PART: u64 = 1000;

/// Objects with more properties than this are maps, and each is examined separately.
const REMEMBERED_MAX: usize = 64;

/// Names plain objects by their interface.
pub(super) fn name_plain_objects(document: &mut Document, starts: &[u32]) {
    let object = document.meta.node_type_named("object");
    let names = &mut document.strings.names;
    // The file's strings have the first numbers.
    let of_file = |text: &str| (0..names.len() as u32).find(|name| names.get(NameId(*name)) == text);
    let (Some(plain), proto) = (of_file("Object"), of_file("__proto__")) else { return };
    let nodes = &document.nodes;
    let is_plain = |node: usize| Some(nodes.types[node]) == object && nodes.names[node] == plain;
    let all: Vec<u32> = (0..nodes.ids.len()).filter(|node| is_plain(*node)).map(|node| node as u32).collect();
    if all.is_empty() {
        return;
    }
    let edges = &document.edges;
    let properties = |node: u32, into: &mut Vec<u32>| {
        into.clear();
        let own = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        let named = own.filter(|edge| edges.types[*edge] == EdgeType::Named);
        into.extend(named.filter_map(|edge| edges.name(edge)).map(|name| name.0));
    };
    let mut candidates = Candidates::default();
    let mut found = Vec::new();
    for node in &all {
        properties(*node, &mut found);
        found.retain(|name| Some(*name) != proto);
        candidates.add(&mut found, names);
    }
    let interfaces = Interfaces::new(candidates, all.len() as u64, names);
    let mut remembered = FxHashMap::<Vec<u32>, Option<u32>>::default();
    for node in &all {
        properties(*node, &mut found);
        found.sort_unstable();
        let name = match remembered.get(&found) {
            Some(name) => *name,
            None => {
                let name = interfaces.best(&found);
                if found.len() <= REMEMBERED_MAX {
                    remembered.insert(found.clone(), name);
                }
                name
            }
        };
        if let Some(name) = name {
            document.nodes.names[*node as usize] = name;
        }
    }
}

/// Candidates: lists of properties that objects have, in their order.
#[derive(Default)]
struct Candidates {
    /// The number of each candidate, by its properties.
    numbers: FxHashMap<Vec<u32>, usize>,
    /// The number of objects of each.
    counts: Vec<u64>,
    /// The number of letters of each property.
    letters: FxHashMap<u32, usize>,
}

impl Candidates {
    /// Adds an object by its properties, which are reduced to those in the name.
    fn add(&mut self, properties: &mut Vec<u32>, names: &Names) {
        let mut letters = 1;
        let mut kept = 0;
        for name in &*properties {
            let own = *self
                .letters
                .entry(*name)
                .or_insert_with(|| shown(names.get(NameId(*name))).encode_utf16().count());
            if letters > 1 && letters + own > NAME_LETTERS_MAX {
                break;
            }
            letters += own + if kept > 0 { ", ".len() } else { 0 };
            kept += 1;
        }
        properties.truncate(kept);
        if properties.is_empty() {
            return;
        }
        match self.numbers.get(properties) {
            Some(number) => self.counts[*number] += 1,
            None => {
                self.numbers.insert(properties.clone(), self.counts.len());
                self.counts.push(1);
            }
        }
    }
}

/// The interfaces, by the smallest number among their properties.
struct Interfaces(FxHashMap<u32, Vec<Interface>>);

struct Interface {
    /// Ascending.
    properties: Vec<u32>,
    /// Its rank by the number of objects.
    rank: usize,
    name: u32,
}

impl Interfaces {
    fn new(candidates: Candidates, plain: u64, names: &mut Names) -> Interfaces {
        let Candidates { numbers, counts, .. } = candidates;
        let mut often: Vec<(Vec<u32>, usize)> = numbers
            .into_iter()
            .filter(|(_, number)| {
                let count = counts[*number];
                count >= OBJECTS_MIN && count * OBJECTS_PART >= plain
            })
            .collect();
        often.sort_unstable_by_key(|(_, number)| (std::cmp::Reverse(counts[*number]), *number));
        let mut by_first = FxHashMap::<u32, Vec<Interface>>::default();
        for (rank, (mut properties, _)) in often.into_iter().enumerate() {
            let shown: Vec<_> = properties.iter().map(|name| shown(names.get(NameId(*name)))).collect();
            let name = names.intern(&format!("{{{}}}", shown.join(", "))).0;
            properties.sort_unstable();
            by_first.entry(properties[0]).or_default().push(Interface { properties, rank, name });
        }
        Interfaces(by_first)
    }

    /// Returns the name of the interface that fits an object best, by its properties, ascending.
    fn best(&self, properties: &[u32]) -> Option<u32> {
        let has = |name: &u32| properties.binary_search(name).is_ok();
        let candidates = properties.iter().filter_map(|first| self.0.get(first)).flatten();
        candidates
            .filter(|interface| interface.properties.iter().all(has))
            .min_by_key(|interface| (std::cmp::Reverse(interface.properties.len()), interface.rank))
            .map(|interface| interface.name)
    }
}

/// Returns a property as shown in a name: quoted if it contains separators of names.
fn shown(property: &str) -> std::borrow::Cow<'_, str> {
    match property.contains([',', '\'', '"', '{', '}']) {
        true => serde_json::Value::from(property).to_string().into(),
        false => property.into(),
    }
}

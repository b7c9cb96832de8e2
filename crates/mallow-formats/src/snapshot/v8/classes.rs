//! Classes as Chrome's DevTools shows them: the class of an object is its constructor, or else its type.

use super::document::Document;
use super::meta::{EdgeType, Meta};
use mallow_heapsnap::{Class, ClassId, KindId, NameId, Names};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The classes of a file, in order of appearance.
pub(super) struct Classes<'a> {
    meta: &'a Meta,
    /// By type, with one more for undescribed types.
    kinds: Vec<KindId>,
    /// The class of all objects of a type, if they have the same one.
    by_type: Vec<Option<ClassId>>,
    by_string: FxHashMap<(u8, u32), ClassId>,
    by_name: FxHashMap<(KindId, String), ClassId>,
    pub(super) list: Vec<Class>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(meta: &'a Meta, names: &mut Names) -> Classes<'a> {
        let types = meta.node_types.iter().map(String::as_str).chain(["(unknown type)"]);
        let kinds: Vec<KindId> = types.clone().map(|name| KindId(names.intern(name))).collect();
        let mut classes = Classes {
            meta,
            by_type: vec![None; kinds.len()],
            kinds,
            by_string: FxHashMap::default(),
            by_name: FxHashMap::default(),
            list: Vec::new(),
        };
        for (at, name) in types.enumerate() {
            let class = match name {
                "object" | "native" => continue,
                "hidden" => Cow::from("(system)"),
                "code" => "(compiled code)".into(),
                "closure" => "Function".into(),
                "regexp" => "RegExp".into(),
                "(unknown type)" => name.into(),
                _ => format!("({name})").into(),
            };
            classes.by_type[at] = Some(classes.intern(at, &class, names));
        }
        classes
    }

    fn intern(&mut self, node_type: usize, name: &str, names: &mut Names) -> ClassId {
        let kind = self.kinds[node_type];
        *self.by_name.entry((kind, name.to_owned())).or_insert_with(|| {
            let id = ClassId(self.list.len() as u32);
            self.list.push(Class { kind, name: names.intern(name), object: None });
            id
        })
    }

    /// Returns the class of an object by its type and its name.
    pub(super) fn of(&mut self, node_type: u8, name: u32, names: &mut Names) -> ClassId {
        let at = usize::from(node_type).min(self.meta.node_types.len());
        if let Some(class) = self.by_type[at] {
            return class;
        }
        if let Some(class) = self.by_string.get(&(node_type, name)) {
            return *class;
        }
        let class = without_attributes(names.get(NameId(name))).into_owned();
        let class = self.intern(at, &class, names);
        self.by_string.insert((node_type, name), class);
        class
    }
}

/// Returns `<div>` for `<div class="wide">`: elements of a page are named with all of their attributes.
fn without_attributes(name: &str) -> Cow<'_, str> {
    let tag = if name.starts_with('<') {
        0
    } else if name.starts_with("Detached <") {
        "Detached ".len() + 1
    } else {
        return name.into();
    };
    match name[tag..].find(' ') {
        Some(end) => format!("{}>", &name[..tag + end]).into(),
        None => name.into(),
    }
}

/// Renames elements that are known to be detached from their page, and what is reachable only through them.
///
/// What a page holds, and what is reachable from that, is attached; everything else that is reachable from a detached
/// element is detached.
pub(super) fn name_detached(document: &mut Document, starts: &[u32]) {
    const ATTACHED: u8 = 1;
    const DETACHED: u8 = 2;
    let Document { meta, nodes, edges, strings, .. } = document;
    let native = meta.node_type_named("native");
    let mut known = std::mem::take(&mut nodes.detachedness);
    let is_native = |node: u32| Some(nodes.types[node as usize]) == native;
    known.retain(|(node, _)| is_native(*node));
    if known.is_empty() {
        return;
    }
    let mut states = vec![0u8; nodes.ids.len()];
    known.iter().for_each(|(node, state)| states[*node as usize] = *state);
    for state in [ATTACHED, DETACHED] {
        let mut stack: Vec<u32> =
            known.iter().filter(|known| known.1 == state).map(|known| known.0).collect();
        while let Some(node) = stack.pop() {
            for edge in starts[node as usize] as usize..starts[node as usize + 1] as usize {
                let target = edges.targets[edge];
                let leads = !matches!(edges.types[edge], EdgeType::Hidden | EdgeType::Weak);
                if leads && is_native(target) && states[target as usize] == 0 {
                    states[target as usize] = state;
                    stack.push(target);
                }
            }
        }
    }
    let mut renamed = FxHashMap::default();
    for (node, _) in states.iter().enumerate().filter(|(_, state)| **state == DETACHED) {
        let name = &mut nodes.names[node];
        *name = *renamed.entry(*name).or_insert_with(|| {
            let detached = format!("Detached {}", strings.names.get(NameId(*name)));
            strings.names.intern(&detached).0
        });
    }
}

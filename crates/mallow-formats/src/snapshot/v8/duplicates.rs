//! Strings of the program that occur more than once. V8 writes equal ones with the same number, so contents need not be compared.

use super::document::Nodes;
use super::meta::Meta;
use super::strings::{Bits, STRING, Strings};
use mallow_heapsnap::{DuplicateString, DuplicateStrings, NameId, TEXT_CHARS_MAX};
use rustc_hash::FxHashMap;

/// The sums of one content.
#[derive(Clone, Copy)]
struct Content {
    strings: u64,
    bytes: u64,
    bytes_min: u64,
}

/// Finds them. Concatenated and sliced strings are not included: the file does not have their contents, only the
/// strings that they are made of, which are counted themselves.
pub(super) fn duplicate_strings(meta: &Meta, nodes: &Nodes, strings: &Strings) -> DuplicateStrings {
    let types = |name| meta.node_type_named(name);
    let (whole, parts) = (types(STRING), [types("concatenated string"), types("sliced string")]);
    let mut met = Bits::new(strings.names.len());
    let mut repeated = Bits::new(strings.names.len());
    let mut uncompared = 0;
    for (name, node_type) in nodes.names.iter().zip(&nodes.types) {
        if Some(*node_type) == whole {
            if !strings.is_comparable(*name) {
                uncompared += 1;
            } else if !met.set(*name) {
                repeated.set(*name);
            }
        } else if parts.contains(&Some(*node_type)) {
            uncompared += 1;
        }
    }
    let mut contents = FxHashMap::<u32, Content>::default();
    for (at, name) in nodes.names.iter().enumerate() {
        if Some(nodes.types[at]) == whole && repeated.has(*name) {
            let bytes = nodes.sizes[at];
            let content = contents.entry(*name).or_insert(Content { strings: 0, bytes: 0, bytes_min: bytes });
            content.strings += 1;
            content.bytes = content.bytes.saturating_add(bytes);
            content.bytes_min = content.bytes_min.min(bytes);
        }
    }
    let shown = |(name, content): (u32, Content)| {
        let text = strings.names.get(NameId(name));
        let end = text.char_indices().nth(TEXT_CHARS_MAX).map_or(text.len(), |(end, _)| end);
        DuplicateString {
            text: text[..end].to_owned(),
            is_whole: end == text.len() && strings.is_whole(name),
            strings: content.strings,
            bytes: content.bytes,
            wasted_bytes: content.bytes - content.bytes_min,
        }
    };
    DuplicateStrings::new(contents.into_iter().map(shown).collect(), uncompared)
}

//! The strings of a dump, by the ids that other records use.
//!
//! A JVM writes its whole symbol table before the records that use it, so all of it is kept until the classes are known.

use mallow_heapsnap::{NameId, Names};
use rustc_hash::FxHashMap;

/// All strings.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// The start and the length of each.
    places: FxHashMap<u64, (usize, u32)>,
}

/// The numbers of strings that are used.
#[derive(Debug, Default)]
pub(super) struct UsedNames {
    names: FxHashMap<u64, NameId>,
}

impl Texts {
    /// Adds a string, which may not be valid text.
    pub(super) fn add(&mut self, id: u64, text: &[u8]) {
        self.places.insert(id, (self.bytes.len(), text.len() as u32));
        self.bytes.extend_from_slice(text);
    }

    /// Returns the bytes of a string.
    pub(super) fn bytes(&self, id: u64) -> Option<&[u8]> {
        self.places.get(&id).map(|(start, len)| &self.bytes[*start..start + *len as usize])
    }

    /// Returns a string; invalid bytes are replaced.
    pub(super) fn text(&self, id: u64) -> Option<String> {
        self.bytes(id).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

impl UsedNames {
    /// Returns the number of a string; one that is not in the file is named after its id.
    pub(super) fn name(&mut self, id: u64, texts: &Texts, names: &mut Names) -> NameId {
        *self.names.entry(id).or_insert_with(|| match texts.bytes(id) {
            Some(text) => names.intern(&String::from_utf8_lossy(text)),
            None => names.intern(&format!("(name {id:#x})")),
        })
    }
}

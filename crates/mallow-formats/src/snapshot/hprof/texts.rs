//! The texts of a dump, by the ids under which other records name them.
//!
//! A JVM writes its whole symbol table. It stands in front of what uses it, so all of it is kept until the classes are known.

use mallow_heapsnap::{NameId, Names};
use rustc_hash::FxHashMap;

/// All texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each begins and how long it is.
    places: FxHashMap<u64, (usize, u32)>,
}

/// The number of texts that are used.
#[derive(Debug, Default)]
pub(super) struct UsedNames {
    names: FxHashMap<u64, NameId>,
}

impl Texts {
    /// Adds a text, which may be none in truth.
    pub(super) fn add(&mut self, id: u64, text: &[u8]) {
        self.places.insert(id, (self.bytes.len(), text.len() as u32));
        self.bytes.extend_from_slice(text);
    }

    /// The bytes of a text.
    pub(super) fn bytes(&self, id: u64) -> Option<&[u8]> {
        self.places.get(&id).map(|(start, len)| &self.bytes[*start..start + *len as usize])
    }

    /// A text, with signs for what is none.
    pub(super) fn text(&self, id: u64) -> Option<String> {
        self.bytes(id).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

impl UsedNames {
    /// The number of a text; one that the file does not have is called by its id.
    pub(super) fn name(&mut self, id: u64, texts: &Texts, names: &mut Names) -> NameId {
        *self.names.entry(id).or_insert_with(|| match texts.bytes(id) {
            Some(text) => names.intern(&String::from_utf8_lossy(text)),
            None => names.intern(&format!("(name {id:#x})")),
        })
    }
}

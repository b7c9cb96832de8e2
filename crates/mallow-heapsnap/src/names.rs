//! Names, each kept once.

use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Index into [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Texts one behind the other, each once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    text: String,
    /// Where each ends: the lower 32 bits.
    ends: Vec<u32>,
    /// The names with which a multiple of 2^32 bytes is passed, ascending.
    carries: Vec<u32>,
    /// From a text's hash to those that have it.
    known: FxHashMap<u64, Vec<NameId>>,
}

impl Names {
    /// The number of a text, which is a new one if nobody gave it before.
    ///
    /// # Panics
    /// With more than 2^32 different texts.
    pub fn intern(&mut self, text: &str) -> NameId {
        let hash = hash(text);
        if let Some(id) = self.find(hash, text) {
            return id;
        }
        let id = self.push(text);
        self.known.entry(hash).or_default().push(id);
        id
    }

    /// Takes a text in under the next number, whether or not it is there. [`Names::intern`] does not find it.
    ///
    /// # Panics
    /// With more than 2^32 texts.
    pub fn push(&mut self, text: &str) -> NameId {
        let id = NameId(u32::try_from(self.ends.len()).expect("fewer than 2^32 names"));
        let turns = |text: &str| text.len() as u64 >> 32;
        let before = turns(&self.text);
        self.text.push_str(text);
        self.carries.extend((before..turns(&self.text)).map(|_| id.0));
        self.ends.push(self.text.len() as u32);
        id
    }

    /// Gives back what was taken beyond what is there.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn find(&self, hash: u64, text: &str) -> Option<NameId> {
        self.known.get(&hash)?.iter().copied().find(|id| self.get(*id) == text)
    }

    /// The text with a number.
    pub fn get(&self, id: NameId) -> &str {
        let at = id.0 as usize;
        let start = if at == 0 { 0 } else { self.end(at - 1) };
        &self.text[start..self.end(at)]
    }

    fn end(&self, at: usize) -> usize {
        let carried = match self.carries.is_empty() {
            true => 0,
            false => self.carries.partition_point(|name| *name as usize <= at),
        };
        // Where an address has 32 bits, nothing is carried.
        ((carried as u64) << 32 | u64::from(self.ends[at])) as usize
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = BuildHasherDefault::<rustc_hash::FxHasher>::default().build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut names = Names::default();
        let (a, empty, b) = (names.intern("String"), names.intern(""), names.intern("Array"));
        assert_eq!(names.intern("String"), a);
        assert_eq!(names.intern(""), empty);
        assert_eq!((names.get(a), names.get(empty), names.get(b)), ("String", "", "Array"));
        assert_eq!(names.len(), 3);
    }

    #[test]
    #[ignore = "four gigabytes: in `cargo xtask long`"]
    fn texts_beyond_four_gigabytes_have_their_places() {
        let mut names = Names::default();
        let long = "x".repeat((1 << 31) - 3);
        let texts = ["first", &long, "second", &long, "third", "", "fourth"];
        for text in texts {
            names.push(text);
        }
        assert!(names.text.len() > 1 << 32 && names.carries.len() == 1);
        for (at, text) in (0..).zip(texts) {
            assert!(names.get(NameId(at)) == text, "the text {at}");
        }
    }
}

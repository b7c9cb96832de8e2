//! What a file of a heap held.

use crate::Graph;

/// A snapshot: the graph, and what cannot be told from it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The objects.
    pub graph: Graph,
    /// Strings with equal contents.
    pub strings: DuplicateStrings,
    /// The file holds only a part of the heap, and nothing of who holds it: there are no retained sizes and no paths.
    pub is_partial: bool,
    /// The bytes of objects that lie in the runtime's own pages; what is above, up to their sizes, was taken from `malloc`. None where
    /// everything lies in pages of the runtime's.
    pub slot_bytes: Option<u64>,
    /// Lines of a dump that are no objects: roots and free slots. 0 for formats without lines.
    pub other_lines: u64,
    /// What was wrong with the file, a sentence each.
    pub warnings: Vec<String>,
    /// What the figures rest on, such as by which rules references retain: a sentence each.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// Returns whether it holds the whole heap, so that what is not in it was not there.
    pub fn is_whole(&self) -> bool {
        !self.is_partial && self.warnings.is_empty()
    }
}

/// Strings that are there more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DuplicateStrings {
    /// By content, the most wasteful first.
    pub values: Vec<DuplicateString>,
    /// Strings whose contents the file does not tell, or not in full: they may be equal to others.
    pub uncompared: u64,
}

impl DuplicateStrings {
    /// Puts the most wasteful first.
    pub fn new(mut values: Vec<DuplicateString>, uncompared: u64) -> DuplicateStrings {
        values.sort_by(|a, b| b.wasted_bytes.cmp(&a.wasted_bytes).then_with(|| a.text.cmp(&b.text)));
        DuplicateStrings { values, uncompared }
    }
}

/// A content that more than one string has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateString {
    /// How it begins.
    pub text: String,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// How many strings have it.
    pub strings: u64,
    /// Their own bytes.
    pub bytes: u64,
    /// Their bytes without one of them.
    pub wasted_bytes: u64,
}

/// How many characters of a string are kept.
pub const TEXT_CHARS_MAX: usize = 80;

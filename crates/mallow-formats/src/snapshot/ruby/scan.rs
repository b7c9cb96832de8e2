//! The results of one thread: columns of objects, and tables of what they have in common.

use super::columns::{Columns, Part};
use super::record::Record;
use crate::snapshot::blocks::Block;
use mallow_heapsnap::{DuplicateString, TEXT_CHARS_MAX};
use memchr::memchr_iter;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::Mutex;

/// The slot size before Ruby 3.2, where all were equal.
const SLOT_BYTES: u64 = 40;

/// The key of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassKey {
    /// Index into [`Tables::texts`].
    pub(super) kind: u32,
    /// The address of the class.
    pub(super) address: Option<u64>,
    /// The name of an internal class.
    pub(super) detail: Option<u32>,
}

/// How often each content of a string occurs: one table for all threads, in shards, so that they rarely wait for each other.
pub(super) struct Contents([Mutex<Contained>; 64]);

/// A shard: contents whose hashes end in the same bits.
#[derive(Default)]
pub(super) struct Contained {
    by_hash: FxHashMap<u64, Occurrence>,
    repeated: Vec<DuplicateString>,
}

/// Millions of strings have a content of their own, so this is small.
#[derive(Clone, Copy)]
enum Occurrence {
    /// A string of this size, which is too low if the size does not fit.
    Once(u32),
    /// Index into [`Contained::repeated`].
    Again(u32),
}

impl Contents {
    pub(super) fn new() -> Contents {
        Contents(std::array::from_fn(|_| Mutex::default()))
    }

    /// Adds a string. Contents are equal if their 64-bit hashes are: with ten million strings, that is wrong for one pair in 370,000 dumps.
    fn add(&self, value: &[u8], bytes: u64) {
        let hash = FxBuildHasher.hash_one(value);
        let part = &self.0[(hash % self.0.len() as u64) as usize];
        let mut part = part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Contained { by_hash, repeated } = &mut *part;
        let Some(seen) = by_hash.get_mut(&hash) else {
            by_hash.insert(hash, Occurrence::Once(u32::try_from(bytes).unwrap_or(u32::MAX)));
            return;
        };
        let again = match *seen {
            Occurrence::Again(at) => &mut repeated[at as usize],
            Occurrence::Once(first) => {
                *seen = Occurrence::Again(repeated.len() as u32);
                let (text, is_whole) = beginning(value);
                let first = u64::from(first);
                // While strings are counted, `wasted_bytes` is the size of the smallest.
                repeated.push(DuplicateString {
                    text,
                    is_whole,
                    strings: 1,
                    bytes: first,
                    wasted_bytes: first,
                });
                repeated.last_mut().expect("it was just pushed")
            }
        };
        again.strings += 1;
        again.bytes = again.bytes.saturating_add(bytes);
        again.wasted_bytes = again.wasted_bytes.min(bytes);
    }

    /// Returns the contents that several strings have.
    pub(super) fn duplicates(self) -> Vec<DuplicateString> {
        let repeated = |part: Mutex<Contained>| {
            part.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).repeated
        };
        let mut duplicates: Vec<DuplicateString> = self.0.into_iter().flat_map(repeated).collect();
        for value in &mut duplicates {
            value.wasted_bytes = value.bytes - value.wasted_bytes;
        }
        duplicates
    }
}

/// What is needed of a dump.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Everything.
    Everything(&'a Contents),
    /// Only the objects, without their references and equal strings.
    Objects,
}

/// The tables of a thread, each entry once, and its objects.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) columns: Columns,
    text_numbers: FxHashMap<Box<[u8]>, u32>,
    pub(super) texts: Vec<Box<[u8]>>,
    class_numbers: FxHashMap<ClassKey, u32>,
    pub(super) classes: Vec<ClassKey>,
    site_numbers: FxHashMap<(u32, u32), u32>,
    /// The number of a file's name, and a line.
    pub(super) sites: Vec<(u32, u32)>,
    /// Classes that have a name: their address, and the name's number.
    pub(super) class_names: Vec<(u64, u32)>,
    /// Singleton classes without a name, and their super classes.
    pub(super) singletons: Vec<(u64, u64)>,
    /// A root's name, and an address.
    pub(super) roots: Vec<(u32, u64)>,
    pub(super) uncompared: u64,
    /// The total size of the slots of objects.
    pub(super) slot_bytes: u64,
    /// Slots without an object.
    pub(super) free_slots: u64,
    /// Malformed records, and the position of the first.
    pub(super) lost: u64,
    /// Records of which only a part could be parsed.
    pub(super) rescued: u64,
    pub(super) first_damage: Option<u64>,
    /// Lines that name roots.
    pub(super) root_lines: u64,
}

/// Returns where the last record begins after the first byte: a line that begins with a brace and a quotation mark.
/// Any other line continues the name of a file with a line feed in it.
pub(super) fn last_start(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'\n', bytes).map(|at| at + 1).find(|at| bytes[*at..].starts_with(b"{\""))
}

impl Tables {
    /// Parses a block.
    pub(super) fn read(&mut self, worker: usize, block: &Block, wanted: Wanted<'_>) -> Part {
        let objects_before = self.columns.objects();
        let bytes = &block.bytes[..];
        let mut start = 0;
        for end in
            memchr_iter(b'\n', bytes).filter(|at| bytes[at + 1..].starts_with(b"{\"")).chain([bytes.len()])
        {
            let line = bytes[start..end].trim_ascii();
            if !line.is_empty() {
                self.take(line, block.at + start as u64, wanted);
            }
            start = end + 1;
        }
        Part { at: block.at, worker, objects: self.columns.objects() - objects_before }
    }

    fn take(&mut self, line: &[u8], at: u64, wanted: Wanted<'_>) {
        let known = self.columns.references.len();
        let references = matches!(wanted, Wanted::Everything(_)).then_some(&mut self.columns.references);
        let record = match Record::parse(line, references) {
            Ok(record) => record,
            Err(_) => {
                self.columns.references.truncate(known);
                self.first_damage = Some(self.first_damage.map_or(at, |first| first.min(at)));
                let Some(record) = Record::rescue(line, &mut self.columns.references) else {
                    self.columns.references.truncate(known);
                    self.lost += 1;
                    return;
                };
                self.rescued += 1;
                if matches!(wanted, Wanted::Objects) {
                    self.columns.references.truncate(known);
                }
                record
            }
        };
        let Some(address) = record.address.filter(|_| record.kind != b"ROOT" && record.kind != b"NONE")
        else {
            self.take_other(&record, known, at);
            self.columns.references.truncate(known);
            return;
        };
        let class = self.class(address, &record);
        let site = self.site(&record);
        let references = self.columns.references.len() - known;
        self.columns.push(address, class, site, &record, references as u32);
        if record.kind != b"SHAPE" {
            self.slot_bytes += record.slot_size.unwrap_or(SLOT_BYTES);
        }
        if let (b"STRING", Wanted::Everything(contents)) = (record.kind, wanted) {
            self.compare(&record, contents);
        }
    }

    /// Handles a line that is not an object; its references are those from `first_reference` on.
    fn take_other(&mut self, record: &Record, first_reference: usize, at: u64) {
        match (record.kind, record.root) {
            (b"ROOT", name) => {
                self.root_lines += 1;
                let name = self.text(name.unwrap_or_default());
                let references = &self.columns.references[first_reference..];
                self.roots.extend(references.iter().map(|address| (name, *address)));
            }
            (b"NONE", _) => self.free_slots += 1,
            _ => {
                self.lost += 1;
                self.first_damage = Some(self.first_damage.map_or(at, |first| first.min(at)));
            }
        }
    }

    fn class(&mut self, address: u64, record: &Record) -> u32 {
        let is_class = matches!(record.kind, b"CLASS" | b"MODULE" | b"ICLASS");
        if is_class {
            if let Some(name) = record.name.or(record.real_class_name) {
                let name = self.text(name);
                self.class_names.push((address, name));
            } else if let Some(superclass) = record.superclass {
                self.singletons.push((address, superclass));
            }
        }
        if record.kind == b"SHAPE" {
            let name = self.text(b"shapes");
            self.roots.push((name, address));
        }
        // The class of an internal object of the interpreter is not a class.
        let class = record.class.filter(|_| record.kind != b"IMEMO");
        let detail = record.detail.map(|detail| self.text(detail));
        let key = ClassKey { kind: self.text(record.kind), address: class, detail };
        if let Some(number) = self.class_numbers.get(&key) {
            return *number;
        }
        let number = self.classes.len() as u32;
        self.classes.push(key.clone());
        self.class_numbers.insert(key, number);
        number
    }

    fn site(&mut self, record: &Record) -> u32 {
        let Some(file) = record.file else { return 0 };
        let key = (self.text(file), record.line);
        let sites = &mut self.sites;
        let number = self.site_numbers.entry(key).or_insert_with(|| {
            sites.push(key);
            sites.len() as u32
        });
        *number
    }

    fn text(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.text_numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.text_numbers.insert(text.into(), number);
        number
    }

    fn compare(&mut self, record: &Record, contents: &Contents) {
        match (record.value, record.bytesize) {
            (Some(value), _) => contents.add(value, record.memsize),
            // Newer versions leave the contents of an empty string out.
            (None, Some(0)) => contents.add(b"", record.memsize),
            (None, _) => self.uncompared += 1,
        }
    }
}

/// Returns the beginning of a string without escapes, and whether that is all of it.
fn beginning(escaped: &[u8]) -> (String, bool) {
    let text = unescaped(escaped);
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(TEXT_CHARS_MAX).collect();
    (start, chars.next().is_none())
}

/// Returns a string without escapes. Invalid escapes are kept, and invalid UTF-8 is replaced.
pub(super) fn unescaped(escaped: &[u8]) -> String {
    let quoted = [b"\"", escaped, b"\""].concat();
    serde_json::from_slice(&quoted).unwrap_or_else(|_| String::from_utf8_lossy(escaped).into_owned())
}
